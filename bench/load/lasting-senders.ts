import { IngestClient } from '../../src/cli/ingest-client.ts'
import { FLEET } from './fresh-service.ts'

export interface Pace {
  /** Drops the frames sent to a service that is gone without closing its connections. */
  without(service: { url: string }): void
  /** Ends it; answers the number of acknowledged points. */
  end(): Promise<number>
}

export interface Load {
  pointsPerSecond: number
  /** The fleet whose points are sent, by turns. */
  trackers: number
}

const LINES = 20
const AGAIN_MS = 100
/** Time after which an unanswered frame is sent through another service. */
const ANSWER_MS = 2_000

/** Persistent devices: each sends a frame at its pace, and resends unacknowledged ones through another service. */
export const sendPaced = (services: () => readonly { url: string }[], key: string, load: Load): Pace => {
  let isOver = false
  let acknowledged = 0
  const open = new Map<IngestClient, string>()
  const points = Math.max(1, Math.round(load.pointsPerSecond / LINES))
  const line = async (index: number): Promise<void> => {
    for (let tries = index; !isOver; tries++) {
      const doors = services()
      const { url } = doors[tries % doors.length]
      let client: IngestClient | undefined
      try {
        client = await limited(IngestClient.connect(url, key))
        open.set(client, url)
        for (let next = index * points; !isOver; next = (next + LINES * points) % load.trackers) {
          const begunMs = performance.now()
          await limited(client.send(frame(next, points, load.trackers)).then(() => client?.drained()))
          acknowledged += points
          await rest(1_000 - (performance.now() - begunMs))
        }
      } catch {
        await rest(AGAIN_MS)
      } finally {
        client?.close()
        if (client !== undefined) open.delete(client)
      }
    }
  }
  const running = Promise.all(Array.from({ length: LINES }, (_, index) => line(index)))
  return {
    without: ({ url }) => {
      for (const [client, of] of open) if (of === url) client.close()
    },
    end: async () => {
      isOver = true
      await running
      return acknowledged
    },
  }
}

const frame = (first: number, count: number, trackers: number): object[] => {
  const recordedAt = Date.now()
  return Array.from({ length: count }, (_, i) => pointOf((first + i) % trackers, recordedAt))
}

/** A tracker's point: it goes north at 4 km/h. */
export const pointOf = (tracker: number, recordedAt: number): object => ({
  externalId: `load-${tracker}`,
  recordedAt,
  lat: FLEET.south + ((tracker * 0.618034 + recordedAt / 1e8) % 1),
  lng: FLEET.west + ((tracker * 0.414214) % 1),
})

const rest = (ms: number): Promise<void> => new Promise((resume) => setTimeout(resume, Math.max(0, ms)))

const limited = <Result>(work: Promise<Result>): Promise<Result> => {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<never>((_, failed) => {
    timer = setTimeout(() => failed(new Error('no answer')), ANSWER_MS)
  })
  return Promise.race([work, limit]).finally(() => clearTimeout(timer))
}
