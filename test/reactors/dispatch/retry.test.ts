import type { ServerResponse } from 'node:http'
import { test } from 'tap'
import { ATTEMPTS_IN_ORDER, retryAfterMs, retryDelayMs } from '../../../src/reactors/dispatch/retry-schedule.ts'
import { until } from '../../support/service.ts'
import { advanceUntil, entry, openHook, openWorld, owner, SCHEDULE_MS, trackerId } from './world.ts'

const HOUR_MS = 3_600_000

test('delays follow the schedule within 20 %, the same for one run, and end', (t) => {
  const schedule = [5_000, 300_000]
  const delays = Array.from({ length: 1_000 }, (_, i) => retryDelayMs(schedule, 1, `run-${i}`) ?? 0)
  t.ok(Math.min(...delays) >= 4_000 && Math.min(...delays) < 4_100)
  t.ok(Math.max(...delays) <= 6_000 && Math.max(...delays) > 5_900)
  t.equal(retryDelayMs(schedule, 2, 'a'), retryDelayMs(schedule, 2, 'a'))
  t.equal(retryDelayMs(schedule, 3, 'a'), undefined)
  t.equal(retryAfterMs('120', 0), 120_000)
  t.equal(retryAfterMs('9999999', 0), 24 * HOUR_MS)
  t.equal(retryAfterMs('Thu, 01 Jan 1970 00:01:00 GMT', 10_000), 50_000)
  t.equal(retryAfterMs('soon', 0), undefined)
  t.end()
})

test('a run that always fails is attempted at each step of the schedule under one id, then dead', async (t) => {
  const hook = await openHook(t, () => 500)
  const scheduleMs = [5_000, 300_000, 1_800_000]
  const world = await openWorld(t, { scheduleMs })
  await world.webhook(hook)
  await world.decide([entry(world.clock.now())])
  await advanceUntil(world, 500, () => hook.seen.length === 2)
  await advanceUntil(world, 10_000, () => hook.seen.length === 3)
  await advanceUntil(world, 60_000, () => world.counted.dead === 1)
  t.equal(hook.ids().length, 1)
  const times = hook.seen.map(({ at }) => at * 1000)
  for (const [i, delay] of scheduleMs.entries()) {
    const gap = times[i + 1] - times[i]
    t.ok(gap >= delay * 0.8 - 1_000 && gap <= delay * 1.2 + 120_000, `step ${i}: ${gap} ms`)
  }
  await until('its log', async () => (await world.runs())[0]?.status === 'dead')
  t.equal((await world.runs())[0].attempts.length, 4)
  t.same(hook.bad, [])
})

test('a hung receiver, a redirect and an unreachable one are failures', async (t) => {
  const hook = await openHook(t, (_, response) => {
    if (hook.seen.length === 0) return undefined
    if (hook.seen.length > 1) return 200
    response.setHeader('location', hook.url)
    return 302
  })
  const world = await openWorld(t)
  await world.webhook(hook)
  await world.decide([entry(world.clock.now())])
  await advanceUntil(world, 1_000, () => world.counted.succeeded === 1)
  await until('its log', async () => (await world.runs())[0]?.status === 'succeeded')
  t.match((await world.runs())[0].attempts, [
    { error: 'no answer within 15 s', durationMs: 15_000 },
    { statusCode: 302 },
    { statusCode: 200 },
  ])
  t.equal(hook.seen.length, 3)
})

test('410 ends the run, deactivates the automation and skips what waits', async (t) => {
  const hook = await openHook(t, () => 410)
  const world = await openWorld(t)
  const { _id } = await world.webhook(hook)
  const now = world.clock.now()
  await world.decide([entry(now), entry(now + 1), entry(now + 2)])
  await until(
    'the end',
    async () => (await world.runs()).every(({ status }) => status !== 'pending') && (await world.runs()).length === 3,
  )
  t.same((await world.runs()).map(({ status, reason }) => reason ?? status).sort(), [
    'deactivated',
    'deactivated',
    'dead',
  ])
  t.equal(hook.seen.length, 1)
  const { body } = await world.call('GET', `/automation/${_id}`, { caller: owner })
  t.match(body.data, { isActive: false, notice: { reason: 'gone' } })
  await world.decide([entry(world.clock.now())])
  const again = await world.call('PATCH', `/automation/${_id}`, { caller: owner, body: { isActive: true } })
  t.equal(again.status, 200)
  t.notOk('notice' in again.body.data)
  hook.answer = () => 200
  await world.decide([entry(world.clock.now(), 7)])
  await until('it fires again', () => world.counted.succeeded === 1)
  t.same(
    hook.seen.slice(1).map(({ body }) => body.data.trackerId),
    [trackerId(7)],
    'and not for what was logged while it was inactive',
  )
})

test('Retry-After holds the next attempt back', async (t) => {
  const hook = await openHook(t, (_, response) => {
    if (hook.seen.length > 0) return 200
    response.setHeader('retry-after', '7200')
    return 429
  })
  const world = await openWorld(t)
  await world.webhook(hook)
  await world.decide([entry(world.clock.now())])
  await advanceUntil(world, 60_000, () => world.counted.succeeded === 1)
  const [first, second] = hook.seen
  t.ok(second.at - first.at >= 7_200 && second.at - first.at < 7_400, `${second.at - first.at} s`)
})

test('a receiver that fails for an hour is probed with its oldest run, then gets everything in order', async (t) => {
  const hook = await openHook(t, () => 500)
  const world = await openWorld(t)
  await world.webhook(hook)
  const start = world.clock.now()
  for (let tracker = 1; tracker <= 20; tracker++) await world.decide([entry(start, tracker), entry(start + 1, tracker)])
  await until('it is held to be down', () => (world.counted.failed ?? 0) >= 5)
  await advanceUntil(world, 60_000, () => world.clock.now() - start >= HOUR_MS)
  const during = hook.seen.length
  t.ok(during <= 20 + 8, `${during} attempts while it was down`)
  hook.answer = () => 200
  await advanceUntil(world, 300_000, () => world.counted.succeeded === 40)
  t.equal(hook.ids().length, 40)
  t.notOk(world.counted.dead)
  const succeeded = hook.seen.filter(({ status }) => status === 200)
  t.equal(succeeded.length, 40)
  const failedOf = (id: string) => hook.seen.filter((one) => one.id === id && one.status === 500)
  const oldest = hook.seen
    .filter(({ body }) => body.data.trackerId === trackerId(1))
    .sort((a, b) => a.body.data.sequence - b.body.data.sequence)[0].id
  const failed = failedOf(oldest)
  // The jitter of its last delay may hold the oldest back until after the probe that succeeds.
  const oldestDueAt = failed[failed.length - 1].at * 1000 + (retryDelayMs(SCHEDULE_MS, failed.length, oldest) ?? 0)
  t.ok(
    succeeded[0].id === oldest || oldestDueAt > succeeded[0].at * 1000 - 1_000,
    'the first to succeed is the oldest, where that is due',
  )
  for (let tracker = 1; tracker <= 20; tracker++) {
    const own = succeeded.filter(({ body }) => body.data.trackerId === trackerId(tracker))
    const kept = own.filter(({ id }) => failedOf(id).length < ATTEMPTS_IN_ORDER).map(({ body }) => body.data.sequence)
    t.equal(own.length, 2)
    t.same(
      kept,
      [...kept].sort((a, b) => a - b),
      'in order, but for a run that failed three times',
    )
  }
})

test('five days of nothing but failures deactivate with a notice', async (t) => {
  const hook = await openHook(t, () => 500)
  const world = await openWorld(t, { scheduleMs: [3_600_000] })
  const { _id } = await world.webhook(hook)
  const start = world.clock.now()
  for (let i = 0; i < 80; i++) await world.decide([entry(start + i, i)])
  const isActive = async () => (await world.call('GET', `/automation/${_id}`, { caller: owner })).body.data.isActive
  await advanceUntil(world, 1_800_000, async () => !(await isActive()))
  const { notice } = (await world.call('GET', `/automation/${_id}`, { caller: owner })).body.data
  t.equal(notice.reason, 'failing')
  const days = (Date.parse(notice.at) - start) / 86_400_000
  t.ok(days >= 5 && days < 5.1, `${days} days`)
  await until('the rest is skipped', async () => (await world.runs()).every(({ status }) => status !== 'pending'))
})

test('a run that is dead is attempted again when someone asks', async (t) => {
  const hook = await openHook(t, () => 500)
  const world = await openWorld(t, { scheduleMs: [] })
  await world.webhook(hook)
  await world.decide([entry(world.clock.now())])
  await until('it is dead', async () => (await world.runs())[0]?.status === 'dead')
  hook.answer = () => 200
  world.clock.advance(1)
  const { status } = await world.call('POST', `/automation-log/${hook.seen[0].id}/retry`, { caller: owner })
  t.equal(status, 200)
  await until('it succeeded', async () => (await world.runs())[0]?.status === 'succeeded')
  t.equal(hook.ids().length, 1)
  t.equal((await world.runs())[0].attempts.length, 2)
  t.equal(
    (await world.call('POST', '/automation-log/0190f3a2-0000-7000-8000-000000000099/retry', { caller: owner })).status,
    404,
  )
})

test('the repeat of a request for one more attempt is not refused for the attempt that it asked for itself', async (t) => {
  const hook = await openHook(t, () => 500)
  const world = await openWorld(t, { scheduleMs: [] })
  await world.webhook(hook)
  await world.decide([entry(world.clock.now())])
  const statusIs = (status: string) => until(status, async () => (await world.runs())[0]?.status === status)
  await statusIs('dead')
  hook.answer = () => undefined
  world.clock.advance(1)
  const retry = (own: number) =>
    world.call('POST', `/automation-log/${hook.seen[0].id}/retry`, { caller: owner, seed: Buffer.alloc(32, own) })
  t.equal((await retry(1)).status, 200)
  await statusIs('pending')
  t.match(await retry(1), { status: 200, body: { data: { status: 'pending' } } })
  t.match(await retry(2), { status: 409, body: { code: 'conflict' } }, "another's is")
  await advanceUntil(world, 1_000, () => world.counted.dead === 2)
})

test('410 of a url that was changed meanwhile ends its run and nothing else', async (t) => {
  const answers: ServerResponse[] = []
  const hook = await openHook(t, (_, response) => {
    answers.push(response)
    return undefined
  })
  const other = await openHook(t)
  const world = await openWorld(t)
  const { _id } = await world.webhook(hook)
  await world.decide([entry(world.clock.now(), 1)])
  await until('the call', () => answers.length === 1)
  const body = { automationDetails: { url: other.url } }
  t.equal((await world.call('PATCH', `/automation/${_id}`, { caller: owner, body })).status, 200)
  answers[0].writeHead(410).end()
  await until('the end of the run', () => world.counted.dead === 1)
  await world.settled()
  t.match((await world.call('GET', `/automation/${_id}`, { caller: owner })).body.data, { isActive: true })
  await world.decide([entry(world.clock.now(), 2)])
  await until('the new receiver', () => other.seen.length === 1)
})

test('an edit lets an automation begin anew whose receiver is held to be down', async (t) => {
  const hook = await openHook(t, () => 500)
  const other = await openHook(t)
  const world = await openWorld(t, { scheduleMs: [10 * HOUR_MS, 10 * HOUR_MS] })
  const { _id } = await world.webhook(hook)
  const now = world.clock.now()
  await world.decide([1, 2, 3, 4, 5].map((n) => entry(now, n)))
  await world.settled()
  await world.decide([entry(now, 6)])
  await world.settled()
  t.equal(hook.seen.length, 5, 'it is probed from now on')
  const body = { automationDetails: { url: other.url } }
  await world.call('PATCH', `/automation/${_id}`, { caller: owner, body })
  await until('what waited for the probe', () => other.seen.length === 1)
  t.equal(other.seen[0].body.data.trackerId, trackerId(6))
})
