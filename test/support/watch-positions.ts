import { WebSocket } from 'undici'

/** Subscribes to all positions and keeps the newest of each tracker. */
export const watchPositions = async (
  service: { url: string },
  token: string,
): Promise<{ newest: Map<string, { recordedAt: string; lat: number; lng: number }>; close(): void }> => {
  const newest = new Map()
  const socket = new WebSocket(`${service.url.replace('http', 'ws')}/api/v3/live`)
  await new Promise<void>((done, failed) => {
    socket.onopen = () => {
      socket.send(JSON.stringify({ type: 'auth', token }))
      socket.send(JSON.stringify({ type: 'subscribe', id: 'all', channels: ['positions'] }))
    }
    socket.onclose = ({ code }) => failed(new Error(`closed ${code}`))
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(String(data))
      for (const position of message.positions ?? []) newest.set(position.trackerId, position)
      if (message.type === 'snapshot' && !message.more) done()
    }
  })
  return { newest, close: () => socket.close() }
}
