import { spawn, type ChildProcess } from 'node:child_process'
import { cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { ask, call, until, type Service } from '../../test/support/service.ts'
import { FLEET, generate, onFreshService, option, round } from './fresh-service.ts'
import { memoryOf } from './process-figures.ts'
import type { LoadPlan, LoadResult } from './generator.ts'

/**
 * Drives the whole service from a process of its own and prints what it acknowledges, beside the ceiling of this machine
 * measured in the same run. Usage: node dist/bench/load/run-load.js [--seconds 10] [--fences 10000] [--warmup 30]
 */
const WINDOW = 64

const measureMs = option('seconds', 10) * 1000
const fences = option('fences', 10_000)
/** So long that every tracker has gone round once: the index of fences is made where trackers come for the first time. */
const warmupMs = option('warmup', 30) * 1000

const startCeiling = async (): Promise<{ port: number; child: ChildProcess }> => {
  const child = spawn(process.execPath, [fileURLToPath(new URL('./ceiling-server.js', import.meta.url))], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const port = await new Promise<number>((found) => child.stdout.once('data', (text) => found(Number(String(text)))))
  return { port, child }
}

const SHORT_WARMUP_MS = 4_000

const plans = (
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

/** Time until every consumer has handled all that was acknowledged, s. */
const drain = async (service: Service): Promise<number> => {
  const begun = performance.now()
  await until('consumers', async () => (await lagOf(service)).seconds === 0, 300_000)
  return (performance.now() - begun) / 1000
}

/** From acknowledging a point to seeing it in the history, ms. */
const historyDelay = async (service: Service, token: string, key: string): Promise<number> => {
  const recordedAt = new Date().toISOString()
  await ask(service, 'POST', '/location-history/bulk', {
    token: key,
    body: { points: [{ externalId: 'probe', recordedAt, lat: 52, lng: 21 }] },
  })
  const begun = performance.now()
  const { data } = await ask(service, 'GET', '/trackers?externalId=probe', { token })
  if (data.length === 0) return historyDelay(service, token, key) // made by this very point: its row follows
  const [tracker] = data
  await until(
    'history',
    async () =>
      (await ask(service, 'GET', `/location-histories?trackerId=${tracker._id}&from=${recordedAt}`, { token })).data
        .length > 0,
  )
  return performance.now() - begun
}

const makeDevices = async (service: Service, token: string, count: number): Promise<string[]> => {
  const keys: string[] = []
  for (let i = 0; i < count; i++)
    keys.push(
      (await ask(service, 'POST', '/tracker', { token, body: { name: `device ${i}`, kind: 'device' } })).data.deviceKey,
    )
  return keys
}

const hundredths = (value: number): number => Math.round(value * 100) / 100

const report = async (
  rows: { [name: string]: unknown },
  name: string,
  service: Service,
  plan: LoadPlan,
  top?: LoadResult,
): Promise<void> => {
  const result = await generate(plan)
  const lag = await lagOf(service)
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
      livePositions: result.livePositions,
    }),
    worstLagAtEnd: `${lag.consumer} ${round(lag.seconds)} s`,
    drainedAfterS: round(await drain(service)),
    rssMb: memoryOf(service.process.pid as number).rssMb,
    generatorCpuShare: hundredths(result.generatorCpuShare),
    closed: result.closed.length,
  }
  process.stdout.write(`${name} ${JSON.stringify(rows[name])}\n`)
}

const main = async (): Promise<void> => {
  const rows: { [name: string]: unknown } = {
    machine: `${cpus().length} × ${cpus()[0].model}, Node ${process.version}`,
    fences,
    trackers: FLEET.trackers,
  }
  const ceiling = await startCeiling()
  const bare = plans(ceiling.port, ['x'], ['x'], SHORT_WARMUP_MS)
  const ceiling100 = await generate(bare.frames100)
  const ceiling1 = await generate(bare.frames1)
  ceiling.child.kill('SIGKILL')
  // On services of their own: after minutes at the limit the history merges for a while, and who looks at the map waits for that.
  await onFreshService(rows, fences, async ({ service, token, key }) => {
    const viewers = { count: 200, intervalMs: 20, token, viewportShare: 0.01 }
    const plan = {
      ...plans(service.port, [key], [], SHORT_WARMUP_MS * 2).frames100,
      framePoints: 10,
      pointsPerSecond: 20_000,
      viewers,
    }
    await report(rows, '20,000 points/s with 200 viewports', service, plan)
    const delays: number[] = []
    for (let i = 0; i < 10; i++) delays.push(await historyDelay(service, token, key))
    rows['acknowledged to history query, ms (median of 10)'] = round(delays.sort((a, b) => a - b)[5])
  })
  await onFreshService(rows, fences, async ({ service, token, key }) => {
    const full = plans(service.port, [key], await makeDevices(service, token, 200), warmupMs)
    await report(rows, 'frames of 100', service, full.frames100, ceiling100)
    await report(rows, 'frames of 1', service, full.frames1, ceiling1)
  })
  process.stdout.write(`${JSON.stringify(rows, undefined, 2)}\n`)
}

await main()
