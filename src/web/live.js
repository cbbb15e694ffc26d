// The live channel: subscribes, comes back after a break where it was, and hands messages on.

const RETRY_MS = 500
const RETRY_MS_MAX = 15_000
/** The server's close code for a token that is no longer good. */
const UNAUTHENTICATED = 4401

/**
 * `subscription` is asked for at each subscribe. `onMessage` gets each message, `onState` one of `live`, `reconnecting`, and
 * `onSignedOut` is called when the token is no longer good.
 */
export const openLive = ({ url, token, subscription, onMessage, onState, onSignedOut }) => {
  let socket
  let cursor
  let retryMs = RETRY_MS
  const subscribe = () =>
    socket.send(JSON.stringify({ type: 'subscribe', id: 'map', ...subscription(), ...(cursor && { since: cursor }) }))
  const connect = () => {
    socket = new WebSocket(url)
    socket.onopen = () => {
      socket.send(JSON.stringify({ type: 'auth', token }))
      subscribe()
    }
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data)
      cursor = message.cursor ?? cursor
      if (message.type === 'snapshot') {
        retryMs = RETRY_MS
        onState('live')
      }
      onMessage(message)
    }
    socket.onclose = ({ code }) => {
      if (code === UNAUTHENTICATED) return onSignedOut()
      onState('reconnecting')
      setTimeout(connect, retryMs)
      retryMs = Math.min(retryMs * 2, RETRY_MS_MAX)
    }
  }
  connect()
  return {
    /** Subscribes anew under what `subscription` answers now. */
    resubscribe: () => {
      if (socket.readyState === WebSocket.OPEN) subscribe()
    },
  }
}
