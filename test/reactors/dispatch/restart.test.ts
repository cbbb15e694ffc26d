import { test } from 'tap'
import { runsStream } from '../../../src/features/automations/events.ts'
import { SteadyTime } from '../../../src/reactors/dispatch/retry-schedule.ts'
import { takePartition } from '../../../src/reactors/dispatch/partition.ts'
import { until } from '../../support/service.ts'
import { advanceUntil, entry, openHook, openWorld, trackerId } from './world.ts'
import { folderOf } from '../../support/folder-of.ts'

const ownIdsOf = (hook: Awaited<ReturnType<typeof openHook>>) => hook.seen.map(({ id }) => id)

test('a crash between an attempt and its record sends again under the same id, and owes nothing twice', async (t) => {
  const folder = folderOf(t)
  const hook = await openHook(t, () => undefined)
  const first = await openWorld(t, { folder })
  await first.webhook(hook)
  await first.decide([entry(first.clock.now())])
  await until('the attempt', () => hook.seen.length === 1)
  await first.end(true)
  hook.answer = () => 200
  const second = await openWorld(t, { folder, clock: first.clock })
  await until('the second attempt', () => second.counted.succeeded === 1)
  t.equal(hook.seen.length, 2)
  t.equal(hook.ids().length, 1)
  await second.end()
  const third = await openWorld(t, { folder, clock: first.clock })
  await third.decide([entry(third.clock.now(), 2)])
  await until('only the new one', () => third.counted.succeeded === 1)
  t.equal(hook.seen.length, 3)
  await until('their log', async () => (await third.runs()).length >= 2)
  t.equal((await third.runs()).length, 2)
})

test('thousands owed survive a restart, each is delivered once and in order', async (t) => {
  const folder = folderOf(t)
  const hook = await openHook(t, () => 500)
  const first = await openWorld(t, { folder, partitions: 1 })
  await first.webhook(hook)
  const start = first.clock.now()
  const count = 2_000
  for (let from = 0; from < count; from += 500)
    await first.decide(Array.from({ length: 500 }, (_, i) => entry(start + from + i, (from + i) % 97)))
  await until(
    'all are owed',
    async () =>
      (await first.log.head('transitions-0')) === 3 &&
      (await first.feed.lags(start)).every(({ events }) => events === 0),
  )
  await first.end()
  hook.answer = () => 200
  const before = hook.seen.length
  const second = await openWorld(t, { folder, clock: first.clock })
  await advanceUntil(second, 10_000, () => second.counted.succeeded === count)
  const after = hook.seen.slice(before)
  t.equal(new Set(after.map(({ id }) => id)).size, count)
  t.equal(after.length, count)
  const last = new Map<string, number>()
  let disorder = 0
  for (const { body } of after) {
    if (body.data.sequence <= (last.get(body.data.trackerId) ?? 0)) disorder++
    last.set(body.data.trackerId, body.data.sequence)
  }
  t.equal(disorder, 0)
  t.same(hook.bad, [])
  await until(
    'all rows',
    async () => (await second.runs()).filter(({ status }) => status === 'succeeded').length === count,
  )
})

test('what was owed is known again when the tables are lost', async (t) => {
  const hook = await openHook(t, () => 200)
  const first = await openWorld(t)
  await first.webhook(hook)
  await first.decide([entry(first.clock.now(), 1), entry(first.clock.now(), 2)])
  await until('both', () => first.counted.succeeded === 2)
  hook.answer = () => 500
  await first.decide([entry(first.clock.now(), 3)])
  await until('one fails', () => first.counted.failed === 1)
  first.dispatcher.release(0)
  await first.tables.reset(['dispatch-run'], 'dispatcher-0')
  const owned = await takePartition(
    { ...first, time: new SteadyTime(first.clock), onFailure: (error) => t.fail(String(error)) },
    0,
  )
  const [backlog] = owned.pending.all()
  t.equal(owned.pending.progress.source, 1)
  t.equal(owned.pending.progress.sequence, 4)
  t.equal(backlog.order.size, 1)
  t.match(backlog.order.idle(), [{ attempts: 1, trigger: { subject: { id: trackerId(3) } } }])
})

test('a second owner fences the first off', async (t) => {
  const hook = await openHook(t, () => 200)
  const world = await openWorld(t)
  await world.webhook(hook)
  await takePartition({ ...world, time: new SteadyTime(world.clock), onFailure: (error) => t.fail(String(error)) }, 0)
  await world.decide([entry(world.clock.now())])
  await until('the first has noticed', () => world.failures.length > 0)
  t.match(world.failures[0], { error: /another owner/ })
  await until('and takes the partition back', () => world.counted.succeeded === 1)
  t.same(ownIdsOf(hook).length, 1)
})

test('old events of the stream are let go, and a restart still knows where it stood', async (t) => {
  const folder = folderOf(t)
  const hook = await openHook(t, () => 200)
  const first = await openWorld(t, { folder })
  await first.webhook(hook)
  await first.decide([entry(first.clock.now(), 1)])
  await until('one', () => first.counted.succeeded === 1)
  first.clock.advance(31 * 86_400_000)
  await until('the beginning of the stream to be let go', async () => {
    first.clock.advance(3_600_000)
    return (await first.log.read(runsStream(0), 0, 1))[0].revision > 0
  })
  await first.end()
  const second = await openWorld(t, { folder, clock: first.clock })
  await second.decide([entry(second.clock.now(), 1)])
  await until('another', () => second.counted.succeeded === 1)
  t.same(
    hook.seen.map(({ body }) => body.data.sequence),
    [1, 2],
  )
})
