import { test } from 'tap'
import { idFrom } from '../../../src/kit/commands/ids.ts'
import { locationEntry } from '../../../src/features/locations/location-entry.ts'
import { locationStream, partitionOf } from '../../../src/features/locations/events.ts'
import { phoneTrackerIdOf } from '../../../src/features/trackers/declaration.ts'
import { openTrackers, ORG, PARTITIONS, userCaller } from '../../support/open-trackers.ts'
import { until } from '../../support/service.ts'

const HUB = idFrom('hub', 1)
const OTHER_HUB = idFrom('hub', 2)
const OTHER_ORG = idFrom('organization', 'b')

test('a tracker lives: made with a key told once, read, changed, its key replaced, deleted', async (t) => {
  const { call, devices, changes } = await openTrackers(t)
  const made = await call('POST', '/tracker', { name: 'Bus', kind: 'vehicle', externalId: 'bus-1' })
  t.equal(made.status, 201)
  const { deviceKey, ...tracker } = made.body.data
  t.match(tracker, {
    name: 'Bus',
    kind: 'vehicle',
    externalId: 'bus-1',
    version: 1,
    status: 'offline',
    organizationId: ORG,
  })
  t.match(deviceKey, new RegExp(`^${tracker._id}\\.[\\w-]{43}$`))
  t.same(
    Object.keys(tracker).filter((name) => name === 'keyHash' || name === 'hubIds'),
    [],
  )
  t.same((await call('GET', `/tracker/${tracker._id}`)).body.data, tracker)
  t.same((await call('GET', `/tracker/${tracker._id}?fields=name,status`)).body.data, {
    _id: tracker._id,
    name: 'Bus',
    status: 'offline',
  })
  t.same(await devices.authenticate(deviceKey), { kind: 'tracker', organizationId: ORG, trackerId: tracker._id })
  await t.rejects(devices.authenticate(`${deviceKey.slice(0, -1)}${deviceKey.endsWith('A') ? 'B' : 'A'}`), {
    code: 'unauthenticated',
  })
  await t.rejects(devices.authenticate(`${idFrom('x')}.${'a'.repeat(43)}`), { code: 'unauthenticated' })

  t.match((await call('PUT', `/tracker/${tracker._id}`, { ...tracker, name: 'Bus One' })).body.data, {
    name: 'Bus One',
    externalId: 'bus-1',
    version: 2,
  })
  t.match(await call('PUT', `/tracker/${tracker._id}`, tracker), { status: 409, body: { code: 'stale_version' } })
  t.match(await call('PATCH', `/tracker/${tracker._id}`, { externalId: 'bus-2' }), {
    status: 400,
    body: { errors: [{ path: '/externalId' }] },
  })
  t.match((await call('PATCH', `/tracker/${tracker._id}`, { kind: 'device', externalId: 'bus-1' })).body.data, {
    kind: 'device',
    name: 'Bus One',
  })
  t.equal((await devices.authenticate(deviceKey)).kind, 'tracker', 'its key still counts')

  const rotated = await call('POST', `/tracker/${tracker._id}/rotate-key`)
  t.equal(rotated.status, 200)
  await t.rejects(devices.authenticate(deviceKey), { code: 'unauthenticated' })
  t.match(await devices.authenticate(rotated.body.data.deviceKey), { trackerId: tracker._id })
  t.match(changes.at(-1), { organizationId: ORG, trackerId: tracker._id })

  t.same((await call('DELETE', `/tracker/${tracker._id}`)).body, { status: true })
  t.equal((await call('GET', `/tracker/${tracker._id}`)).status, 404)
  await t.rejects(devices.authenticate(rotated.body.data.deviceKey), { code: 'unauthenticated' })
  const anew = await call('POST', '/tracker', { name: 'Again', externalId: 'bus-1' })
  t.match(anew.body.data, { _id: tracker._id, name: 'Again', kind: 'device' }, 'the same tracker again')
  t.match(await devices.authenticate(anew.body.data.deviceKey), { trackerId: tracker._id })
})

test('what is not right is refused', async (t) => {
  const { call, put } = await openTrackers(t)
  await put('hub', HUB, { name: 'Hub', lat: 1, lng: 1 })
  await put('hub', OTHER_HUB, { name: 'Foreign', lat: 1, lng: 1 }, OTHER_ORG)
  t.match(await call('POST', '/tracker', {}), { status: 400, body: { errors: [{ path: '/name' }] } })
  t.match(await call('POST', '/tracker', { name: 'x', kind: 'plane' }), {
    status: 400,
    body: { errors: [{ path: '/kind' }] },
  })
  t.match(await call('POST', '/tracker', { name: 'x', foo: 1 }), { status: 400, body: { errors: [{ path: '/foo' }] } })
  t.match(await call('POST', '/tracker', { name: 'x', hubId: OTHER_HUB }), {
    status: 400,
    body: { errors: [{ path: '/hubId' }] },
  })
  t.match(await call('POST', '/tracker', { name: 'x', userId: HUB }), {
    status: 400,
    body: { errors: [{ path: '/userId' }] },
  })
  t.equal((await call('POST', '/tracker', { name: 'x', externalId: 'e' })).status, 201)
  t.match(await call('POST', '/tracker', { name: 'other', externalId: 'e' }), {
    status: 409,
    body: { code: 'key_in_use', errors: [{ path: '/externalId' }] },
  })
  const id = '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b99'
  const first = await call('POST', '/tracker', { _id: id, name: 'x' })
  t.equal(first.status, 201)
  const again = await call('POST', '/tracker', { _id: id, name: 'x' })
  t.same(
    [again.status, again.body.data._id, again.body.data.deviceKey],
    [201, id, undefined],
    'a client that made the id may repeat, the key is told once',
  )
  t.equal((await call('POST', '/tracker', { _id: id, name: 'x' }, { organizationId: OTHER_ORG })).status, 409)
  t.equal((await call('GET', `/tracker/${id}`, undefined, { organizationId: OTHER_ORG })).status, 404)
  t.equal((await call('DELETE', `/tracker/${id}`, undefined, { organizationId: OTHER_ORG })).status, 404)
  t.equal((await call('POST', `/tracker/${id}/rotate-key`, undefined, { organizationId: OTHER_ORG })).status, 404)
  const bare = { permissions: new Set<string>() }
  t.match(await call('GET', '/trackers', undefined, bare), { status: 200, body: { total: 0 } }, 'nothing but their own')
})

test('--trackers-max bounds an organization, deletion makes room, others are not bounded by it', async (t) => {
  const { call } = await openTrackers(t, { trackersMax: 2 })
  const [one] = [await call('POST', '/tracker', { name: '1' }), await call('POST', '/tracker', { name: '2' })]
  t.match(await call('POST', '/tracker', { name: '3' }), { status: 409, body: { code: 'quota' } })
  t.equal((await call('POST', '/tracker', { name: '3' }, { organizationId: OTHER_ORG })).status, 201)
  await call('DELETE', `/tracker/${one.body.data._id}`)
  t.equal((await call('POST', '/tracker', { name: '3' })).status, 201)
})

test('users see the trackers of their hubs; a phone belongs to all hubs of its user', async (t) => {
  const { call, put } = await openTrackers(t)
  const userId = idFrom('user', 'field')
  const vehicleId = idFrom('vehicle', 1)
  for (const hub of [HUB, OTHER_HUB]) await put('hub', hub, { name: 'Hub', lat: 1, lng: 1 })
  await put('user', userId, { name: 'F', email: 'f@example.com', roleId: 'r', status: 'active', hubId: [OTHER_HUB] })
  const ids: { [name: string]: string } = {}
  for (const body of [
    { name: 'here', hubId: HUB },
    { name: 'none' },
    { name: 'there', hubId: OTHER_HUB },
    { name: 'phone', kind: 'phone', userId },
  ])
    ids[body.name] = (await call('POST', '/tracker', body)).body.data._id
  const names = async (query: string, hubIds: string[] | 'all') =>
    (await call('GET', `/trackers?sortBy=name${query}`, undefined, { hubIds })).body.data.map(
      ({ name }: { name: string }) => name,
    )
  t.same(await names('', 'all'), ['here', 'none', 'phone', 'there'])
  t.same(await names('', [HUB]), ['here'])
  t.same(await names('', [OTHER_HUB]), ['phone', 'there'])
  t.same(await names('', []), [])
  t.same(await names(`&hubId=${OTHER_HUB}`, 'all'), ['phone', 'there'])
  t.same(await names(`&hubId=${OTHER_HUB}`, [HUB]), [])
  t.same(await names(`&userId=${userId}`, 'all'), ['phone'])
  t.same(await names(`&vehicleId=${vehicleId}`, 'all'), [])
  t.same(await names('&q=THE', 'all'), ['there'])
  await put('user', userId, { name: 'F', email: 'f@example.com', roleId: 'r', status: 'active', hubId: [HUB] }, ORG, 1)
  t.same(await names('', [HUB]), ['here', 'phone'], 'the hubs follow the user')

  const limited = { hubIds: [HUB] }
  t.equal((await call('GET', `/tracker/${ids.there}`, undefined, limited)).status, 404)
  t.equal((await call('PATCH', `/tracker/${ids.there}`, { name: 'x' }, limited)).status, 404)
  t.equal((await call('DELETE', `/tracker/${ids.none}`, undefined, limited)).status, 404)
  t.match(await call('POST', '/tracker', { name: 'x' }, limited), {
    status: 400,
    body: { errors: [{ path: '/hubId' }] },
  })
  t.match(await call('PATCH', `/tracker/${ids.here}`, { hubId: OTHER_HUB }, limited), {
    status: 400,
    body: { errors: [{ path: '/hubId' }] },
  })
  t.equal((await call('PATCH', `/tracker/${ids.here}`, { name: 'renamed' }, limited)).status, 200)

  const teamId = idFrom('team', 1)
  await put('vehicle', vehicleId, {
    name: 'V',
    type: 'car',
    hubId: OTHER_HUB,
    capacity: {},
    breaks: [],
    tags: [],
    constraints: {},
  })
  await put('team', teamId, { name: 'T', hubId: OTHER_HUB, userIds: [] })
  t.match(
    await call('POST', '/tracker', { name: 'x', hubId: HUB, vehicleId }, limited),
    { status: 400, body: { errors: [{ path: '/vehicleId', message: /names nothing/ }] } },
    "another hub's vehicle is not there",
  )
  t.match(await call('PATCH', `/tracker/${ids.here}`, { vehicleId }, limited), {
    status: 400,
    body: { errors: [{ path: '/vehicleId' }] },
  })
  t.match(await call('POST', '/tracker', { name: 'x', hubId: HUB, teamId }, limited), {
    status: 400,
    body: { errors: [{ path: '/teamId', message: /names nothing/ }] },
  })
  t.equal((await call('PATCH', `/tracker/${ids.here}`, { vehicleId })).status, 200)
  t.equal(
    (await call('PATCH', `/tracker/${ids.here}`, { name: 'again' }, limited)).status,
    200,
    'what others have set may stay',
  )
})

test('the team of a tracker is one of its hub, whichever of both is changed', async (t) => {
  const { call, put } = await openTrackers(t)
  for (const hub of [HUB, OTHER_HUB]) await put('hub', hub, { name: 'Hub', lat: 1, lng: 1 })
  const [teamId, there] = [idFrom('team', 1), idFrom('team', 2)]
  await put('team', teamId, { name: 'T', hubId: HUB, userIds: [] })
  await put('team', there, { name: 'U', hubId: OTHER_HUB, userIds: [] })
  const made = await call('POST', '/tracker', { name: 'Van', hubId: HUB, teamId })
  const path = `/tracker/${made.body.data._id}`
  const refused = { status: 400, body: { errors: [{ path: '/teamId', message: 'is a team of another hub' }] } }
  t.match(await call('PATCH', path, { hubId: OTHER_HUB }), refused)
  t.match(await call('PATCH', path, { teamId: there }), refused)
  t.match(await call('PATCH', path, { name: 'Bus' }), { status: 200, body: { data: { hubId: HUB, teamId } } })
  t.equal((await call('PATCH', path, { hubId: OTHER_HUB, teamId: there })).status, 200)
  t.equal((await call('PATCH', path, { hubId: HUB, teamId: null })).status, 200)
})

test('a phone is neither pinned to a hub, nor given to another user, nor taken before its user has it', async (t) => {
  const { call, put, connect, clock } = await openTrackers(t)
  for (const hub of [HUB, OTHER_HUB]) await put('hub', hub, { name: 'Hub', lat: 1, lng: 1 })
  const [userId, other] = [idFrom('user', 'field'), idFrom('user', 'other')]
  const person = { name: 'F', email: 'f@example.com', roleId: 'r', status: 'active' }
  await put('user', userId, { ...person, hubId: [OTHER_HUB] })
  await put('user', other, { ...person, hubId: [HUB] })
  const limited = { hubIds: [HUB] }
  const refused = (path: string) => ({ status: 400, body: { errors: [{ path }] } })
  const own = phoneTrackerIdOf(userId)
  t.match(await call('POST', '/tracker', { _id: own, name: 'x', hubId: HUB }, limited), refused('/_id'))
  t.match(await call('POST', '/tracker', { name: 'x', kind: 'phone', userId, hubId: HUB }, limited), refused('/hubId'))
  t.match(await call('POST', '/tracker', { name: 'x', kind: 'phone', userId }, limited), refused('/hubId'))
  const phone = connect(userCaller({ userId }))
  phone.send([{ recordedAt: clock.now() - 1000, lat: 1, lng: 1 }])
  await phone.until(() => phone.acked === 1)
  await until('it to be so', async () => (await call('GET', `/tracker/${own}`)).status === 200)
  for (const [path, body] of [
    ['/hubId', { hubId: HUB }],
    ['/hubId', { hubId: OTHER_HUB }],
    ['/userId', { userId: other }],
    ['/userId', { userId: null }],
    ['/kind', { kind: 'device' }],
  ] as const)
    t.match(await call('PATCH', `/tracker/${own}`, body), refused(path), JSON.stringify(body))
  t.equal((await call('PUT', `/tracker/${own}`, { name: 'x', kind: 'phone', userId, hubId: HUB })).status, 400)
  t.equal((await call('PUT', `/tracker/${own}`, { name: 'x', kind: 'phone', userId })).status, 200)
  const device = (await call('POST', '/tracker', { name: 'd', hubId: HUB })).body.data._id
  t.match(await call('PATCH', `/tracker/${device}`, { kind: 'phone', userId }, limited), refused('/kind'))
  t.same(
    (await call('GET', '/trackers', undefined, limited)).body.data.map(({ name }: { name: string }) => name),
    ['d'],
  )
  const pinned = { name: 'pinned', kind: 'phone', userId, hubId: HUB }
  await put('tracker', idFrom('tracker', 'old'), pinned)
  t.equal(
    (await call('GET', `/tracker/${idFrom('tracker', 'old')}`, undefined, limited)).status,
    404,
    'what an older log says of its hub counts no more',
  )
})

test('a link to the next page asks for the same fields, and lists filter by a name', async (t) => {
  const { call } = await openTrackers(t)
  for (const name of ['a', 'b']) await call('POST', '/tracker', { name })
  for (const query of ['fields=name', 'fields=name&status=offline']) {
    const { headers } = await call('GET', `/trackers?limit=1&${query}`)
    t.match(
      new URL(/<(.*)>/.exec(headers?.link ?? '')?.[1] ?? '', 'http://x').searchParams.get('fields'),
      'name',
      query,
    )
  }
  t.match((await call('GET', '/trackers?name=b')).body, { total: 1, data: [{ name: 'b' }] })
  for (const autoCreate of [true, false]) await call('POST', '/ingest-key', { name: `key ${autoCreate}`, autoCreate })
  t.match((await call('GET', '/ingest-keys?autoCreate=true')).body, { total: 1, data: [{ name: 'key true' }] })
})

test('trackers have tags, to filter by and to search', async (t) => {
  const { call } = await openTrackers(t)
  const make = async (name: string, tags?: string[]) => (await call('POST', '/tracker', { name, tags })).body.data._id
  const cold = await make('Van', ['cooled', 'night'])
  const night = await make('Car', ['night'])
  const none = await make('Bike')
  const found = async (query: string): Promise<string[]> =>
    (await call('GET', `/trackers?sortBy=name&sortOrder=asc&${query}`)).body.data.map(({ _id }: { _id: string }) => _id)
  t.same(await found('tags=night'), [night, cold])
  t.same(await found('tags=cooled&tags=other'), [cold])
  t.same(await found('tags=null'), [none])
  t.same(await found('q=cool'), [cold])
  t.equal((await call('PATCH', `/tracker/${cold}`, { tags: ['day'] })).status, 200)
  t.same(await found('tags=cooled'), [])
  t.match(await call('PATCH', `/tracker/${cold}`, { tags: ['a', 'a'] }), {
    status: 400,
    body: { errors: [{ path: '/tags' }] },
  })
  t.equal((await call('PATCH', `/tracker/${cold}`, { tags: null })).status, 200)
  t.notOk('tags' in (await call('GET', `/tracker/${cold}`)).body.data)
})

test('a deletion is answered when the position is forgotten: what is made anew begins without one', async (t) => {
  const { call, callRoute, devices, latest, log, clock } = await openTrackers(t)
  const [position, deletion] = ['pointsRecorded.v1', 'trackerDeleted.v1']
  for (let i = 0; i < 5; i++) {
    const { _id, deviceKey } = (await call('POST', '/tracker', { name: 'Bus', externalId: 'bus' })).body.data
    const send = async () =>
      callRoute('POST', '/location-history/bulk', {
        caller: await devices.authenticate(deviceKey),
        body: { points: [{ recordedAt: clock.now(), lat: 1, lng: 2 }] },
      })
    t.equal((await send()).body.data.accepted, 1)
    await until('it to be so', async () => latest.of(_id) !== undefined)
    await latest.flush()
    t.match((await call('GET', `/tracker/${_id}`)).body.data, { status: 'online' })
    t.equal((await call('DELETE', `/tracker/${_id}`)).status, 200)
    t.same(
      (await call('POST', '/tracker', { name: 'Anew', externalId: 'bus' })).body.data.lastSeenAt,
      undefined,
      'nothing of the one before',
    )
    t.equal((await call('DELETE', `/tracker/${_id}`)).status, 200)
    const types = (await log.read(locationStream(partitionOf(_id, PARTITIONS)), 0, 100)).map(({ type }) => type)
    t.same(types.slice(3 * i), [position, deletion, deletion], 'each deletion stands before what follows it')
  }
})

test('lists carry and filter by a status that the time alone changes', async (t) => {
  const { call, callRoute, clock, latest, devices } = await openTrackers(t)
  const made: { _id: string; name: string; deviceKey: string }[] = []
  for (let i = 0; i < 30; i++)
    made.push((await call('POST', '/tracker', { name: `t${String(i).padStart(2, '0')}` })).body.data)
  const send = async (i: number, recordedAt: number) => {
    const caller = await devices.authenticate(made[i].deviceKey)
    const answer = await callRoute('POST', '/location-history/bulk', {
      caller,
      body: { points: [{ recordedAt, lat: 1, lng: 2 }] },
    })
    t.equal(answer.body.data.accepted, 1, JSON.stringify(answer.body))
  }
  const start = clock.now()
  for (let i = 0; i < 10; i++) await send(i, start - 60_000)
  await send(10, start - 10 * 60_000)
  await send(11, start + 5 * 60_000)
  await until('it to be so', async () => {
    await latest.flush()
    return (await call('GET', '/trackers?status=online&limit=1')).body.total === 11
  })
  t.same(
    (await call('GET', '/trackers?status=stale')).body.data.map(({ name }: { name: string }) => name),
    ['t10'],
  )
  t.equal(
    (await call('GET', `/tracker/${made[11]._id}`)).body.data.lastSeenAt,
    new Date(start).toISOString(),
    'a clock that runs ahead was seen when it was logged',
  )
  const first = await call('GET', '/trackers?status=online&limit=6&sortBy=name')
  t.same([first.body.data.length, first.body.total, first.body.page], [6, 11, 1])
  const second = await call('GET', `/trackers?status=online&limit=6&sortBy=name&cursor=${first.body.nextCursor}`)
  t.same(
    [...first.body.data, ...second.body.data].map(({ name }: { name: string }) => name),
    ['t00', 't01', 't02', 't03', 't04', 't05', 't06', 't07', 't08', 't09', 't11'],
  )
  t.equal(second.body.nextCursor, null)
  t.match(await call('GET', `/trackers?status=offline&limit=6&sortBy=name&cursor=${first.body.nextCursor}`), {
    status: 400,
    body: { errors: [{ path: '/cursor' }] },
  })
  const offline = (await call('GET', '/trackers?status=offline&limit=6&sortBy=name')).body
  t.equal(offline.total, 18)
  await send(12, start - 10 * 60_000)
  await until('it to be so', async () => {
    await latest.flush()
    return (await call('GET', '/trackers?status=offline&limit=1')).body.total === 17
  })
  const rest = (await call('GET', `/trackers?status=offline&limit=60&sortBy=name&cursor=${offline.nextCursor}`)).body
  t.same(
    rest.data.map(({ name }: { name: string }) => name),
    made.slice(18).map(({ name }) => name),
    'none is passed over when one before it is seen',
  )
  t.match((await call('GET', '/trackers?fields=status&limit=1&sortBy=name')).body.data[0], {
    status: 'online',
    name: undefined,
  })
  clock.advance(10 * 60_000)
  t.equal((await call('GET', '/trackers?status=online')).body.total, 0)
  t.equal((await call('GET', '/trackers?status=stale')).body.total, 13)
  clock.advance(3_600_000)
  t.equal((await call('GET', '/trackers?status=offline')).body.total, 30)
})

test('ingest keys are told once, listed without their secret, and end with their deletion', async (t) => {
  const { call, devices, changes, put } = await openTrackers(t)
  await put('hub', HUB, { name: 'Hub', lat: 1, lng: 1 })
  const made = await call('POST', '/ingest-key', { name: 'Depot', autoCreate: true, hubId: HUB })
  t.equal(made.status, 201)
  const { key, _id } = made.body.data
  t.same(await devices.authenticate(key), {
    kind: 'ingestKey',
    organizationId: ORG,
    keyId: _id,
    autoCreate: true,
    hubId: HUB,
  })
  const listed = (await call('GET', '/ingest-keys')).body
  t.match(listed, {
    total: 1,
    data: [{ _id, name: 'Depot', autoCreate: true, hubId: HUB, key: undefined, keyHash: undefined }],
  })
  t.equal((await call('DELETE', `/ingest-key/${_id}`, undefined, { organizationId: OTHER_ORG })).status, 404)
  t.equal((await call('DELETE', `/ingest-key/${_id}`)).status, 200)
  await t.rejects(devices.authenticate(key), { code: 'unauthenticated' })
  await until('it to be so', async () => changes.some(({ keyId }) => keyId === _id))
  t.equal((await call('GET', '/ingest-keys')).body.total, 0)
})

test("a deletion is announced in the tracker's partition, once", async (t) => {
  const { call, log } = await openTrackers(t)
  const { _id } = (await call('POST', '/tracker', { name: 'x' })).body.data
  await call('DELETE', `/tracker/${_id}`)
  const partition = partitionOf(_id, PARTITIONS)
  await until('it to be so', async () => (await log.head(locationStream(partition))) >= 0)
  const entries = (await log.read(locationStream(partition), 0, 10)).map((event) => locationEntry(event, partition))
  t.match(entries, [{ kind: 'trackerDeleted', deletion: { organizationId: ORG, trackerId: _id } }])
  t.equal(entries.length, 1)
})
