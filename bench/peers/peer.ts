import type { FenceFeature, Fleet } from '../load/frames.ts'
import { placeOf } from '../load/frames.ts'
import { type Percentiles, Sampled } from '../load/sampled.ts'

export interface Fix {
  tracker: number
  lat: number
  lng: number
  /** ms since the epoch. */
  recordedAt: number
}

/** One connection, which answers in the order of its frames. */
export interface PeerLine {
  /** Resolves with the acknowledgement of all of them; a tracker is at most once among them. */
  send(fixes: readonly Fix[]): Promise<void>
  close(): Promise<void>
}

/** Another system that is given the same fences and points. */
export interface Peer {
  name: string
  /** What is sure once a point is acknowledged. */
  promise: string
  /** Connections beyond which it gets slower, by its documentation. */
  connectionsMax: number
  /** Answers once they are in force. */
  load(fences: readonly FenceFeature[]): Promise<void>
  openLine(): Promise<PeerLine>
  /** Entries and exits found so far; undefined where it knows no fences. */
  transitions(): Promise<number | undefined>
  close(): Promise<void>
}

export interface PeerPlan {
  fleet: Fleet
  connections: number
  /** Unacknowledged frames of one connection. */
  window: number
  framePoints: number
  warmupMs: number
  measureMs: number
}

export interface PeerResult {
  acknowledgedPointsPerSecond: number
  ackMs: Percentiles
  transitionsPerThousandPoints?: number
  /** Share of one core: near 1 this process, not the peer, is measured. */
  generatorCpuShare: number
}

/** Drives a peer to its limit. Every connection has trackers of its own, which move a step from frame to frame. */
export const drive = async (peer: Peer, plan: PeerPlan): Promise<PeerResult> => {
  const connections = Math.min(plan.connections, peer.connectionsMax)
  const found = await peer.transitions()
  const ackMs = new Sampled()
  let points = 0
  let measured = 0
  let isMeasuring = false
  let hasEnded = false
  const lines = await Promise.all(Array.from({ length: connections }, () => peer.openLine()))
  const running = lines.map(async (line, index) => {
    const frames = framesOf(plan, index, connections)
    const keepSending = async (): Promise<void> => {
      while (!hasEnded) {
        const begun = performance.now()
        await line.send(frames())
        points += plan.framePoints
        if (!isMeasuring) continue
        measured += plan.framePoints
        ackMs.add(performance.now() - begun)
      }
    }
    await Promise.all(Array.from({ length: plan.window }, keepSending))
  })
  const measuring = async (): Promise<{ seconds: number; cpu: NodeJS.CpuUsage }> => {
    await pause(plan.warmupMs)
    const begun = performance.now()
    const before = process.cpuUsage()
    isMeasuring = true
    await pause(plan.measureMs)
    isMeasuring = false
    return { seconds: (performance.now() - begun) / 1000, cpu: process.cpuUsage(before) }
  }
  // A connection that fails ends the run at once.
  const { seconds, cpu } = await Promise.race([measuring(), Promise.all(running).then(ended)])
  hasEnded = true
  await Promise.all(running)
  await Promise.all(lines.map((line) => line.close()))
  const transitions = await peer.transitions()
  return {
    acknowledgedPointsPerSecond: measured / seconds,
    ackMs: ackMs.percentiles(),
    ...(transitions !== undefined && {
      transitionsPerThousandPoints: ((transitions - (found ?? 0)) / points) * 1000,
    }),
    generatorCpuShare: (cpu.user + cpu.system) / 1e6 / seconds,
  }
}

const ended = (): never => {
  throw new Error('every connection ended before the measurement')
}

const pause = (ms: number): Promise<void> => new Promise((resume) => setTimeout(resume, ms))

/** The next frame at each call: all groups of the connection's trackers in turn, a step further each time around. */
const framesOf = ({ fleet, framePoints }: PeerPlan, index: number, connections: number): (() => Fix[]) => {
  const perLine = Math.floor(fleet.trackers / connections)
  const groups = Math.max(1, Math.floor(perLine / framePoints))
  let next = 0
  let recordedAt = 0
  return () => {
    const first = index * perLine + (next % groups) * framePoints
    const step = Math.floor(next++ / groups)
    recordedAt = Math.max(Date.now(), recordedAt + 1)
    return Array.from({ length: framePoints }, (_, i) => ({
      tracker: first + i,
      ...placeOf(fleet, first + i, step),
      recordedAt,
    }))
  }
}
