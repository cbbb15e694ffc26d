import { spawn, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { ask, call, type Service } from '../../test/support/service.ts'
import { FLEET, generate, type Prepared, round } from './fresh-service.ts'
import { memoryOf } from './process-figures.ts'
import type { LoadPlan, LoadResult } from './generator.ts'

const WINDOW = 64

export const startCeiling = async (): Promise<{ port: number; child: ChildProcess }> => {
  const child = spawn(process.execPath, [fileURLToPath(new URL('./ceiling-server.js', import.meta.url))], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const port = await new Promise<number>((found) => child.stdout.once('data', (text) => found(Number(String(text)))))
  return { port, child }
}

export const SHORT_WARMUP_MS = 4_000

/** Plans that drive the service to its limit. */
export const plans = (
  measureMs: number,
  port: number,
  gateway: string[],
  devices: string[],
  warmupMs: number,
): { frames100: LoadPlan; frames1: LoadPlan } => ({
  frames100: {
    port,
    bearers: gateway,
    connections: 20,
    window: WINDOW,
    framePoints: 100,
    fleet: FLEET,
    named: true,
    warmupMs,
    measureMs,
  },
  frames1: {
    port,
    bearers: devices,
    connections: 200,
    window: WINDOW,
    framePoints: 1,
    fleet: FLEET,
    named: false,
    warmupMs: SHORT_WARMUP_MS,
    measureMs,
  },
})

const lagOf = async (service: Service): Promise<{ consumer: string; seconds: number }> => {
  const { text } = await call(service, 'GET', '//metrics')
  const lines = text.split('\n').filter((line) => line.startsWith('waymark_consumer_lag_seconds{'))
  const lags = lines.map((line) => ({
    consumer: /consumer="([^"]+)"/.exec(line)?.[1] ?? '',
    seconds: Number(line.slice(line.lastIndexOf(' ') + 1)),
  }))
  return lags.reduce((worst, lag) => (lag.seconds > worst.seconds ? lag : worst), { consumer: 'none', seconds: 0 })
}

/** Both limits of a fresh service, by name. */
export const bothLoads = async (
  { service, token, key }: Prepared,
  measureMs: number,
  warmupMs: number,
): Promise<[string, LoadPlan][]> => {
  const devices = await makeDevices(service, token, 200)
  const { frames100, frames1 } = plans(measureMs, service.port, [key], devices, warmupMs)
  return [
    ['frames of 100', frames100],
    ['frames of 1', frames1],
  ]
}

/** A look costs a few reads of the log for each partition. */
const LOOK_MS = 200
const DRAIN_MS_MAX = 300_000

/** Time until every consumer has handled all acknowledged points, s. */
export const drain = async (service: Service): Promise<number> => {
  const begun = performance.now()
  while ((await lagOf(service)).seconds > 0) {
    if (performance.now() - begun > DRAIN_MS_MAX) throw new Error('consumers did not drain')
    await new Promise((resume) => setTimeout(resume, LOOK_MS))
  }
  return (performance.now() - begun) / 1000
}

/** Device keys of new trackers. */
export const makeDevices = async (service: Service, token: string, count: number): Promise<string[]> => {
  const keys: string[] = []
  for (let i = 0; i < count; i++)
    keys.push(
      (await ask(service, 'POST', '/tracker', { token, body: { name: `device ${i}`, kind: 'device' } })).data.deviceKey,
    )
  return keys
}

export const hundredths = (value: number): number => Math.round(value * 100) / 100

const rounded = (figures: { [name: string]: number }): { [name: string]: number } =>
  Object.fromEntries(Object.entries(figures).map(([name, value]) => [name, hundredths(value)]))

/** Processor time of the service's threads for a million acknowledged points, s. */
const perMillionPoints = ({ cpuShares, acknowledgedPointsPerSecond }: LoadResult): { [thread: string]: number } =>
  Object.fromEntries(
    Object.entries(cpuShares ?? {}).map(([thread, share]) => [thread, (share / acknowledgedPointsPerSecond) * 1e6]),
  )

export interface Report extends LoadResult {
  /** Points a second from the first frame until consumers have stored all of them. */
  storedPointsPerSecond: number
}

/** Runs a plan, adds its result to the rows, and answers it. */
export const report = async (
  rows: { [name: string]: unknown },
  name: string,
  service: Service,
  plan: LoadPlan,
  top?: LoadResult,
): Promise<Report> => {
  const result = await generate({ ...plan, servicePid: service.process.pid })
  const lag = await lagOf(service)
  const drainedAfterS = await drain(service)
  const storedPointsPerSecond = result.points / (result.seconds + drainedAfterS)
  rows[name] = {
    acknowledgedPointsPerSecond: Math.round(result.acknowledgedPointsPerSecond),
    ...(top && {
      ceiling: Math.round(top.acknowledgedPointsPerSecond),
      shareOfCeiling: hundredths(result.acknowledgedPointsPerSecond / top.acknowledgedPointsPerSecond),
    }),
    ackMsP50: round(result.ackMs.p50),
    ackMsP99: round(result.ackMs.p99),
    ...(result.liveMs && {
      liveMsP50: round(result.liveMs.p50),
      liveMsP99: round(result.liveMs.p99),
    }),
    ...(result.live && { live: rounded({ ...result.live }) }),
    ...(result.cpuShares && {
      mainThreadShare: hundredths(result.cpuShares.main),
      cpuSecondsPerMillionPoints: rounded(perMillionPoints(result)),
    }),
    worstLagAtEnd: `${lag.consumer} ${round(lag.seconds)} s`,
    drainedAfterS: round(drainedAfterS),
    storedPointsPerSecond: Math.round(storedPointsPerSecond),
    rssMb: memoryOf(service.process.pid as number).rssMb,
    generatorCpuShare: hundredths(result.generatorCpuShare),
    closed: result.closed.length,
  }
  process.stdout.write(`${name} ${JSON.stringify(rows[name])}\n`)
  return { ...result, storedPointsPerSecond }
}
