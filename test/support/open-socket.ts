import { WebSocket } from 'undici'
import { until } from './service.ts'

// biome-ignore lint/suspicious/noExplicitAny: a message of any type
type Message = any

export interface OpenSocket {
  socket: WebSocket
  /** All that came so far. */
  messages: Message[]
  send(message: object | string | Uint8Array): void
  /** The first message, of all that came or will come, that fits. */
  heard(fits: (message: Message) => boolean, limitMs?: number): Promise<Message>
  /** The close code. */
  closed: Promise<number>
  close(): void
}

/** Opens a channel; with a token it authenticates by a first message. */
export const openSocket = async (
  service: { url: string },
  channel: 'ingest' | 'live',
  token?: string,
): Promise<OpenSocket> => {
  const socket = new WebSocket(`${service.url.replace('http', 'ws')}/api/v3/${channel}`)
  const messages: Message[] = []
  let code: number | undefined
  socket.onmessage = ({ data }) => messages.push(JSON.parse(String(data)))
  const closed = new Promise<number>((done) => {
    socket.onclose = (event) => done((code = event.code))
  })
  await new Promise<void>((done, failed) => {
    socket.onopen = () => done()
    socket.onerror = (event) => failed(event.error ?? new Error('cannot connect'))
  })
  socket.onerror = () => undefined
  if (token !== undefined) socket.send(JSON.stringify({ type: 'auth', token }))
  return {
    socket,
    messages,
    closed,
    close: () => socket.close(),
    send: (message) =>
      socket.send(
        typeof message === 'string' || message instanceof Uint8Array ? (message as string) : JSON.stringify(message),
      ),
    heard: async (fits, limitMs = 120_000) => {
      let place = 0
      let found: Message
      const look = (): boolean => {
        for (; place < messages.length && found === undefined; place++)
          if (fits(messages[place])) found = messages[place]
        if (found === undefined && code !== undefined)
          throw new Error(`closed with ${code}; heard ${JSON.stringify(messages.slice(-3)).slice(0, 500)}`)
        return found !== undefined
      }
      await until(`a message; heard ${JSON.stringify(messages.slice(-3)).slice(0, 300)}`, look, limitMs)
      return found
    },
  }
}
