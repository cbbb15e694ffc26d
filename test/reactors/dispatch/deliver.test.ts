import { test } from 'tap'
import { until } from '../../support/service.ts'
import { advanceUntil, entry, GROUP, openHook, openWorld, ORG, owner, trackerId, tripFinished } from './world.ts'

test('a transition is delivered once, signed, with what it refers to', async (t) => {
  const hook = await openHook(t)
  const world = await openWorld(t)
  const made = await world.webhook(hook)
  const at = world.clock.now() - 1000
  await world.decide([entry(at)])
  await until('the delivery', () => hook.seen.length === 1)
  const [{ headers, body, id }] = hook.seen
  t.same(hook.bad, [])
  t.equal(headers['x-event'], 'entry')
  t.equal(headers['content-type'], 'application/json')
  t.notMatch(id, /\./)
  t.equal(Number(headers['webhook-timestamp']), Math.floor(world.clock.now() / 1000))
  t.match(body, {
    type: 'onGeofenceEntry',
    timestamp: new Date(at).toISOString(),
    data: {
      organizationId: ORG,
      automationId: made._id,
      sequence: 1,
      geofenceGroupId: GROUP,
      tracker: { _id: trackerId(1), name: 'Bus' },
      user: { name: 'Driver' },
      geofence: { name: 'Yard' },
      point: { recordedAt: new Date(at).toISOString(), lat: 52.2 },
    },
  })
  t.notOk('geometry' in body.data.geofence)
  await until('its log', async () => (await world.runs())[0]?.status === 'succeeded')
  const log = await world.call('GET', '/automation-log', { caller: owner })
  t.match(log.body.data, [
    {
      _id: id,
      automationId: made._id,
      event: 'onGeofenceEntry',
      status: 'succeeded',
      attempts: [{ statusCode: 204, at: new Date(world.clock.now()).toISOString() }],
    },
  ])
  t.notOk('total' in log.body)
  t.same(world.failures, [])
})

test('trips, other events, other groups, old events and inactive automations', async (t) => {
  const hook = await openHook(t)
  const world = await openWorld(t)
  await world.webhook(hook, { event: 'onFinishTrip', rules: { fields: { 'trip.distance': { minimum: 1000 } } } })
  await world.webhook(hook, { event: 'onFinishTrip', rules: { fields: { 'trip.distance': { minimum: 2000 } } } })
  await world.webhook(hook, { isActive: false })
  await world.webhook(hook, { event: 'onGeofenceLeave' })
  const now = world.clock.now()
  await world.decide([tripFinished(now), entry(now), tripFinished(now - 25 * 3_600_000)])
  await until('runs', async () => (await world.runs()).some(({ status }) => status === 'succeeded'))
  t.same(
    hook.seen.map(({ body }) => body.type),
    ['onFinishTrip'],
  )
  t.match(hook.seen[0].body.data, {
    trip: { distance: 1234, trackerId: trackerId(1), finishedAt: new Date(now).toISOString() },
    tracker: { _id: trackerId(1) },
  })
  t.same((await world.runs()).map(({ status, reason }) => reason ?? status).sort(), ['historical', 'succeeded'])
})

test('an editor who does not see the tracker gets nothing', async (t) => {
  const hook = await openHook(t)
  const world = await openWorld(t)
  await world.webhook(hook)
  world.known.editors.set('u1', { ...owner, hubIds: ['h2'] })
  world.known.hubIds.set(trackerId(2), ['h1', 'h2'])
  const now = world.clock.now()
  await world.decide([entry(now, 1), entry(now, 2)])
  await until('the delivery', () => world.counted.succeeded === 1)
  t.same(
    hook.seen.map(({ body }) => body.data.trackerId),
    [trackerId(2)],
  )
  await until('its log', async () => (await world.runs()).length > 0)
  t.equal((await world.runs()).length, 1)
})

test('runs of one tracker keep their order through failures; sequence rises', async (t) => {
  const failed = new Set<string>()
  const hook = await openHook(t, ({ id, body }) => {
    if (body.data.trackerId !== trackerId(1) || failed.size >= 2 || failed.has(id)) return 204
    failed.add(id)
    return 500
  })
  const world = await openWorld(t)
  await world.webhook(hook)
  const now = world.clock.now()
  await world.decide([entry(now, 1), entry(now + 1, 2), entry(now + 2, 1), entry(now + 3, 1)])
  await until('first attempts', () => hook.seen.length === 2)
  t.same(
    hook.seen.map(({ body }) => body.data.trackerId).sort(),
    [trackerId(1), trackerId(2)],
    'the second of tracker 1 waits',
  )
  await advanceUntil(world, 1000, () => world.counted.succeeded === 4)
  const sequences = hook.seen
    .filter(({ body, status }) => body.data.trackerId === trackerId(1) && status === 204)
    .map(({ body }) => body.data.sequence)
  t.same(
    sequences,
    [...sequences].sort((a, b) => a - b),
  )
  t.same(world.counted, { succeeded: 4, failed: 2 })
  t.same(hook.bad, [])
})
