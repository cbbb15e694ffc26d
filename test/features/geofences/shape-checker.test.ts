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
  await checker.assertValid('one', good)
  const slow = checker.assertValid('one', hard())
  clock.advance(100)
  await t.rejects(slow, { code: 'invalid', message: /too long/ })
  await checker.assertValid('one', good)
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
  await checker.assertValid('one', good)
  const check = checker.assertValid('one', good)
  for (const run of timers.splice(0)) run()
  await check
  t.pass('what fell due meanwhile is no verdict on the shape')
})

test('a full queue is 503', async (t) => {
  const checker = new ShapeChecker(new FakeClock(), { waitingMax: 2 })
  t.teardown(() => checker.close())
  const checks = Array.from({ length: 6 }, () => checker.assertValid('one', good))
  const outcomes = await Promise.allSettled(checks)
  t.match(
    outcomes.filter(({ status }) => status === 'rejected'),
    [{ reason: { code: 'overloaded', status: 503 } }, {}, {}],
  )
  t.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 3)
})

test('organizations take turns, and in a full queue one with few places takes one of another with many', async (t) => {
  const checker = new ShapeChecker(new FakeClock(), { waitingMax: 4 })
  t.teardown(() => checker.close())
  const answered: string[] = []
  const check = (organizationId: string) =>
    checker.assertValid(organizationId, good).then(
      () => void answered.push(organizationId),
      (error: { code: string }) => void answered.push(`${organizationId}: ${error.code}`),
    )
  const many = Array.from({ length: 5 }, () => check('many'))
  await Promise.all([...many, check('few')])
  t.same(answered, ['many: overloaded', 'many', 'many', 'few', 'many', 'many'])
})

test('an organization has one import under way, and leaves places for others', async (t) => {
  const checker = new ShapeChecker(new FakeClock())
  t.teardown(() => checker.close())
  let end = (): void => undefined
  const ended = new Promise<void>((resolve) => (end = resolve))
  const held = checker.withImport('one', () => ended)
  await t.rejects(
    checker.withImport('one', async () => undefined),
    { code: 'overloaded', message: /of this organization/ },
  )
  t.equal(await checker.withImport('other', async () => 'imported'), 'imported')
  const further = ['third', 'fourth'].map((organizationId) => checker.withImport(organizationId, () => ended))
  await t.rejects(
    checker.withImport('fifth', async () => undefined),
    { code: 'overloaded' },
  )
  end()
  await Promise.all([held, ...further])
  t.equal(await checker.withImport('one', async () => 'again'), 'again')
})

test('a file is closed however many wait', async (t) => {
  const checker = new ShapeChecker(new FakeClock(), { waitingMax: 1 })
  t.teardown(() => checker.close())
  const text = JSON.stringify({ type: 'FeatureCollection', features: [{}] })
  const bytes = new SharedArrayBuffer(text.length)
  new Uint8Array(bytes).set(Buffer.from(text))
  const ids = { nameProperty: 'name', organizationId: 'one', geofenceGroupId: 'group' }
  const file = { bytes, ...ids, at: 0, from: 0, skip: [], progress: new SharedArrayBuffer(4) }
  const next = (number: number) => checker.run('one', { kind: 'next', import: number, ids: ['id'] })
  let waiting: Promise<unknown> = Promise.resolve()
  const number = await checker.withImport('one', async (open) => {
    await checker.run('one', { kind: 'open', import: open, ...file })
    t.match(await next(open), { step: { next: 1 } })
    waiting = Promise.allSettled(Array.from({ length: 4 }, () => checker.assertValid('many', good)))
    return open
  })
  await waiting
  t.same(await next(number), { step: 'lost' })
})
