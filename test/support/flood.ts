import { openSocket } from './open-socket.ts'
import { until } from './service.ts'

const FRAMES = 2
const FRAME_POINTS = 900
/** Just below the 1,024 bytes that a point's attributes may have. */
const note = 'x'.repeat(1_000)

/** Gateways that send all that their windows allow at once and wait for nothing. */
export interface Flood {
  /** Sends two frames of almost a megabyte over each connection; answers how many bytes are on their way when all are. */
  send(): Promise<number>
  close(): void
}

export const openFlood = async (service: { url: string }, ingestKey: string, connections: number): Promise<Flood> => {
  const sockets = await Promise.all(Array.from({ length: connections }, () => openSocket(service, 'ingest', ingestKey)))
  for (const { heard } of sockets) await heard(() => true)
  let recordedAt = Date.now() - 3_600_000
  const frameOf = (seq: number): string => {
    const point = () => ({ externalId: 'flooding', recordedAt: recordedAt++, lat: 1, lng: 2, attributes: { note } })
    return JSON.stringify({ type: 'points', seq, points: Array.from({ length: FRAME_POINTS }, point) })
  }
  const send = async (): Promise<number> => {
    let bytes = 0
    for (const { socket } of sockets)
      for (let seq = 1; seq <= FRAMES && socket.readyState === socket.OPEN; seq++) {
        const frame = frameOf(seq)
        bytes += frame.length
        socket.send(frame)
        // The next one only when this one is on its way: the sender has memory, too.
        await until('a frame to be on its way', () => socket.readyState !== socket.OPEN || socket.bufferedAmount === 0)
      }
    return bytes
  }
  const close = (): void => {
    for (const socket of sockets) socket.close()
  }
  return { send, close }
}
