import { test } from 'tap'
import { folderOf } from '../../support/folder-of.ts'
import { until } from '../../support/service.ts'
import { advanceUntil, entry, openHook, openWorld, owner } from './world.ts'

const HOUR_MS = 3_600_000
const MINUTE_MS = 60_000

test('an automation counts for what is logged after it, also when the clock was set back', async (t) => {
  const hook = await openHook(t)
  const world = await openWorld(t)
  world.clock.set(HOUR_MS)
  const { _id } = await world.webhook(hook)
  world.clock.set(-3 * HOUR_MS)
  await world.decide([entry(world.clock.now(), 1)])
  await until('the run', () => world.counted.succeeded === 1)

  await world.call('PATCH', `/automation/${_id}`, { caller: owner, body: { isActive: false } })
  await world.decide([entry(world.clock.now(), 2)])
  await world.settled()
  world.clock.set(-HOUR_MS)
  await world.call('PATCH', `/automation/${_id}`, { caller: owner, body: { isActive: true } })
  world.clock.set(5 * HOUR_MS)
  await world.decide([entry(world.clock.now(), 3)])
  await until('another run', () => world.counted.succeeded === 2)
  t.equal(hook.seen.length, 2, 'and none for what was logged while it was inactive')
})

test('a step of the clock neither delays a retry nor hurries it', async (t) => {
  const hook = await openHook(t, () => 500)
  const world = await openWorld(t, { scheduleMs: [10 * MINUTE_MS, 10 * MINUTE_MS, 10 * MINUTE_MS] })
  await world.webhook(hook)
  await world.decide([entry(world.clock.now())])
  await world.settled()
  for (const [step, what] of [
    [-2 * HOUR_MS, 'back'],
    [2 * HOUR_MS, 'forwards'],
  ] as const) {
    const before = hook.seen.length
    world.clock.set(step)
    const begun = world.clock.monotonic()
    await advanceUntil(world, MINUTE_MS, () => hook.seen.length > before)
    const waitedMs = world.clock.monotonic() - begun
    t.ok(waitedMs >= 8 * MINUTE_MS && waitedMs <= 13 * MINUTE_MS, `${what}: ${waitedMs / MINUTE_MS} min`)
  }
})

test('a run and a probe wait no longer than they were put off when the clock is set back before a restart', async (t) => {
  const folder = folderOf(t)
  const hook = await openHook(t, () => 500)
  const scheduleMs = [10 * MINUTE_MS, 10 * MINUTE_MS, 10 * MINUTE_MS, 10 * MINUTE_MS]
  const first = await openWorld(t, { folder, scheduleMs })
  first.clock.set(5 * HOUR_MS)
  await first.webhook(hook)
  const now = first.clock.now()
  await first.decide(Array.from({ length: 5 }, (_, i) => entry(now, i)))
  await first.settled()
  t.equal(hook.seen.length, 5, 'it is held to be down')
  await first.end()
  first.clock.set(-5 * HOUR_MS)
  hook.answer = () => 204
  const begun = first.clock.monotonic()
  const second = await openWorld(t, { folder, clock: first.clock, scheduleMs })
  await advanceUntil(second, MINUTE_MS, () => second.counted.succeeded === 5)
  const waitedMs = first.clock.monotonic() - begun
  t.ok(waitedMs <= 13 * MINUTE_MS, `${waitedMs / MINUTE_MS} min`)
})
