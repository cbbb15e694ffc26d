import { test, type Test } from 'tap'
import { Failure } from '../../../src/kernel/errors.ts'
import type { UserCaller } from '../../../src/kernel/caller.ts'
import { latitude, list, object, optional, text, time, withDefault } from '../../../src/kernel/schema.ts'
import type { Projection } from '../../../src/kit/consumers/projection.ts'
import { defineResource } from '../../../src/kit/resource/resource.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { openServices, startProjections } from '../../support/open-services.ts'
import { routeCaller } from '../../support/call-route.ts'
import { folderOf } from '../../support/folder-of.ts'

const crate = defineResource({
  noun: 'crate',
  plural: 'crates',
  tag: 'Crates',
  fields: {
    name: text({ max: 20 }),
    lat: optional(latitude()),
    depotId: optional(text({ max: 50 })),
    tags: withDefault(list(text({ max: 10 }), { max: 5 }), []),
    box: optional(object({ wide: latitude(), high: optional(latitude()) })),
    dueAt: optional(time()),
    pin: optional(text({ max: 10 })),
  },
  readOnly: { grade: optional(text({ max: 5 })) },
  secrets: { writeOnly: ['pin'] },
  permissions: { view: 'view/crate', edit: 'edit/crate' },
  hubField: 'depotId',
  unique: { field: 'name' },
  table: { indexes: { equality: ['tags'], range: ['name'], text: ['name'] } },
  example: { name: 'Crate' },
  rules: {
    checks: async ({ values }) => {
      if (values.name === 'forbidden') throw new Failure('conflict')
    },
  },
})

const projection: Projection = { name: 'crates', version: 1, ...crate.rows }

const user = (organizationId: string, hubIds: UserCaller['hubIds'] = 'all'): UserCaller => ({
  kind: 'user',
  organizationId,
  userId: 'u',
  identityId: 'i',
  email: 'a@b.c',
  jti: 'j',
  expiresAt: 9e12,
  roleId: 'r',
  permissions: new Set(['view/crate', 'edit/crate']),
  permissionDetails: [],
  hubIds,
  teamIds: [],
})

const start = async (t: Test) => {
  const services = await openServices(folderOf(t), new FakeClock(), [crate])
  const { runner, settle } = await startProjections(services, [projection])
  t.teardown(async () => {
    await runner.close()
    await services.close()
  })
  const call = routeCaller({ routes: crate.routes(services), clock: services.clock, settle })
  return { ...services, runner, call, caller: user('org-1') }
}

test('create, read, replace, amend and delete', async (t) => {
  const { call, caller, clock } = await start(t)
  const made = await call('POST', '/crate', {
    caller,
    body: { name: 'A', lat: 1, dueAt: 1_767_225_600_000, pin: '1234' },
  })
  t.equal(made.status, 201)
  t.ok(made.applied)
  const { _id } = made.body.data
  t.match(made.body.data, {
    name: 'A',
    lat: 1,
    tags: [],
    organizationId: 'org-1',
    version: 1,
    dueAt: '2026-01-01T00:00:00.000Z',
  })
  t.match(_id, /^[0-9a-f]{8}-[0-9a-f]{4}-7/)
  t.notOk('pin' in made.body.data, 'a write-only field is never answered')

  const read = await call('GET', `/crate/${_id}`, { caller })
  t.same(read.body, made.body, 'whoever wrote reads its own write')
  t.equal(read.headers.etag, '"1"')
  t.same((await call('GET', `/crate/${_id}?fields=name`, { caller })).body.data, { _id, name: 'A' })
  t.equal((await call('GET', `/crate/${_id}?fields=nme`, { caller })).status, 400)

  clock.advance(1000)
  const written = await call('PUT', `/crate/${_id}`, { caller, body: { ...read.body.data, lat: 2, tags: ['x'] } })
  t.match(written.body.data, {
    version: 2,
    lat: 2,
    tags: ['x'],
    createdAt: '2026-01-01T00:00:00.000Z',
    updatedAt: '2026-01-01T00:00:01.000Z',
  })
  t.same(
    (await call('PUT', `/crate/${_id}`, { caller, body: { ...written.body.data } })).body.data.version,
    2,
    'nothing changed, nothing written',
  )

  const stale = await call('PUT', `/crate/${_id}`, { caller, body: { name: 'B', version: 1 } })
  t.match(stale, { status: 409, body: { code: 'stale_version', version: 2 } })
  t.equal(
    (await call('PATCH', `/crate/${_id}`, { caller, body: { name: 'B' }, headers: { 'If-Match': '"1"' } })).status,
    409,
  )

  const headers = { 'If-Match': '"2"' }
  t.match(
    await call('PATCH', `/crate/${_id}`, { caller, body: { name: 'B', version: 1 }, headers }),
    { status: 400, body: { message: '/version is 1 and If-Match says 2: send one of them, or the same' } },
    'two versions',
  )

  const amended = await call('PATCH', `/crate/${_id}`, {
    caller,
    body: { lat: null, box: { wide: 3 }, version: 2 },
    headers,
  })
  t.equal(amended.status, 200)
  t.notOk('lat' in amended.body.data)
  t.same((await call('PATCH', `/crate/${_id}`, { caller, body: { box: { high: 4 } } })).body.data.box, {
    wide: 3,
    high: 4,
  })
  t.match(await call('PATCH', `/crate/${_id}`, { caller, body: { box: { wide: null } } }), {
    status: 400,
    body: { errors: [{ path: '/box/wide' }] },
  })
  t.match(await call('PATCH', `/crate/${_id}`, { caller, body: { name: null } }), {
    status: 400,
    body: { errors: [{ path: '/name' }] },
  })
  const replaced = await call('PUT', `/crate/${_id}`, { caller, body: { name: 'C' } })
  t.notOk('box' in replaced.body.data, 'what a PUT leaves out is gone')
  t.same(replaced.body.data.tags, [], 'or has its default')

  t.same((await call('DELETE', `/crate/${_id}`, { caller })).body, { status: true })
  t.equal((await call('GET', `/crate/${_id}`, { caller })).status, 404)
  t.equal((await call('PUT', `/crate/${_id}`, { caller, body: { name: 'C' } })).status, 404)
})

test('bodies are checked with the path of each fault', async (t) => {
  const { call, caller } = await start(t)
  t.match(await call('POST', '/crate', { caller, body: { nam: 'A' } }), {
    status: 400,
    body: { errors: [{ path: '/name' }, { path: '/nam' }] },
  })
  t.match(await call('POST', '/crate', { caller, body: { name: 'A', lat: 91 } }), {
    status: 400,
    body: { errors: [{ path: '/lat', message: 'must be <= 90' }] },
  })
  for (const field of ['createdAt', 'grade', 'version']) {
    t.match(await call('POST', '/crate', { caller, body: { name: 'A', [field]: 'x' } }), {
      status: 400,
      body: { errors: [{ path: `/${field}` }] },
    })
  }
  t.equal((await call('POST', '/crate', { caller, body: { name: 'A', dueAt: '2026-02-31T00:00:00Z' } })).status, 400)
  t.equal((await call('POST', '/crate', { caller, body: { name: 'forbidden' } })).status, 409)
})

test('an id made by the client makes a create idempotent', async (t) => {
  const { call, caller } = await start(t)
  const body = { _id: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a', name: 'A', pin: '1' }
  const first = await call('POST', '/crate', { caller, body })
  t.equal(first.body.data._id, body._id)
  await call('PATCH', `/crate/${body._id}`, { caller, body: { lat: 1 } })
  t.match(await call('POST', '/crate', { caller, body }), {
    status: 201,
    body: { data: { _id: body._id, lat: 1, version: 2 } },
  })
  t.match(await call('POST', '/crate', { caller, body: { ...body, name: 'B' } }), {
    status: 409,
    body: { code: 'conflict' },
  })
  t.match(await call('POST', '/crate', { caller, body: { ...body, pin: '2' } }), {
    status: 409,
    body: { code: 'conflict' },
  })
  t.equal((await call('POST', '/crate', { caller: user('org-2'), body })).status, 409)
  const seed = Buffer.alloc(32, 7)
  const one = await call('POST', '/crate', { caller, seed, body: { name: 'S' } })
  const two = await call('POST', '/crate', { caller, seed, body: { name: 'S' } })
  t.equal(two.body.data._id, one.body.data._id, 'so does an Idempotency-Key')
})

test('a unique field', async (t) => {
  const { call, caller } = await start(t)
  const a = (await call('POST', '/crate', { caller, body: { name: 'Same' } })).body.data
  t.match(await call('POST', '/crate', { caller, body: { name: 'sAME' } }), {
    status: 409,
    body: { code: 'key_in_use', errors: [{ path: '/name' }] },
  })
  t.equal(
    (await call('POST', '/crate', { caller: user('org-2'), body: { name: 'Same' } })).status,
    201,
    'in each organization',
  )
  const all = await Promise.all(
    Array.from({ length: 6 }, () => call('POST', '/crate', { caller, body: { name: 'Race' } })),
  )
  t.same(all.map(({ status }) => status).sort(), [201, 409, 409, 409, 409, 409])
  t.equal((await call('PATCH', `/crate/${a._id}`, { caller, body: { name: 'Race' } })).status, 409)
  t.equal((await call('PATCH', `/crate/${a._id}`, { caller, body: { name: 'Other' } })).status, 200)
  const b = await call('POST', '/crate', { caller, body: { name: 'Same' } })
  t.equal(b.status, 201, 'is free again when its holder changed it')
  await call('DELETE', `/crate/${b.body.data._id}`, { caller })
  t.equal((await call('POST', '/crate', { caller, body: { name: 'Same' } })).status, 201, 'or is deleted')
})

test('lists', async (t) => {
  const { call, caller, clock } = await start(t)
  for (const name of ['delta', 'alpha', 'charlie', 'bravo', 'echo']) {
    clock.advance(1000)
    await call('POST', '/crate', { caller, body: { name: name, tags: name < 'c' ? ['early'] : [] } })
  }
  await call('POST', '/crate', { caller: user('org-2'), body: { name: 'foreign' } })
  const names = (answer: { body: { data: { name: string }[] } }) => answer.body.data.map(({ name }) => name)
  const all = await call('GET', '/crates', { caller })
  t.match(all.body, { total: 5, page: 1, limit: 20, nextCursor: null })
  t.same(names(await call('GET', '/crates?sortBy=name', { caller })), ['alpha', 'bravo', 'charlie', 'delta', 'echo'])
  t.same(names(await call('GET', '/crates?sortBy=name&sortOrder=desc&limit=2&page=2', { caller })), [
    'charlie',
    'bravo',
  ])
  t.same(
    names(await call('GET', '/crates?sortOrder=desc', { caller })),
    ['echo', 'bravo', 'charlie', 'alpha', 'delta'],
    'newest first',
  )
  t.same(names(await call('GET', '/crates?tags=early&sortBy=name', { caller })), ['alpha', 'bravo'])
  t.same(names(await call('GET', '/crates?q=char', { caller })), ['charlie'])
  t.same((await call('GET', '/crates?fields=name&q=echo', { caller })).body.data.map(Object.keys), [['_id', 'name']])

  const walked: string[] = []
  let cursor: string | null = null
  do {
    const page = await call('GET', `/crates?sortBy=name&limit=2${cursor === null ? '' : `&cursor=${cursor}`}`, {
      caller,
    })
    walked.push(...names(page))
    cursor = page.body.nextCursor
    if (cursor !== null) t.match(page.headers.link, '</api/v3/crates?sortBy=name&limit=2&sortOrder=asc&cursor=')
  } while (cursor !== null)
  t.same(walked, ['alpha', 'bravo', 'charlie', 'delta', 'echo'])

  const { nextCursor } = (await call('GET', '/crates?limit=2', { caller })).body
  for (const query of [
    'limit=0',
    'limit=501',
    'page=0',
    'sortBy=lat',
    'nme=x',
    'fields=nme',
    'cursor=abc',
    `sortBy=name&cursor=${nextCursor}`,
    `page=2&cursor=${nextCursor}`,
  ]) {
    t.equal((await call('GET', `/crates?${query}`, { caller })).status, 400, query)
  }
  t.equal((await call('GET', `/crates?limit=2&cursor=${nextCursor}`, { caller })).status, 200)
  t.equal(
    (await call('GET', `/crates?limit=2&cursor=${nextCursor}`, { caller: user('org-2') })).status,
    400,
    "another organization's cursor",
  )
})

test('whoever lacks the hub sees nothing, another organization neither', async (t) => {
  const { call, caller } = await start(t)
  const north = (await call('POST', '/crate', { caller, body: { name: 'N', depotId: 'north' } })).body.data
  const south = (await call('POST', '/crate', { caller, body: { name: 'S', depotId: 'south' } })).body.data
  const none = (await call('POST', '/crate', { caller, body: { name: '-' } })).body.data
  const clerk = user('org-1', ['north'])
  t.same(
    (await call('GET', '/crates', { caller: clerk })).body.data.map(({ name }: { name: string }) => name),
    ['N'],
  )
  t.same((await call('GET', '/crates?depotId=south', { caller: clerk })).body, {
    status: true,
    data: [],
    total: 0,
    page: 1,
    limit: 20,
    nextCursor: null,
  })
  t.same((await call('GET', '/crates', { caller: user('org-1', []) })).body.total, 0)
  for (const { _id } of [south, none]) {
    t.equal((await call('GET', `/crate/${_id}`, { caller: clerk })).status, 404)
    t.equal((await call('PATCH', `/crate/${_id}`, { caller: clerk, body: { lat: 1 } })).status, 404)
    t.equal((await call('DELETE', `/crate/${_id}`, { caller: clerk })).status, 404)
  }
  t.match(await call('PATCH', `/crate/${north._id}`, { caller: clerk, body: { depotId: 'south' } }), {
    status: 400,
    body: { errors: [{ path: '/depotId' }] },
  })
  t.match(await call('POST', '/crate', { caller: clerk, body: { name: 'X' } }), {
    status: 400,
    body: { errors: [{ path: '/depotId' }] },
  })
  const foreigner = user('org-2')
  t.equal((await call('GET', `/crate/${north._id}`, { caller: foreigner })).status, 404)
  t.equal((await call('PUT', `/crate/${north._id}`, { caller: foreigner, body: { name: 'X' } })).status, 404)
  t.equal((await call('DELETE', `/crate/${north._id}`, { caller: foreigner })).status, 404)
  t.equal((await call('GET', '/crates', { caller: foreigner })).body.total, 0)
})

test('writers at the same time lose nothing', async (t) => {
  const { call, caller } = await start(t)
  const { _id } = (await call('POST', '/crate', { caller, body: { name: 'A' } })).body.data
  const answers = await Promise.all([
    call('PATCH', `/crate/${_id}`, { caller, body: { lat: 1 } }),
    call('PATCH', `/crate/${_id}`, { caller, body: { tags: ['t'] } }),
    call('PATCH', `/crate/${_id}`, { caller, body: { depotId: 'd' } }),
  ])
  t.same(
    answers.map(({ status }) => status),
    [200, 200, 200],
  )
  t.match((await call('GET', `/crate/${_id}`, { caller })).body.data, { lat: 1, tags: ['t'], depotId: 'd', version: 4 })
  const many = await Promise.all(
    Array.from({ length: 12 }, (_, i) => call('PATCH', `/crate/${_id}`, { caller, body: { lat: 10 + i } })),
  )
  t.ok(
    many.every(({ status }) => status === 200),
    'however many they are',
  )
})

test('a secret stays out of the log and of the table, and a PUT that leaves it out keeps it', async (t) => {
  const { call, caller, log, tables, ...services } = await start(t)
  const { _id } = (await call('POST', '/crate', { caller, body: { name: 'A', pin: 'secretpin' } })).body.data
  await call('PUT', `/crate/${_id}`, { caller, body: { name: 'B' } })
  const events = await log.read(`crate-${_id}`, 0, 10)
  t.equal(events.length, 2)
  for (const { data } of events) t.notMatch(new TextDecoder().decode(data), 'secretpin')
  for await (const { row } of tables.scanAll('crates')) t.notMatch(JSON.stringify(row), 'secretpin')
  const writer = crate.writer({ log, tables, ...services })
  t.equal(writer.open((await writer.load(_id)).state, 'pin'), 'secretpin')
})
