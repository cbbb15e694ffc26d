import { test } from 'tap'
import { ShapeChecker } from '../../../src/features/geofences/shape-checker.ts'
import { FakeClock } from '../../support/fake-clock.ts'

const good = { center: { lat: 1, lng: 1 }, radius: 5 }
/** Many edges that all nearly meet: slow enough to be caught at it. */
const hard = () => {
  const ring = Array.from({ length: 9_999 }, (_, i) => [Math.cos(i * 2.399) * 0.5, Math.sin(i * 2.399) * 0.5])
  return { type: 'Polygon' as const, coordinates: [[...ring, ring[0]]] }
}

test('a check that passes its deadline is refused, and the next one is answered by a new worker', async (t) => {
  const clock = new FakeClock()
  const checker = new ShapeChecker(clock, { deadlineMs: 100 })
  t.teardown(() => checker.close())
  await checker.assertValid(good)
  const slow = checker.assertValid(hard())
  clock.advance(100)
  await t.rejects(slow, { code: 'invalid', message: /too long/ })
  await checker.assertValid(good)
  t.pass('answered')
})

test('a machine that stood still for longer than the deadline refuses nothing', async (t) => {
  let timers: (() => void)[] = []
  const after = (_delayMs: number, run: () => void): (() => void) => {
    timers.push(run)
    return () => void (timers = timers.filter((timer) => timer !== run))
  }
  const stalled = { now: () => 0, monotonic: () => 0, after }
  const checker = new ShapeChecker(stalled, { deadlineMs: 100 })
  t.teardown(() => checker.close())
  await checker.assertValid(good)
  const check = checker.assertValid(good)
  for (const run of timers.splice(0)) run()
  await check
  t.pass('what fell due meanwhile is no verdict on the shape')
})

test('a full queue is 503', async (t) => {
  const checker = new ShapeChecker(new FakeClock(), { waitingMax: 2 })
  t.teardown(() => checker.close())
  const checks = Array.from({ length: 6 }, () => checker.assertValid(good))
  const outcomes = await Promise.allSettled(checks)
  t.match(
    outcomes.filter(({ status }) => status === 'rejected'),
    [{ reason: { code: 'overloaded', status: 503 } }, {}, {}],
  )
  t.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 3)
})
