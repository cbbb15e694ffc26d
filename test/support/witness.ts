import { openSocket } from './open-socket.ts'
import { ask, signUp } from './service.ts'

export interface Witness {
  /** Stops it; answers how many frames it sent and the longest wait for an acknowledgement. */
  end(): Promise<{ sent: number; acknowledged: number; longestMs: number }>
}

const EVERY_MS = 40

/** A well-behaved client of another organization: it sends a point at a time and waits for each acknowledgement. */
export const openWitness = async (service: { url: string }): Promise<Witness> => {
  const { token } = await signUp(service, 'Witness')
  const key = (await ask(service, 'POST', '/tracker', { token, body: { name: 'Witness', kind: 'device' } })).data
    .deviceKey
  const ingest = await openSocket(service, 'ingest', key)
  await ingest.heard(({ type }) => type === 'ready')
  let sent = 0
  let longestMs = 0
  let isOver = false
  const begun = Date.now()
  const run = async (): Promise<void> => {
    while (!isOver) {
      const at = performance.now()
      const seq = ++sent
      ingest.send({ type: 'points', seq, points: [{ recordedAt: begun - 100_000 + seq, lat: 50, lng: 20 }] })
      await ingest.heard((message) => message.type === 'ack' && message.seq >= seq)
      longestMs = Math.max(longestMs, performance.now() - at)
      await new Promise((resume) => setTimeout(resume, EVERY_MS)) // the pace of a device
    }
  }
  const running = run()
  running.catch(() => undefined)
  return {
    end: async () => {
      isOver = true
      await running
      const acknowledged = ingest.messages.filter(({ type }) => type === 'ack').at(-1)?.seq ?? 0
      ingest.close()
      return { sent, acknowledged, longestMs: Math.round(longestMs) }
    },
  }
}
