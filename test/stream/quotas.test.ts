import { test, type Test } from 'tap'
import { LIMITS } from '../../src/config-limits.ts'
import { folderOf } from '../support/folder-of.ts'
import { formOf } from '../support/pictures.ts'
import { ask, call, type Json, type Service, signUp, startService, until } from '../support/service.ts'

type Body = Json
type Options = { token: string; body?: Body; headers?: { [name: string]: string } }

/** What is made of one thing, and how one that is there is changed. */
interface Noun {
  path: string
  list: string
  body(name: string, ids: { [name: string]: string }): Body | Promise<{ body: Buffer; headers: Json }>
  /** Absent: it has no route for that. */
  change?(name: string): Body
}

const named = (name: string): Body => ({ name })
const titled = (title: string): Body => ({ title })
const POLICY = { name: 'note', type: 'text' }
const DETAILS = { url: 'http://127.0.0.1:9/closed' }

const scriptOf = (name: string): Promise<{ body: Buffer; headers: Json }> => {
  const form = new FormData()
  form.append('name', name)
  form.append('files', new File([`globalThis.one = '${name}'`], 'main.js'))
  return formOf(form)
}

const NOUNS: { [name: string]: Noun } = {
  trackers: { path: '/tracker', list: '/trackers', body: (name) => ({ name, kind: 'device' }), change: named },
  geofenceGroups: { path: '/geofence-group', list: '/geofence-groups', body: named, change: named },
  geofences: {
    path: '/geofence',
    list: '/geofences',
    body: (name, { groupId: geofenceGroupId }) => ({ name, geofenceGroupId, center: { lat: 1, lng: 1 }, radius: 9 }),
    change: named,
  },
  automations: {
    path: '/automation',
    list: '/automations',
    body: (name) => ({
      ...{ name, event: 'onTaskCreated', automationType: 'webhook', automationDetails: DETAILS },
      rules: { fields: { 'task.title': 'never' } },
    }),
    change: named,
  },
  tasks: {
    path: '/task',
    list: '/tasks',
    body: (title, { flowId, hubId }) => ({ title, flowId, hubId }),
    change: titled,
  },
  schedules: {
    path: '/task/schedule',
    list: '/task/schedules',
    body: (name, { flowId, hubId }) => ({
      ...{ name, flowId, timeZone: 'UTC', startTime: '2026-01-01T00:00:00Z', isActive: false },
      ...{ repeat: { period: 'daily', at: '07:30' }, task: { title: 'Round', hubId } },
    }),
    change: named,
  },
  routingResults: {
    path: '/routing-result',
    list: '/routing-results',
    body: (name, { hubId }) => ({ name, hubId }),
    change: named,
  },
  flows: {
    path: '/flow',
    list: '/flows',
    body: (name) => ({ name, steps: [{ id: 'one', name: 'One', components: [{ id: 'note', type: 'text' }] }] }),
    change: named,
  },
  dataTypes: {
    path: '/data-type',
    list: '/data-types',
    body: (name) => ({ name, primaryKey: 'note', fields: [POLICY] }),
    change: named,
  },
  records: {
    path: '/data',
    list: '/data?dataTypeId=',
    body: (note, { dataTypeId }) => ({ dataTypeId, values: { note } }),
    change: (note) => ({ values: { note } }),
  },
  users: {
    path: '/user',
    list: '/users',
    body: (name, { roleId }) => ({ name, roleId, email: `${name}.${process.pid}@example.com` }),
    change: named,
  },
  roles: { path: '/role', list: '/roles', body: (name) => ({ name, permissions: [] }), change: named },
  hubs: { path: '/hub', list: '/hubs', body: (name) => ({ name, lat: 1, lng: 1 }), change: named },
  teams: { path: '/team', list: '/teams', body: (name, { hubId }) => ({ name, hubId }), change: named },
  vehicles: {
    path: '/vehicle',
    list: '/vehicles',
    body: (name, { hubId }) => ({ name, hubId, type: 'car' }),
    change: named,
  },
  ingestKeys: { path: '/ingest-key', list: '/ingest-keys', body: named },
  exportConfigs: {
    path: '/export-config',
    list: '/export-configs',
    body: (name) => ({ name, target: 'task' }),
    change: named,
  },
  shares: { path: '/share', list: '/shares', body: (_name, { taskId }) => ({ taskId }) },
  serviceAccounts: {
    path: '/service-account',
    list: '/service-accounts',
    body: (name, { roleId }) => ({ name, roleId, hubId: [] }),
    change: named,
  },
  appIntegrations: {
    path: '/app-integration',
    list: '/app-integrations',
    body: (name) => ({ name, tenantId: '72f988bf-86f1-41af-91ab-2d7cd011db47', clientId: name, clientSecret: 's' }),
    change: named,
  },
  pluginSettings: {
    path: '/plugin-setting',
    list: '/plugin-settings',
    body: (plugin) => ({ plugin }),
    change: () => ({}),
  },
  addons: { path: '/addon', list: '/addons', body: scriptOf, change: named },
}

const SUMS = ['geofencePositions', 'filesBytes']

const quotasOf = async (service: Service, token: string): Promise<{ limits: Json; uses: Json }> =>
  (await ask(service, 'GET', '/organization', { token })).data

const optionsOf = async (
  noun: Noun,
  token: string,
  name: string,
  ids: { [name: string]: string },
): Promise<Options> => {
  const body = await noun.body(name, ids)
  return noun.path === '/addon' ? { token, ...body } : { token, body }
}

const flagsOf = (limits: { [name: string]: number }): string[] =>
  LIMITS.flatMap(({ name, flag }) =>
    limits[name] === undefined ? [] : [`--${flag}`, name === 'filesBytes' ? `${limits[name]}B` : String(limits[name])],
  )

/** An organization with two of everything, and what is made of them. */
const openFull = async (service: Service) => {
  const { token, hubId } = await signUp(service, 'Full')
  await until('samples', async () => (await quotasOf(service, token)).uses.tasks === 3)
  const make = async (path: string, body: Body) => (await ask(service, 'POST', path, { token, body })).data._id
  const ids: { [name: string]: string } = {
    hubId,
    roleId: (await ask(service, 'GET', '/roles?key=fieldUser', { token })).data[0]._id,
    flowId: (await ask(service, 'GET', '/flows', { token })).data[0]._id,
    taskId: (await ask(service, 'GET', '/tasks', { token })).data[0]._id,
    groupId: await make('/geofence-group', { name: 'The group' }),
    dataTypeId: await make('/data-type', { name: 'The type', primaryKey: 'note', fields: [POLICY] }),
  }
  const made: { [noun: string]: string[] } = {}
  for (const [name, noun] of Object.entries(NOUNS)) {
    made[name] = []
    for (const i of [1, 2])
      made[name].push(
        (await ask(service, 'POST', noun.path, await optionsOf(noun, token, `${name}${i}`, ids))).data._id,
      )
  }
  return { token, ids, made }
}

test('every noun has a quota: past it nothing new is made, what is there stays, and deletions free its place', async (t) => {
  const data = folderOf(t)
  let service = await startService(data)
  t.teardown(() => service.kill())
  const { token, ids, made } = await openFull(service)
  const before = await quotasOf(service, token)
  t.same(Object.keys(before.uses).sort(), LIMITS.map(({ name }) => name).sort())
  t.same(
    Object.keys(NOUNS).sort(),
    Object.keys(before.uses)
      .filter((name) => !SUMS.includes(name))
      .sort(),
  )
  t.match(before.limits, { trackers: 100_000, automations: 1_000, records: 10_000_000, filesBytes: 100 * 2 ** 30 })
  t.match(before.uses, { trackers: 2, teams: 2, geofences: 2, geofencePositions: 2 })
  t.ok(before.uses.filesBytes > 20, 'the scripts of two add-ons')
  await service.stop()

  // One more than it may have is there of each.
  const lower = Object.keys(NOUNS).map((name) => [name, before.uses[name] - 1])
  service = await startService(data, flagsOf(Object.fromEntries(lower)))
  for (const [name, noun] of Object.entries(NOUNS)) await walk(t, service, { token, ids, name, noun, made: made[name] })
})

const walk = async (
  t: Test,
  service: Service,
  { token, ids, name, noun, made }: { token: string; ids: Json; name: string; noun: Noun; made: string[] },
): Promise<void> => {
  const make = async (called: string) => call(service, 'POST', noun.path, await optionsOf(noun, token, called, ids))
  const { limits, uses } = await quotasOf(service, token)
  t.equal(uses[name], limits[name] + 1, name)
  const refused = await make(`${name}3`)
  t.match(refused.json, { code: 'quota', limit: { name, max: limits[name], use: uses[name] } }, name)
  t.equal(refused.status, 409, name)
  t.match(refused.json.message, new RegExp(`${limits[name]} .* ${uses[name]}`), name)
  const listed = await ask(service, 'GET', name === 'records' ? noun.list + ids.dataTypeId : noun.list, { token })
  t.ok(listed.data.length > 0, `${name} are read`)
  const change = name === 'addons' ? await scriptOf('again') : { body: noun.change?.(`${name}-changed`) }
  const changed = noun.change && (await call(service, 'PATCH', `${noun.path}/${made[0]}`, { token, ...change }))
  t.equal(changed?.status ?? 200, 200, `${name}: changed`)
  await ask(service, 'DELETE', `${noun.path}/${made[0]}`, { token })
  t.equal((await make(`${name}4`)).status, 409, `${name}: one is gone, and there is no place yet`)
  await ask(service, 'DELETE', `${noun.path}/${made[1]}`, { token })
  const answers = await Promise.all([1, 2, 3, 4, 5].map((i) => make(`${name}5${i}`)))
  t.same(
    answers.map(({ status }) => status).sort(),
    [201, 409, 409, 409, 409],
    `${name}: one of five at once has the place`,
  )
}

const square = (size: number) => ({
  type: 'Polygon',
  coordinates: [
    [
      [0, 0],
      [size, 0],
      [size, size],
      [0, size],
      [0, 0],
    ],
  ],
})
const circle = (name: string) => ({
  type: 'Feature',
  properties: { name, radius: 5 },
  geometry: { type: 'Point', coordinates: [1, 1] },
})

test('positions of geofences are summed up: creates, changes and each feature of an import', async (t) => {
  const service = await startService(folderOf(t), flagsOf({ geofencePositions: 12 }))
  t.teardown(() => service.kill())
  const { token } = await signUp(service)
  const { _id: geofenceGroupId } = (await ask(service, 'POST', '/geofence-group', { token, body: { name: 'g' } })).data
  const fence = (name: string, shape: object) =>
    call(service, 'POST', '/geofence', { token, body: { name, geofenceGroupId, ...shape } })
  const uses = async () => (await quotasOf(service, token)).uses.geofencePositions
  const five = (await fence('five', { geometry: square(1) })).json.data
  const one = (await fence('one', { center: { lat: 1, lng: 1 }, radius: 9 })).json.data
  t.equal(await uses(), 6)
  t.equal(
    (
      await call(service, 'PATCH', `/geofence/${one._id}`, {
        token,
        body: { center: null, radius: null, geometry: square(2) },
      })
    ).status,
    200,
  )
  t.equal(await uses(), 10)
  t.match((await fence('no', { geometry: square(3) })).json, { code: 'quota', limit: { name: 'geofencePositions' } })
  const features = [circle('a'), { ...circle('large'), geometry: square(4) }, circle('b'), circle('c')]
  const sent = { token, body: { type: 'FeatureCollection', features }, headers: { 'idempotency-key': 'one' } }
  const path = `/geofences/import?geofenceGroupId=${geofenceGroupId}`
  const imported = await ask(service, 'POST', path, sent)
  t.equal(imported.data.created, 2)
  t.same(imported.data.rejected.map(({ index, code }: Json) => [index, code]).sort(), [
    [1, 'quota'],
    [3, 'quota'],
  ])
  t.match(imported.data.rejected[0].message, /12 positions/)
  t.equal(await uses(), 12)
  t.same((await ask(service, 'POST', path, sent)).data, imported.data, 'the repeat is answered the same')
  await ask(service, 'DELETE', `/geofence/${five._id}`, { token })
  t.equal(await uses(), 7)
  t.equal((await fence('now', { geometry: square(3) })).status, 201)
})

test('bytes of files are summed up: attachments, add-ons and the logo', async (t) => {
  const service = await startService(folderOf(t), flagsOf({ filesBytes: 1_000 }))
  t.teardown(() => service.kill())
  const { token, hubId } = await signUp(service)
  const flow = await ask(service, 'POST', '/flow', {
    token,
    body: { name: 'Paper', steps: [{ id: 'one', name: 'One', components: [{ id: 'paper', type: 'file' }] }] },
  })
  const task = await ask(service, 'POST', '/task', { token, body: { flowId: flow.data._id, hubId, title: 'One' } })
  const attach = async (bytes: number) => {
    const form = new FormData()
    form.append('componentId', 'paper')
    form.append('file', new File([Buffer.alloc(bytes, 1)], 'paper'))
    return call(service, 'POST', `/task/${task.data._id}/files`, { token, ...(await formOf(form)) })
  }
  const uses = async () => (await quotasOf(service, token)).uses.filesBytes
  const first = await attach(600)
  t.equal(first.status, 201)
  t.equal(await uses(), 600)
  t.match((await attach(600)).json, { code: 'quota', limit: { name: 'filesBytes', max: 1_000, use: 600 } })
  const logo = { token, body: Buffer.concat([PNG, Buffer.alloc(300)]), headers: { 'content-type': 'image/png' } }
  t.equal((await call(service, 'PUT', '/organization/logo', logo)).status, 200)
  t.equal(await uses(), 600 + logo.body.length)
  t.notOk('logoBytes' in (await ask(service, 'PATCH', '/organization', { token, body: {} })).data)
  const form = new FormData()
  form.append('name', 'Large')
  form.append('files', new File(['1'.repeat(200)], 'main.js'))
  const upload = { token, ...(await formOf(form)) }
  t.match((await call(service, 'POST', '/addon', upload)).json, { code: 'quota' })
  await ask(service, 'DELETE', `/file/${first.json.data._id}`, { token })
  t.equal((await call(service, 'POST', '/addon', upload)).status, 201)
  t.equal(await uses(), 200 + logo.body.length)
  await ask(service, 'DELETE', '/organization/logo', { token })
  t.equal(await uses(), 200)
})

test('files of imports and exports count for as long as their records are there', async (t) => {
  const service = await startService(folderOf(t), flagsOf({ filesBytes: 200_000 }))
  t.teardown(() => service.kill())
  const { token } = await signUp(service)
  const numbers = [{ name: 'no', type: 'text' }]
  const type = await ask(service, 'POST', '/data-type', {
    token,
    body: { name: 'Number', primaryKey: 'no', fields: numbers },
  })
  const dataTypeId = type.data._id
  const sent = `no\n${Array.from({ length: 5_001 }, (_, i) => `n${i}\n`).join('')}`
  const importing = async (mode: string) => {
    const form = new FormData()
    for (const [name, value] of Object.entries({ type: 'datasource', dataTypeId, mode })) form.append(name, value)
    form.append('file', new File([sent], 'numbers.csv'))
    return call(service, 'POST', '/data/import', { token, ...(await formOf(form)) })
  }
  const uses = async () => (await quotasOf(service, token)).uses.filesBytes
  const ended = async (path: string): Promise<Json> => {
    let row: Json = {}
    await until(`the end of ${path}`, async () => {
      row = (await ask(service, 'GET', path, { token })).data
      return /^(completed|failed)/.test(row.status)
    })
    return row
  }
  const first = `/import-monitoring/${(await importing('upsert')).json.data._id}`
  t.match(await ended(first), { status: 'completed', succeeded: 5_001 })
  t.equal(await uses(), sent.length)
  const second = `/import-monitoring/${(await importing('insert')).json.data._id}`
  t.match(await ended(second), { status: 'completedWithErrors', failed: 5_001 })
  const full = await uses()
  t.ok(full > 3 * sent.length, 'the report counts, too')
  t.match((await importing('insert')).json, { code: 'quota', limit: { name: 'filesBytes', use: full } })
  await ask(service, 'DELETE', second, { token })
  t.equal(await uses(), sent.length)

  const exporting = (format: string) =>
    call(service, 'POST', '/data/export', { token, body: { dataTypeId, format, fields: ['no', 'createdAt'] } })
  const large = await ended(`/tasks/export-log/${(await exporting('json')).json.data._id}`)
  t.match(large, { status: 'failed', error: { code: 'quota', message: /200000 bytes in files/ } })
  const small = await ended(`/tasks/export-log/${(await exporting('csv')).json.data._id}`)
  t.equal(small.status, 'completed')
  t.equal(await uses(), sent.length + small.size)
  await ask(service, 'DELETE', first, { token })
  await ask(service, 'DELETE', `/tasks/export-log/${small._id}`, { token })
  t.equal(await uses(), 0)
})

const PNG = Buffer.from('89504e470d0a1a0a0000000d494844520000001000000010', 'hex')
