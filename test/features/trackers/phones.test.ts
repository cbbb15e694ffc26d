import { test } from 'tap'
import { phoneTrackerIdOf } from '../../../src/features/trackers/declaration.ts'
import { TRACKER } from '../../../src/features/trackers/events.ts'
import { trackerLookups } from '../../../src/features/trackers/views.ts'
import { appendFacts } from '../../../src/kit/commands/handle-command.ts'
import { idFrom, idSource } from '../../../src/kit/commands/ids.ts'
import { until } from '../../support/service.ts'
import { openTrackers, ORG, userCaller } from '../../support/open-trackers.ts'

const ADA = idFrom('user', 'ada')
const HUB = idFrom('hub', 'one')
const OTHER_HUB = idFrom('hub', 'two')

test('a phone is called as its user is, also after that is renamed, until somebody names it', async (t) => {
  const { call, put, connect, clock, positions } = await openTrackers(t)
  await put('user', ADA, { name: 'Ada Lovelace', hubId: [HUB] })
  const phone = connect(userCaller({ userId: ADA, permissions: new Set() }))
  phone.send([{ recordedAt: clock.now() - 1000, lat: 1, lng: 1 }])
  await phone.until(() => phone.acked === 1)
  const id = phoneTrackerIdOf(ADA)
  await until('its position', async () => (await positions()).length > 0)
  const names = async () => [
    (await call('GET', `/tracker/${id}`)).body.data.name,
    (await call('GET', '/trackers?q=a')).body.data.find(({ _id }: { _id: string }) => _id === id)?.name,
    (await positions())[0]?.name,
  ]
  t.same(await names(), Array(3).fill('Ada Lovelace'))
  await put('user', ADA, { name: 'Ada King', hubId: [HUB] }, ORG, 1)
  t.same(await names(), Array(3).fill('Ada King'))
  const before = (await call('GET', `/tracker/${id}`)).body.data
  t.match((await call('PUT', `/tracker/${id}`, before)).body.data, { name: 'Ada King', kind: 'phone' })
  t.match((await call('PATCH', `/tracker/${id}`, { teamId: null })).body.data, { name: 'Ada King' })
  t.equal(before.isNamedAfterUser, undefined)
  await put('user', ADA, { name: 'Ada Byron', hubId: [HUB] }, ORG, 2)
  t.same(await names(), Array(3).fill('Ada Byron'), 'what was written back named nothing')
  t.match((await call('PATCH', `/tracker/${id}`, { name: 'Van phone a' })).body.data, { name: 'Van phone a' })
  await put('user', ADA, { name: 'Ada', hubId: [HUB] }, ORG, 3)
  t.same(await names(), Array(3).fill('Van phone a'))
})

test('a phone that an earlier version made is called as its user is', async (t) => {
  const { call, put, clock, log, settle } = await openTrackers(t)
  const id = phoneTrackerIdOf(ADA)
  const at = new Date(clock.now()).toISOString()
  const values = { name: 'Phone', kind: 'phone', userId: ADA }
  const data = { organizationId: ORG, values, createdAt: at, at }
  const ids = [idSource(clock.now()).next()]
  const wrote = await appendFacts(log, `tracker-${id}`, [{ type: TRACKER.created, data }], ids, 0, {})
  if (wrote !== undefined) await settle(wrote, 60_000)
  await put('user', ADA, { name: 'Ada Lovelace', hubId: [HUB] })
  t.equal((await call('GET', `/tracker/${id}`)).body.data.name, 'Ada Lovelace')
  const own = await call('POST', '/tracker', { name: 'Phone', kind: 'phone', userId: ADA })
  t.equal((await call('GET', `/tracker/${own.body.data._id}`)).body.data.name, 'Phone', 'this one was named so')
})

test('a position says whose it is to whoever may see that user, and what it is in to all', async (t) => {
  const { call, put, connect, clock, positions } = await openTrackers(t)
  const vehicleId = idFrom('vehicle', 'van')
  await put('user', ADA, { name: 'Ada', hubId: [OTHER_HUB] })
  await put('vehicle', vehicleId, { name: 'Van', type: 'car', hubId: HUB })
  await put('hub', HUB, { name: 'One', lat: 1, lng: 1 })
  const body = { name: 'Unit', kind: 'vehicle', userId: ADA, vehicleId, hubId: HUB }
  const made = await call('POST', '/tracker', body)
  t.equal(made.status, 201, JSON.stringify(made.body))
  const { data } = made.body
  const device = connect({ kind: 'tracker', organizationId: ORG, trackerId: data._id })
  device.send([{ recordedAt: clock.now() - 1000, lat: 1, lng: 1 }])
  await device.until(() => device.acked === 1)
  await until('its position', async () => (await positions()).length > 0)
  const seen = async (...[permissions, hubIds]: [string[], 'all' | string[]]) => {
    const [position] = await positions('', { permissions: new Set(['view/location-history', ...permissions]), hubIds })
    t.equal((position as { vehicleId?: string }).vehicleId, vehicleId)
    return (position as { userId?: string }).userId
  }
  t.equal(await seen(['view/user'], 'all'), ADA)
  t.equal(await seen(['view/user'], [HUB, OTHER_HUB]), ADA)
  t.equal(await seen(['view/user'], [HUB]), undefined, 'a user of other hubs')
  t.equal(await seen([], 'all'), undefined, 'a role without users')
  await put('user', ADA, { name: 'Ada', hubId: [HUB] }, ORG, 1)
  t.equal(await seen(['view/user'], [HUB]), ADA, 'the hubs follow the user')
})

test('a field user reads their own phone and where it is, and of no other tracker anything', async (t) => {
  const { call, put, connect, clock, positions, known } = await openTrackers(t)
  const bob = idFrom('user', 'bob')
  const field = { userId: ADA, permissions: new Set<string>(), hubIds: [HUB] }
  for (const [id, name] of [
    [ADA, 'Ada'],
    [bob, 'Bob'],
  ])
    await put('user', id, { name, hubId: [HUB] })
  for (const userId of [ADA, bob]) {
    const phone = connect(userCaller({ userId, permissions: new Set() }))
    phone.send([{ recordedAt: clock.now() - 1000, lat: 1, lng: 1 }])
    await phone.until(() => phone.acked === 1)
  }
  await known.listed()
  await until('both positions', async () => (await positions()).length === 2)
  const [own, other] = [phoneTrackerIdOf(ADA), phoneTrackerIdOf(bob)]
  const list = await call('GET', '/trackers', undefined, field)
  t.match(list.body, { data: [{ _id: own, name: 'Ada', userId: ADA }], total: 1 })
  t.equal(list.body.data.length, 1)
  t.same((await call('GET', `/trackers?userId=${bob}`, undefined, field)).body.data, [])
  t.match(await call('GET', `/tracker/${own}`, undefined, field), { status: 200, body: { data: { name: 'Ada' } } })
  t.equal((await call('GET', `/tracker/${other}`, undefined, field)).status, 404)
  t.equal((await call('PATCH', `/tracker/${own}`, { name: 'x' }, field)).status, 403)
  t.match(await positions('', field), [{ trackerId: own, name: 'Ada', userId: ADA }])
  t.equal((await positions('', field)).length, 1)
  const program = { ...field, isService: true as const }
  for (const path of ['/trackers', `/tracker/${own}`, '/live-positions'])
    t.equal((await call('GET', path, undefined, program)).status, 403, `${path} by a program`)
})

test('trackers of a hub are its own and the phones of users who have it', async (t) => {
  const { call, put, connect, clock, known, tables } = await openTrackers(t)
  await put('hub', HUB, { name: 'One', lat: 1, lng: 1 })
  await put('user', ADA, { name: 'Ada', hubId: [HUB, OTHER_HUB] })
  const phone = connect(userCaller({ userId: ADA, permissions: new Set() }))
  phone.send([{ recordedAt: clock.now() - 1000, lat: 1, lng: 1 }])
  await phone.until(() => phone.acked === 1)
  await known.listed()
  const made = async (body: object) => (await call('POST', '/tracker', { kind: 'device', ...body })).body.data._id
  const [unit, loose] = [await made({ name: 'Unit', hubId: HUB }), await made({ name: 'Loose' })]
  const { trackersOf } = trackerLookups(tables)
  t.same(await trackersOf(ORG, 'hubIds', HUB), [phoneTrackerIdOf(ADA), unit].sort())
  t.same(await trackersOf(ORG, 'hubIds', [OTHER_HUB, 'null']), [phoneTrackerIdOf(ADA), loose])
})
