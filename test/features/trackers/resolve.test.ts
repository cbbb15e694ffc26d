import { test } from 'tap'
import type { Caller } from '../../../src/kernel/caller.ts'
import { KnownTrackers } from '../../../src/features/trackers/known-trackers.ts'
import { phoneTrackerIdOf, trackerIdOf } from '../../../src/features/trackers/declaration.ts'
import { idFrom } from '../../../src/kit/commands/ids.ts'
import { DIRECTORY } from '../../../src/kit/consumers/projection.ts'
import { locationStream, partitionOf } from '../../../src/features/locations/events.ts'
import { openTrackers, ORG, PARTITIONS, userCaller } from '../../support/open-trackers.ts'
import { until } from '../../support/service.ts'

const OTHER_ORG = idFrom('organization', 'b')
const [HUB, OTHER_HUB] = [idFrom('hub', 1), idFrom('hub', 2)]
const NEW = 3_000
/** A position of the log that no table has reached. */
const AHEAD = Number.MAX_SAFE_INTEGER
const gateway = (more: object = {}): Caller => ({
  kind: 'ingestKey',
  organizationId: ORG,
  keyId: 'k',
  autoCreate: true,
  ...more,
})

test('a gateway names trackers by either id; unknown ones are made when its key says so', async (t) => {
  const { connect, clock, call } = await openTrackers(t)
  const at = clock.now() - 1000
  const foreign = (await call('POST', '/tracker', { name: 'theirs' }, { organizationId: OTHER_ORG })).body.data._id
  const own = (await call('POST', '/tracker', { name: 'ours', externalId: 'ours' })).body.data._id
  const client = connect(gateway())
  client.send([
    { trackerId: own, recordedAt: at, lat: 1, lng: 1 },
    { trackerId: own.toUpperCase(), recordedAt: at + 1, lat: 1, lng: 1 },
    { externalId: 'ours', recordedAt: at + 2, lat: 1, lng: 1 },
    { trackerId: own, externalId: 'ours', recordedAt: at + 3, lat: 1, lng: 1 },
    { externalId: 'bus-1', recordedAt: at, lat: 1, lng: 1 },
    { trackerId: foreign, recordedAt: at, lat: 1, lng: 1 },
    { trackerId: idFrom('nobody'), recordedAt: at, lat: 1, lng: 1 },
    { trackerId: 'garbage', recordedAt: at, lat: 1, lng: 1 },
    { trackerId: own, externalId: 'bus-1', recordedAt: at, lat: 1, lng: 1 },
    { recordedAt: at, lat: 1, lng: 1 },
    { externalId: '', recordedAt: at, lat: 1, lng: 1 },
    { externalId: 'x'.repeat(201), recordedAt: at, lat: 1, lng: 1 },
    { externalId: 'a\nb', recordedAt: at, lat: 1, lng: 1 },
    { externalId: '🚚'.repeat(200), recordedAt: at, lat: 1, lng: 1 },
    { externalId: '🚚'.repeat(201), recordedAt: at, lat: 1, lng: 1 },
  ])
  await client.until(() => client.acked === 1)
  t.same(
    client.rejected.map(({ index, code }) => [index, code]),
    [
      [5, 'unknown_tracker'],
      [6, 'unknown_tracker'],
      [7, 'unknown_tracker'],
      [8, 'invalid'],
      [9, 'invalid'],
      [10, 'invalid'],
      [11, 'invalid'],
      [12, 'invalid'],
      [14, 'invalid'],
    ],
  )
  t.same(
    client.rejected.slice(3).map(({ message }) => message),
    [
      '/trackerId or /externalId must name one tracker',
      '/trackerId or /externalId must name one tracker',
      '/externalId must have 1 to 200 characters',
      '/externalId must have 1 to 200 characters',
      '/externalId must not contain control characters or line breaks',
      '/externalId must have 1 to 200 characters',
    ],
  )
  // The same again, now from memory.
  client.send([
    { trackerId: foreign, recordedAt: at, lat: 1, lng: 1 },
    { trackerId: own, externalId: 'bus-1', recordedAt: at, lat: 1, lng: 1 },
  ])
  await client.until(() => client.acked === 2)
  t.same(
    client.rejected.slice(9).map(({ code }) => code),
    ['unknown_tracker', 'invalid'],
  )
  t.match((await call('GET', '/trackers?externalId=bus-1')).body.data, [
    { _id: trackerIdOf(ORG, 'bus-1'), name: 'bus-1', kind: 'device', externalId: 'bus-1' },
  ])

  const strict = connect(gateway({ autoCreate: false }))
  strict.send([
    { externalId: 'bus-2', recordedAt: at, lat: 1, lng: 1 },
    { externalId: 'bus-1', recordedAt: at + 9, lat: 1, lng: 1 },
  ])
  await strict.until(() => strict.acked === 1)
  t.match(strict.rejected, [{ index: 0, code: 'unknown_tracker' }])
})

test("a tracker's key and a user's token speak for their own tracker alone", async (t) => {
  const { connect, clock, call, devices } = await openTrackers(t)
  const at = clock.now() - 1000
  const made = (await call('POST', '/tracker', { name: 'unit', externalId: 'unit' })).body.data
  const other = (await call('POST', '/tracker', { name: 'other', externalId: 'other' })).body.data
  const point = (more: object) => ({ recordedAt: at, lat: 1, lng: 1, ...more })
  const unit = connect(await devices.authenticate(made.deviceKey))
  const frame = [
    point({}),
    point({ trackerId: made._id, recordedAt: at + 1 }),
    point({ externalId: 'unit', recordedAt: at + 2 }),
    point({ trackerId: other._id }),
    point({ externalId: 'other' }),
    point({ trackerId: 'x' }),
  ]
  for (let seq = 1; seq <= 2; seq++) {
    unit.send(frame)
    await unit.until(() => unit.acked === seq)
    t.same(
      unit.rejected.filter((one) => one.seq === seq).map(({ index, code }) => [index, code]),
      [
        [3, 'forbidden_tracker'],
        [4, 'forbidden_tracker'],
        [5, 'forbidden_tracker'],
      ],
    )
  }
  const userId = idFrom('user', 'field')
  const phone = connect(userCaller({ userId, permissions: new Set() }))
  phone.send([
    point({}),
    point({ trackerId: phoneTrackerIdOf(userId), recordedAt: at + 1 }),
    point({ trackerId: made._id }),
    point({ externalId: 'unit' }),
  ])
  await phone.until(() => phone.acked === 1)
  t.same(
    phone.rejected.map(({ index, code }) => [index, code]),
    [
      [2, 'forbidden_tracker'],
      [3, 'forbidden_tracker'],
    ],
  )
  t.match((await call('GET', `/trackers?userId=${userId}`)).body.data, [
    { _id: phoneTrackerIdOf(userId), kind: 'phone', userId },
  ])
})

test('thousands of unknown ids in one frame, from two connections at once, are made once each', async (t) => {
  const { connect, clock, call, log } = await openTrackers(t)
  const at = clock.now() - 1000
  const frame = (offset: number) =>
    Array.from({ length: NEW }, (_, i) => ({ externalId: `v${i}`, recordedAt: at + offset, lat: 1, lng: 1 }))
  const clients = [connect(gateway()), connect(gateway())]
  for (const [i, client] of clients.entries()) client.send(frame(i))
  clients[0].send(frame(5))
  await Promise.all(clients.map((client) => client.until(() => client.acked >= 1)))
  await clients[0].until(() => clients[0].acked === 2)
  t.same(
    clients.flatMap(({ rejected }) => rejected),
    [],
  )
  t.equal((await call('GET', '/trackers?limit=1')).body.total, NEW)
  t.equal(await log.head(`tracker-${trackerIdOf(ORG, 'v77')}`), 0, 'one event each')
})

test('points that made a tracker are acknowledged when lists have it, and after ten seconds all the same', async (t) => {
  const { connect, clock, call, log, runner } = await openTrackers(t)
  await runner.close()
  const client = connect(gateway())
  const frame = (externalId: string) => [{ externalId, recordedAt: clock.now() - 1000, lat: 1, lng: 1 }]
  client.send(frame('late'))
  const location = locationStream(partitionOf(trackerIdOf(ORG, 'late'), PARTITIONS))
  await until('it to be so', async () => (await log.head(location)) >= 0)
  let isAnswered = false
  const gatewayCaller = gateway() as never
  const bulk = call('POST', '/location-history/bulk', { points: frame('bulk') }, gatewayCaller).finally(
    () => (isAnswered = true),
  )
  const other = locationStream(partitionOf(trackerIdOf(ORG, 'bulk'), PARTITIONS))
  await until('it to be so', async () => (await log.head(other)) >= (other === location ? 1 : 0))
  clock.advance(9_999)
  await new Promise((done) => setImmediate(done))
  t.same([client.acked, isAnswered], [0, false])
  clock.advance(1)
  await client.until(() => client.acked === 1)
  t.match((await bulk).body.data, { accepted: 1 })
})

test('at the limit known trackers go on and new ones are refused by name', async (t) => {
  const { connect, clock, call } = await openTrackers(t, { trackersMax: 3 })
  const client = connect(gateway())
  const frame = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, i) => ({
      externalId: `v${from + i}`,
      recordedAt: clock.now() - 1000,
      lat: 1,
      lng: 1,
    }))
  client.send(frame(0, 5))
  await client.until(() => client.acked === 1)
  t.same(
    client.rejected.map(({ code }) => code),
    ['tracker_limit', 'tracker_limit'],
  )
  const refused = client.rejected.map(({ index }) => index)
  const there = [0, 1, 2, 3, 4].find((i) => !refused.includes(i)) as number
  client.send(frame(there, there + 1))
  await client.until(() => client.acked === 2)
  t.equal(client.rejected.length, 2)
  await call('DELETE', `/tracker/${trackerIdOf(ORG, `v${there}`)}`)
  client.send(frame(9, 10))
  await client.until(() => client.acked === 3)
  t.equal(client.rejected.length, 2, 'a deletion makes room')
})

test('a deleted tracker is refused at once by what has no right to make it, and made anew by what has', async (t) => {
  const { connect, clock, call, devices, changes } = await openTrackers(t)
  const at = clock.now() - 1000
  const { _id, deviceKey } = (await call('POST', '/tracker', { name: 'x', externalId: 'x' })).body.data
  const client = connect(gateway())
  const strict = connect(gateway({ autoCreate: false }))
  for (const one of [client, strict]) one.send({ externalId: 'x', recordedAt: at, lat: 1, lng: 1 })
  await client.until(() => client.acked === 1)
  await strict.until(() => strict.acked === 1)
  await call('DELETE', `/tracker/${_id}`)
  await until('it to be so', async () => changes.some(({ trackerId }) => trackerId === _id))
  strict.send({ externalId: 'x', recordedAt: at + 1, lat: 1, lng: 1 })
  await strict.until(() => strict.acked === 2)
  t.match(strict.rejected, [{ code: 'unknown_tracker' }])
  await t.rejects(devices.authenticate(deviceKey), { code: 'unauthenticated' })
  client.send({ externalId: 'x', recordedAt: at + 2, lat: 1, lng: 1 })
  await client.until(() => client.acked === 2)
  t.same(client.rejected, [])
  await until('it to be so', async () => (await call('GET', `/tracker/${_id}`)).status === 200)
})

test('what the log has deleted is unknown, whatever the table still says', async (t) => {
  const { known, call, tables } = await openTrackers(t)
  const { _id } = (await call('POST', '/tracker', { name: 'x', externalId: 'x' })).body.data
  const strict = gateway({ autoCreate: false })
  const stored = (await tables.checkpoint(DIRECTORY))?.all as number
  t.match(await known.resolve(strict, [{ externalId: 'x' }]), [{ trackerId: _id }])
  known.noteDeleted(ORG, _id, { revision: 1, position: AHEAD })
  t.equal(known.known(strict, undefined, 'x'), undefined)
  t.same(await known.resolve(strict, [{ externalId: 'x' }, { trackerId: _id }]), ['unknown_tracker', 'unknown_tracker'])
  known.noteWritten(_id, { name: 'x', kind: 'device', externalId: 'x' })
  t.match(await known.resolve(strict, [{ trackerId: _id }]), [{ trackerId: _id }])
  known.noteDeleted(ORG, _id, { revision: 1, position: stored })
  t.match(await known.resolve(strict, [{ trackerId: _id }]), [{ trackerId: _id }], 'made anew by another process')
})

test('a tracker that is deleted while it is made for a point is unknown, one that is made anew is not', async (t) => {
  const { call, writer, tables, clock } = await openTrackers(t)
  const { _id } = (await call('POST', '/tracker', { name: 'x', externalId: 'x' })).body.data
  await call('DELETE', `/tracker/${_id}`)
  let isDeletedMeanwhile = true
  const ensure: typeof writer.ensure = async (...of) => {
    const made = await writer.ensure(...of)
    if (isDeletedMeanwhile && typeof made !== 'string')
      known.noteDeleted(ORG, _id, { revision: made.version, position: AHEAD })
    return made
  }
  const known: KnownTrackers = new KnownTrackers({
    ...{ tables, clock, partitionOf: () => 0 },
    writer: Object.create(writer, { ensure: { value: ensure } }),
  })
  known.noteDeleted(ORG, _id, { revision: 1, position: AHEAD })
  t.same(await known.resolve(gateway(), [{ externalId: 'x' }]), ['unknown_tracker'])
  t.equal(known.known(gateway(), undefined, 'x'), undefined)
  isDeletedMeanwhile = false
  await call('DELETE', `/tracker/${_id}`)
  known.noteDeleted(ORG, _id, { revision: 3, position: AHEAD })
  t.match(await known.resolve(gateway(), [{ externalId: 'x' }]), [{ trackerId: _id }])
  t.match(known.known(gateway(), undefined, 'x'), { trackerId: _id })
})

test('the key of a hub takes points for trackers of that hub alone', async (t) => {
  const { connect, clock, call, put, devices } = await openTrackers(t)
  const at = clock.now() - 1000
  const [userId, roamer] = [idFrom('user', 'there'), idFrom('user', 'both')]
  for (const hub of [HUB, OTHER_HUB]) await put('hub', hub, { name: 'Hub', lat: 1, lng: 1 })
  const person = { name: 'F', email: 'f@example.com', roleId: 'r', status: 'active' }
  await put('user', userId, { ...person, hubId: [OTHER_HUB] })
  await put('user', roamer, { ...person, hubId: [HUB, OTHER_HUB] })
  const make = async (body: object) => (await call('POST', '/tracker', body)).body.data._id as string
  const here = await make({ name: 'here', externalId: 'here', hubId: HUB })
  const there = await make({ name: 'there', externalId: 'there', hubId: OTHER_HUB })
  const none = await make({ name: 'none', externalId: 'none' })
  const phone = await make({ name: 'phone', kind: 'phone', userId })
  const shared = await make({ name: 'shared', kind: 'phone', userId: roamer })
  const { key } = (await call('POST', '/ingest-key', { name: 'K', autoCreate: true, hubId: HUB })).body.data
  const client = connect(await devices.authenticate(key))
  const names = [
    { trackerId: here },
    { externalId: 'here' },
    { trackerId: there },
    { externalId: 'there' },
    { externalId: 'none' },
    { trackerId: phone },
    { trackerId: shared },
    { externalId: 'fresh' },
  ]
  const codes = async (seq: number) => {
    client.send(names.map((name, i) => ({ ...name, recordedAt: at + seq * 10 + i, lat: 1, lng: 1 })))
    await client.until(() => client.acked === seq)
    return client.rejected.filter((one) => one.seq === seq).map(({ index, code }) => [index, code])
  }
  const refused = [2, 3, 4, 5].map((index) => [index, 'forbidden_tracker'])
  t.same(await codes(1), refused)
  t.same(await codes(2), refused, 'those that are remembered too')
  t.match((await call('GET', '/trackers?externalId=fresh')).body.data, [{ hubId: HUB }])
  await call('PATCH', `/tracker/${here}`, { hubId: OTHER_HUB })
  await call('PATCH', `/tracker/${none}`, { hubId: HUB })
  await until(
    'it to be so',
    async () =>
      JSON.stringify(await codes(client.acked + 1)) ===
      JSON.stringify([0, 1, 2, 3, 5].map((index) => [index, 'forbidden_tracker'])),
  )
})

test('keys without a hub are made by those who see all hubs', async (t) => {
  const { call, put } = await openTrackers(t)
  for (const hub of [HUB, OTHER_HUB]) await put('hub', hub, { name: 'Hub', lat: 1, lng: 1 })
  const limited = { hubIds: [HUB] }
  const make = async (body: object) => call('POST', '/ingest-key', { name: 'K', ...body }, limited)
  for (const body of [{}, { hubId: OTHER_HUB }])
    t.match(await make(body), { status: 400, body: { errors: [{ path: '/hubId' }] } })
  t.equal((await make({ hubId: HUB })).status, 201)
  const all = (await call('POST', '/ingest-key', { name: 'All' })).body.data._id
  t.equal((await call('DELETE', `/ingest-key/${all}`, undefined, limited)).status, 404)
})
