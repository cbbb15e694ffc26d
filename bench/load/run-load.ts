import { cpus } from 'node:os'
import { ask, until, type Service } from '../../test/support/service.ts'
import { FLEET, generate, onFreshService, option, round } from './fresh-service.ts'
import { makeDevices, plans, report, SHORT_WARMUP_MS, startCeiling } from './measure-load.ts'

/**
 * Drives the whole service from a process of its own and prints the points acknowledged, beside the ceiling of this
 * machine in the same run. Usage: node dist/bench/load/run-load.js [--seconds 10] [--fences 10000] [--warmup 30]
 */
const measureMs = option('seconds', 10) * 1000
const fences = option('fences', 10_000)
/** Long enough for every tracker to go round once: the index of fences is made on trackers' first visits. */
const warmupMs = option('warmup', 30) * 1000

/** Time from the acknowledgement of a point until it is in the history, ms. */
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

const main = async (): Promise<void> => {
  const rows: { [name: string]: unknown } = {
    machine: `${cpus().length} × ${cpus()[0].model}, Node ${process.version}`,
    fences,
    trackers: FLEET.trackers,
  }
  const ceiling = await startCeiling()
  const bare = plans(measureMs, ceiling.port, ['x'], ['x'], SHORT_WARMUP_MS)
  const ceiling100 = await generate(bare.frames100)
  const ceiling1 = await generate(bare.frames1)
  ceiling.child.kill('SIGKILL')
  // On services of their own: after minutes at the limit the history merges, and map requests wait for that.
  await onFreshService(rows, fences, async ({ service, token, key }) => {
    const viewers = { count: 200, intervalMs: 20, token, viewportShare: 0.01 }
    const plan = {
      ...plans(measureMs, service.port, [key], [], SHORT_WARMUP_MS * 2).frames100,
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
    const full = plans(measureMs, service.port, [key], await makeDevices(service, token, 200), warmupMs)
    await report(rows, 'frames of 100', service, full.frames100, ceiling100)
    await report(rows, 'frames of 1', service, full.frames1, ceiling1)
  })
  process.stdout.write(`${JSON.stringify(rows, undefined, 2)}\n`)
}

await main()
