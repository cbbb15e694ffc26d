import { test, type Test } from 'tap'
import { directory } from '../../../projections/directory.ts'
import type { UserCaller } from '../../../src/kernel/caller.ts'
import { integer, oneOf, optional, text, withDefault } from '../../../src/kernel/schema.ts'
import { idFrom } from '../../../src/kit/commands/ids.ts'
import type { Method } from '../../../src/kit/http/route.ts'
import { defineResource, type Resource } from '../../../src/kit/resource/resource.ts'
import { callerWith } from '../../support/callers.ts'
import { routeCaller } from '../../support/call-route.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { folderOf } from '../../support/folder-of.ts'
import { openServices, startProjections } from '../../support/open-services.ts'

const PERMISSIONS = ['view/beacon', 'edit/beacon', 'view/data']

const open = async (t: Test, resource: Resource) => {
  const services = await openServices(folderOf(t), new FakeClock(), [resource])
  const { runner, settle } = await startProjections(services, [directory([resource.rows])])
  t.teardown(async () => {
    await runner.close()
    await services.close()
  })
  const routes = resource.routes(services)
  const callRoute = routeCaller({ routes, clock: services.clock, settle })
  const call = (method: Method, url: string, body?: unknown, caller: Partial<UserCaller> = {}, seed?: Buffer) =>
    callRoute(method, url, { body, caller: callerWith(PERMISSIONS, caller), seed })
  return { ...services, routes, call }
}

const beacon = defineResource({
  noun: 'beacon',
  plural: 'beacons',
  tag: 'Beacons',
  verbs: ['list', 'read', 'create', 'amend', 'delete'],
  fields: {
    name: text({ max: 20 }),
    serial: optional(text({ max: 20 })),
    strength: withDefault(integer({ min: 0, max: 9 }), 1),
  },
  fixed: ['serial'],
  idFrom: { field: 'serial', idOf: (organizationId, serial) => idFrom('beacon', organizationId, serial) },
  readOnly: { status: optional(oneOf('weak', 'strong')) },
  list: {
    computed: ['status'],
    filters: { called: { schema: { type: 'string' }, where: (name) => ({ nameKey: String(name).toLowerCase() }) } },
  },
  internal: { keyHash: optional(text({ max: 50 })), nameKey: optional(text({ max: 50 })) },
  table: {
    derived: ({ name }) => ({ nameKey: String(name).toLowerCase() }),
    indexes: { equality: ['nameKey'], range: ['name'], text: ['name'] },
  },
  body: { accepts: { comment: optional(text({ max: 50 })) } },
  secrets: {
    told: {
      member: 'key',
      example: '<key>',
      make: (_id, _services, seed) => ({ told: `key ${seed}`, kept: { keyHash: `hash ${seed}` } }),
      rotation: { path: 'rotate-key', operationId: 'rotateBeaconKey', summary: 'Make another key' },
    },
  },
  permissions: { view: 'view/beacon', edit: 'edit/beacon' },
  example: { name: 'Beacon' },
  present: (rows) => rows.map((row) => ({ ...row, status: Number(row.strength) < 5 ? 'weak' : 'strong' })),
  actions: [
    {
      path: 'boost',
      operationId: 'boostBeacon',
      summary: 'Make it stronger',
      body: { by: withDefault(integer({ min: 1, max: 9 }), 1) },
      run: ({ writes, origin, id: beaconId, row, body }) =>
        writes.change(origin, {
          id: beaconId,
          kind: 'amend',
          body: { strength: Number(row.strength) + Number(body.by) },
        }),
    },
  ],
})

test('a key is told once, and what is kept of it is never answered, filtered or sorted by', async (t) => {
  const { call, log } = await open(t, beacon)
  const first = (await call('POST', '/beacon', { name: 'A', serial: 's1', comment: 'kept nowhere' })).body.data
  t.match(first.key, /^key ./)
  t.same(Object.keys(first).sort(), [
    ...['_id', 'createdAt', 'key', 'name', 'organizationId', 'serial', 'status', 'strength', 'updatedAt', 'version'],
  ])
  t.notMatch(new TextDecoder().decode((await log.read(`beacon-${first._id}`, 0, 1))[0].data), /key |kept nowhere/)
  const again = (await call('POST', '/beacon', { name: 'A', serial: 's1' })).body.data
  t.equal(again._id, first._id, 'the id follows from the serial')
  t.notOk('key' in again, 'who creates it again is not told the key')
  t.notOk('keyHash' in (await call('GET', `/beacon/${first._id}`)).body.data)
  for (const query of ['keyHash=x', 'nameKey=a', 'sortBy=keyHash', 'fields=keyHash'])
    t.equal((await call('GET', `/beacons?${query}`)).status, 400, query)
  const rotated = (await call('POST', `/beacon/${first._id}/rotate-key`)).body.data
  t.match(rotated.key, /^key ./)
  t.not(rotated.key, first.key)
  t.equal(rotated.version, 2)
  t.match((await call('GET', '/beacons?called=A')).body, { total: 1 })
})

test('a repeat of the same request, whose answer was lost, is told again; nobody else is', async (t) => {
  const { call } = await open(t, beacon)
  const seeds = ['create', 'other', 'rotate', 'third'].map((name) => Buffer.alloc(32, name))
  const make = (seed: Buffer) => call('POST', '/beacon', { name: 'A', serial: 's1' }, {}, seed)
  const first = await make(seeds[0])
  t.same((await make(seeds[0])).body.data, first.body.data)
  t.notOk('key' in (await make(seeds[1])).body.data)
  const rotate = (seed: Buffer) => call('POST', `/beacon/${first.body.data._id}/rotate-key`, undefined, {}, seed)
  const rotated = await rotate(seeds[2])
  t.not(rotated.body.data.key, first.body.data.key)
  t.same((await rotate(seeds[2])).body.data, rotated.body.data)
  t.notOk('key' in (await make(seeds[0])).body.data, 'nor what does not hold any more')
  const last = await rotate(seeds[3])
  t.match(await rotate(seeds[2]), { status: 409, body: { code: 'conflict' } }, 'an earlier one does not come back')
  t.same((await rotate(seeds[3])).body.data, last.body.data)
})

test('a repeat of the same request answers what it made, although it was deleted and made anew since', async (t) => {
  const { call } = await open(t, beacon)
  const seed = Buffer.alloc(32, 'create')
  const make = () => call('POST', '/beacon', { name: 'A', serial: 's1' }, {}, seed)
  const { body } = await make()
  const { _id, version } = body.data
  t.match(await call('DELETE', `/beacon/${_id}`), { status: 200 })
  t.match(await make(), { status: 201, body: { data: { _id, name: 'A', version } } })
  t.match(await call('GET', `/beacon/${_id}`), { status: 404 }, 'and does not make it again')
  t.match(await call('POST', '/beacon', { name: 'B', serial: 's1' }), { status: 201 })
  const again = await make()
  t.match(again, { status: 201, body: { data: { _id, name: 'A', version } } })
  t.notOk('key' in again.body.data, 'its key is not told: it does not hold any more')
  t.match((await call('GET', `/beacon/${_id}`)).body.data, { name: 'B' })
})

test('an id that follows from a field: set for good, free again after a deletion', async (t) => {
  const { call } = await open(t, beacon)
  const { _id } = (await call('POST', '/beacon', { name: 'A', serial: 's1' })).body.data
  t.match(await call('POST', '/beacon', { name: 'B', serial: 's1' }), {
    status: 409,
    body: { code: 'key_in_use', errors: [{ path: '/serial' }] },
  })
  t.match((await call('POST', '/beacon', { _id: idFrom('x'), name: 'A', serial: 's2' })).body.errors, [
    { path: '/_id' },
  ])
  t.match((await call('PATCH', `/beacon/${_id}`, { serial: 's3' })).body.errors, [{ path: '/serial' }])
  t.equal((await call('PATCH', `/beacon/${_id}`, { serial: 's1', name: 'C' })).status, 200)
  await call('DELETE', `/beacon/${_id}`)
  const anew = await call('POST', '/beacon', { name: 'B', serial: 's1' })
  t.match(anew, { status: 201, body: { data: { _id, version: 4, name: 'B' } } })
  const plain = (await call('POST', '/beacon', { name: 'P' })).body.data
  await call('DELETE', `/beacon/${plain._id}`)
  t.equal((await call('POST', '/beacon', { _id: plain._id, name: 'P' })).status, 409, 'any other id is used up')
})

test('verbs, actions and what a write waits for', async (t) => {
  const { call, routes, ...services } = await open(t, beacon)
  t.same(routes.map(({ method, path }) => `${method} ${path}`).sort(), [
    'DELETE /beacon/{beaconId}',
    'GET /beacon/{beaconId}',
    'GET /beacons',
    'PATCH /beacon/{beaconId}',
    'POST /beacon',
    'POST /beacon/{beaconId}/boost',
    'POST /beacon/{beaconId}/rotate-key',
  ])
  const { _id } = (await call('POST', '/beacon', { name: 'A' })).body.data
  t.match((await call('POST', `/beacon/${_id}/boost`, { by: 4 })).body.data, { strength: 5, status: 'strong' })
  t.match((await call('POST', `/beacon/${_id}/boost`, {})).body.data, { strength: 6 }, 'with its defaults')
  t.match((await call('POST', `/beacon/${_id}/boost`, { by: 0 })).body.errors, [{ path: '/by' }])
  t.equal((await call('POST', `/beacon/${idFrom('nobody')}/boost`, {})).status, 404)
  t.equal((await call('POST', `/beacon/${_id}/boost`, {}, { permissions: new Set(['view/beacon']) })).status, 403)
  const waiting = beacon.routes(services, { settles: ({ kind, id: of }) => [{ consumer: `${kind} ${of}` }] })
  const settles = (method: Method, path: string) =>
    waiting.find((route) => route.method === method && route.path === path)?.settles?.({ beaconId: 'B1' })
  t.same(settles('DELETE', '/beacon/{beaconId}'), [{ consumer: 'delete b1' }])
  t.same(settles('PATCH', '/beacon/{beaconId}'), [{ consumer: 'write b1' }])
  t.equal(settles('GET', '/beacon/{beaconId}'), undefined)
})

test('a member that is known at answer time only filters a list that is walked', async (t) => {
  const { call } = await open(t, beacon)
  for (let i = 0; i < 25; i++) await call('POST', '/beacon', { name: `b${10 + i}`, strength: i % 10 })
  const names = ({ body }: { body: { data: { name: string }[] } }) => body.data.map(({ name }) => name)
  const strong = await call('GET', '/beacons?status=strong&sortBy=name&limit=4')
  t.match(strong.body, { total: 10, page: 1, limit: 4 })
  t.same(names(strong), ['b15', 'b16', 'b17', 'b18'])
  const walked = names(strong)
  for (let cursor = strong.body.nextCursor; cursor !== null; ) {
    const page = await call('GET', `/beacons?status=strong&sortBy=name&limit=4&cursor=${cursor}`)
    t.equal(page.body.total, 10)
    walked.push(...names(page))
    cursor = page.body.nextCursor
  }
  t.same(walked, ['b15', 'b16', 'b17', 'b18', 'b19', 'b25', 'b26', 'b27', 'b28', 'b29'])
  t.same(names(await call('GET', '/beacons?status=strong&sortBy=name&limit=4&page=3')), ['b28', 'b29'])
  t.equal((await call('GET', `/beacons?status=weak&cursor=${strong.body.nextCursor}`)).status, 400)
  t.same((await call('GET', '/beacons?status=strong&fields=name&limit=1')).body.data.map(Object.keys), [
    ['_id', 'name'],
  ])
})
