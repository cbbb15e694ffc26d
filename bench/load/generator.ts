import { defer } from '../../src/kit/consumers/deferred.ts'
import { lapFrames, setTime, type Fleet, type FrameTemplate } from './frames.ts'
import { Delivered, type DeliveredFigures } from './delivered.ts'
import { cpuSecondsOf } from './process-figures.ts'
import { frameOf, RawSocket } from './raw-socket.ts'
import { type Percentiles, Sampled } from './sampled.ts'

/** Plan of the parent process, as JSON in the first argument. */
export interface LoadPlan {
  port: number
  /** One bearer for all connections, or one for each. */
  bearers: string[]
  connections: number
  window: number
  framePoints: number
  /** All frames that the window allows are written at once; otherwise each by itself. */
  together?: boolean
  fleet: Fleet
  /** Points name their tracker by externalId; otherwise each connection is a tracker. */
  named: boolean
  warmupMs: number
  measureMs: number
  /** Acknowledged points with which it ends before that time. */
  pointsMax?: number
  /** Points a second over all connections; absent: as fast as acknowledgements come. */
  pointsPerSecond?: number
  /** Subscribers that look at a part of the fleet each, and the token they use. */
  viewers?: { count: number; intervalMs: number; token: string; viewportShare: number }
  /** The process whose processor time is reported beside the acknowledged points. */
  servicePid?: number
}

export interface LoadResult {
  acknowledgedPointsPerSecond: number
  /** Acknowledged since the first frame, warm-up included, and the time that took. */
  points: number
  seconds: number
  ackMs: Percentiles
  liveMs?: Percentiles
  /** Positions that viewers got a second. */
  live?: DeliveredFigures
  /** Processor time of the service during the measurement, by thread, for each second. */
  cpuShares?: { [thread: string]: number }
  /** Share of one core: near 1 the generator, not the service, is measured. */
  generatorCpuShare: number
  closed: number[]
}

const DAY_MS = 86_400_000
const TICK_MS = 5

interface Line {
  socket: RawSocket
  laps: FrameTemplate[][]
  next: number
  sent: number
  acknowledged: number
  window: number
  /** `performance.now()` of each unacknowledged frame. */
  sentAt: number[]
  /** Time of the last frame, ms: no two frames of a line carry the same. */
  time: number
}

const run = async (plan: LoadPlan): Promise<LoadResult> => {
  const date = new Date().toISOString().slice(0, 10)
  const closed: number[] = []
  const ackMs = new Sampled()
  const delivered = new Delivered()
  let measuring = false
  let acknowledged = 0
  let points = 0
  const { promise: acknowledgedAll, resolve: enough } = defer()
  const onAck = (line: Line, seq: number): void => {
    const now = performance.now()
    while (line.acknowledged < seq) {
      line.acknowledged++
      const sentAt = line.sentAt.shift() as number
      points += plan.framePoints
      if (!measuring) continue
      acknowledged += plan.framePoints
      ackMs.add(now - sentAt)
    }
    if (points >= (plan.pointsMax ?? Number.POSITIVE_INFINITY)) enough()
    if (plan.pointsPerSecond === undefined) fill(line, plan.together)
  }
  const lines = await Promise.all(
    Array.from({ length: plan.connections }, (_, index) => openLine(plan, index, date, onAck, closed)),
  )
  const viewers = await openViewers(plan, (text) => {
    if (measuring) delivered.add(text)
  })
  process.stdout.write('begun\n') // the next line is the result
  const startedMs = performance.now()
  const stop =
    plan.pointsPerSecond === undefined
      ? startFull(lines, plan.together)
      : startPaced(lines, plan.pointsPerSecond / plan.framePoints)
  await new Promise((resume) => setTimeout(resume, plan.warmupMs))
  measuring = true
  const begun = performance.now()
  const cpuBefore = process.cpuUsage()
  const serviceBefore = plan.servicePid === undefined ? undefined : cpuSecondsOf(plan.servicePid)
  await Promise.race([acknowledgedAll, new Promise((resume) => setTimeout(resume, plan.measureMs))])
  measuring = false
  const cpu = process.cpuUsage(cpuBefore)
  const seconds = (performance.now() - begun) / 1000
  const serviceAfter = plan.servicePid === undefined ? undefined : cpuSecondsOf(plan.servicePid)
  stop()
  for (const { socket } of lines) socket.close()
  for (const socket of viewers) socket.close()
  return {
    acknowledgedPointsPerSecond: acknowledged / seconds,
    points,
    seconds: (performance.now() - startedMs) / 1000,
    ackMs: ackMs.percentiles(),
    ...(plan.viewers && delivered.told(seconds)),
    ...(serviceBefore && serviceAfter && { cpuShares: sharesOf(serviceBefore, serviceAfter, seconds) }),
    generatorCpuShare: (cpu.user + cpu.system) / 1e6 / seconds,
    closed: closed.splice(0),
  }
}

const sharesOf = (
  before: Map<string, number>,
  after: Map<string, number>,
  seconds: number,
): { [thread: string]: number } =>
  Object.fromEntries(
    [...after].map(([thread, spent]) => [thread, Math.max(0, spent - (before.get(thread) ?? 0)) / seconds]),
  )

const openLine = (
  plan: LoadPlan,
  index: number,
  date: string,
  onAck: (line: Line, seq: number) => void,
  closed: number[],
): Promise<Line> =>
  new Promise((done, failed) => {
    const line = {
      laps: lapsOf(plan, index, date),
      next: 0,
      sent: 0,
      acknowledged: 0,
      window: 0,
      sentAt: [],
      time: 0,
    } as unknown as Line
    const onText = (text: string, socket: RawSocket): void => {
      if (text.startsWith('{"type":"ack"')) onAck(line, (JSON.parse(text) as { seq: number }).seq)
      else if (text.startsWith('{"type":"ready"')) {
        line.socket = socket
        line.window = Math.min(plan.window, (JSON.parse(text) as { window: number }).window)
        socket.onClose = (code) => closed.push(code)
        done(line)
      } else throw new Error(`unexpected: ${text.slice(0, 200)}`)
    }
    RawSocket.open(plan.port, '/api/v3/ingest', plan.bearers[index % plan.bearers.length], onText).catch(failed)
  })

const lapsOf = (plan: LoadPlan, index: number, date: string): FrameTemplate[][] => {
  if (!plan.named) return [lapFrames(plan.fleet, [index], undefined, date)]
  const perLine = Math.floor(plan.fleet.trackers / plan.connections)
  const groups = Math.max(1, Math.floor(perLine / plan.framePoints))
  return Array.from({ length: groups }, (_, group) => {
    const first = index * perLine + group * plan.framePoints
    return lapFrames(
      plan.fleet,
      Array.from({ length: plan.framePoints }, (_, i) => first + i),
      (tracker) => `load-${tracker}`,
      date,
    )
  })
}

const sendOne = (line: Line): void => line.socket.write(nextFrame(line))

const nextFrame = (line: Line): Buffer => {
  const lap = line.laps[line.next % line.laps.length]
  const frame = lap[Math.floor(line.next / line.laps.length) % lap.length]
  line.next++
  line.sent++
  line.time = Math.max(Date.now(), line.time + 1)
  setTime(frame, line.time % DAY_MS)
  line.sentAt.push(performance.now())
  return Buffer.from(frame.bytes) // the template is written to again before the socket may have sent it
}

const fill = (line: Line, together = false): void => {
  const frames: Buffer[] = []
  while (line.sent - line.acknowledged < line.window)
    if (together) frames.push(nextFrame(line))
    else sendOne(line)
  if (frames.length > 0) line.socket.write(Buffer.concat(frames))
}

const startFull = (lines: Line[], together?: boolean): (() => void) => {
  for (const line of lines) fill(line, together)
  return () => {
    for (const line of lines) line.window = 0
  }
}

const startPaced = (lines: Line[], framesPerSecond: number): (() => void) => {
  let owed = 0
  let last = performance.now()
  let next = 0
  const timer = setInterval(() => {
    const now = performance.now()
    owed += ((now - last) / 1000) * framesPerSecond
    last = now
    for (let full = 0; owed >= 1 && full < lines.length; next++) {
      const line = lines[next % lines.length]
      if (line.sent - line.acknowledged >= line.window) full++
      else {
        sendOne(line)
        owed--
        full = 0
      }
    }
    owed = Math.min(owed, framesPerSecond) // a second of standstill is not made up for
  }, TICK_MS)
  return () => clearInterval(timer)
}

/** Resolves when each viewer has its snapshot: points come to dashboards that are open. */
const openViewers = async (plan: LoadPlan, onMessage: (text: string) => void): Promise<RawSocket[]> => {
  if (plan.viewers === undefined) return []
  const { count, intervalMs, token, viewportShare } = plan.viewers
  const { west, south, east, north } = plan.fleet
  const side = Math.sqrt(viewportShare)
  return Promise.all(
    Array.from({ length: count }, async (_, i) => {
      const x = west + (east - west) * (1 - side) * ((i * 0.618034) % 1)
      const y = south + (north - south) * (1 - side) * ((i * 0.414214) % 1)
      const bbox = [x, y, x + (east - west) * side, y + (north - south) * side]
      const opened = defer()
      const onText = (text: string): void => {
        if (text.startsWith('{"type":"positions"')) onMessage(text)
        else if (text.startsWith('{"type":"snapshot"') && !text.includes('"more":true')) opened.resolve()
      }
      const socket = await RawSocket.open(plan.port, '/api/v3/live', token, onText)
      socket.write(
        frameOf(
          Buffer.from(
            JSON.stringify({ type: 'subscribe', id: 'v', bbox, channels: ['positions'], interval: intervalMs }),
          ),
        ),
      )
      await opened.promise
      return socket
    }),
  )
}

if (process.argv[2] !== undefined) {
  const result = await run(JSON.parse(process.argv[2]) as LoadPlan)
  process.stdout.write(`${JSON.stringify(result)}\n`)
  process.exit(0)
}
