import { Registry } from 'prom-client'
import { test } from 'tap'
import { eventLoopDelay } from '../../../src/kit/operations/metrics.ts'

test('the delay of the event loop is how late timers run, without the time that they wait anyway', async (t) => {
  const registry = new Registry()
  let resets = 0
  const histogram = { percentile: (of: number) => (of === 50 ? 9.9e6 : 12.5e6), max: 45e6, reset: () => (resets += 1) }
  eventLoopDelay(registry, histogram as never)
  const text = await registry.metrics()
  const delayOf = (statistic: string): number =>
    Number(new RegExp(`delay_seconds\\{statistic="${statistic}"\\} (\\S+)`).exec(text)?.[1])
  t.equal(delayOf('p50'), 0)
  t.ok(Math.abs(delayOf('p99') - 0.0025) < 1e-9, `${delayOf('p99')}`)
  t.ok(Math.abs(delayOf('max') - 0.035) < 1e-9, `${delayOf('max')}`)
  t.equal(resets, 1, 'it counts from the last look')
})
