import { read, utils } from '@e965/xlsx'
import { parse } from 'csv-parse/sync'
import { test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { imported } from '../support/import-calls.ts'
import { ask, call, signUp, startService, until } from '../support/service.ts'

// biome-ignore lint/suspicious/noExplicitAny: bodies of any route
type Json = any

const FIELDS = [
  { name: 'number', type: 'text' },
  { name: 'name', type: 'text' },
  { name: 'price', type: 'number' },
  { name: 'seen', type: 'datetime' },
  { name: 'place', type: 'coordinate' },
]

test('exports have what the lists answer', { timeout: 600_000 }, async (t) => {
  const service = await startService(folderOf(t))
  t.teardown(() => service.kill())
  const { token, hubId, email, password } = await signUp(service)
  const make = async (path: string, body: object): Promise<Json> =>
    (await ask(service, 'POST', path, { token, body })).data
  const type = await make('/data-type', { name: 'Customers', primaryKey: 'number', fields: FIELDS })
  const dataTypeId: string = type._id
  const rows = [
    { number: '007', name: '=1+1', price: -1.5, seen: '2026-07-01T10:00:00.000Z', place: { lat: 52, lng: 21 } },
    { number: '008', name: 'Zoë;"x"' },
  ]
  for (const values of rows) await make('/data', { dataTypeId, values })
  const exported = (path: string, body: object, as = token) => call(service, 'POST', path, { token: as, body })

  await t.test('a repeated request answers the file again and stands in the log once', async (t) => {
    const logged = async (): Promise<number> => (await ask(service, 'GET', '/tasks/export-log', { token })).total
    const asked = (format: string) =>
      call(service, 'POST', '/data/export', {
        token,
        body: { dataTypeId, format },
        headers: { 'idempotency-key': 'export-once' },
      })
    const first = await asked('csv')
    t.equal(first.status, 200, first.text)
    const { _id } = await make('/data', { dataTypeId, values: { number: '009' } })
    t.equal((await asked('csv')).text, first.text, 'not with what came since')
    await ask(service, 'DELETE', `/data/${_id}`, { token })
    t.match(await asked('json'), { status: 422, json: { code: 'key_reused' } })
    await until('the log', async () => (await logged()) > 0)
    t.equal(await logged(), 1)
  })

  await t.test('data as csv, xlsx, json, GeoJSON and GPX', async (t) => {
    const list = (await ask(service, 'GET', `/data?dataTypeId=${dataTypeId}`, { token })).data
    const csv = await exported('/data/export', { dataTypeId, format: 'csv' })
    t.equal(csv.status, 200, csv.text)
    t.match(csv.headers, { 'content-type': /text\/csv/, 'content-disposition': /data\.csv/ })
    t.same(parse(csv.text), [
      ['_id', 'number', 'name', 'price', 'seen', 'place'],
      [list[0]._id, '007', "'=1+1", '-1.5', '2026-07-01T10:00:00.000Z', '52, 21'],
      [list[1]._id, '008', 'Zoë;"x"', '', '', ''],
    ])
    t.same((await exported('/data/export', { dataTypeId, format: 'json' })).json, list)
    const geojson = JSON.parse((await exported('/data/export', { dataTypeId, format: 'geojson' })).text)
    t.match(geojson.features, [{ id: list[0]._id, geometry: { coordinates: [21, 52] } }])
    t.match((await exported('/data/export', { dataTypeId, format: 'gpx' })).text, '<name>007</name>')
    const answer = await fetch(`${service.url}/api/v3/data/export`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ dataTypeId, format: 'xlsx', fields: ['name', 'price'], mapping: { price: 'Price' } }),
    })
    const book = read(Buffer.from(await answer.arrayBuffer()))
    t.same(utils.sheet_to_json(book.Sheets[book.SheetNames[0]], { header: 1 }), [
      ['name', 'Price'],
      ['=1+1', -1.5],
      ['Zoë;"x"'],
    ])
  })

  await t.test('filters are those of the list, configs are added to', async (t) => {
    const filtered = await exported('/data/export', {
      dataTypeId,
      filter: { 'values.number': '008' },
      fields: ['number'],
    })
    t.equal(filtered.text, 'number\r\n008\r\n')
    t.match((await exported('/data/export', { dataTypeId, filter: { nonsense: 1 } })).json, {
      code: 'invalid',
      errors: [{ path: '/filter/nonsense' }],
    })
    t.equal((await exported('/data/export', { dataTypeId, filter: { limit: 1 } })).status, 400)
    t.equal((await exported('/data/export', { dataTypeId, fields: ['nothing'] })).status, 400)
    t.equal((await exported('/data/export', {})).status, 400)
    const config = await make('/export-config', {
      name: 'One',
      target: 'data',
      dataTypeId,
      fields: ['number'],
      mapping: { number: 'No.' },
      filter: { 'values.number': '007' },
      format: 'csv',
    })
    const byConfig = await exported('/data/export', { exportConfigId: config._id })
    t.equal(byConfig.text, 'No.\r\n007\r\n')
    t.equal((await exported('/tasks/export', { exportConfigId: config._id })).status, 400)
    t.equal(
      (await exported('/data/export', { exportConfigId: config._id, filter: { 'values.number': '008' } })).status,
      400,
    )
    const without = { dataTypeId, filter: { 'values.price': null }, fields: ['number'] }
    t.equal((await exported('/data/export', without)).text, 'number\r\n008\r\n', '`null` finds rows without it')
    t.equal((await exported('/data/export', { dataTypeId, filter: { q: null } })).status, 400)
    const tasks = { name: 'Open', target: 'task', filter: { state: 'new,assigned', from: '2026-01-02T00:00:00Z' } }
    const { _id: exportConfigId } = await make('/export-config', tasks)
    const narrower = { state: 'new', from: '2026-01-03T00:00:00Z' }
    t.equal((await exported('/tasks/export', { exportConfigId, filter: narrower })).status, 200, 'one of its states')
  })

  await t.test('a mapping, and a config, name what there is', async (t) => {
    const refused = async (path: string, body: object, ...paths: string[]): Promise<void> =>
      void t.match(await exported(path, body), {
        status: 400,
        json: { code: 'invalid', errors: paths.map((one) => ({ path: one })) },
      })
    await refused(
      '/data/export',
      { dataTypeId, mapping: { number: 'No.', prise: 'P', 'values.x/y': 'X' } },
      '/mapping/prise',
      '/mapping/values.x~1y',
    ) // both are told at once
    await refused('/tasks/export', { mapping: { tittle: 'T' } }, '/mapping/tittle')
    t.equal((await exported('/tasks/export', { mapping: { title: 'T', 'window.from': 'F' } })).status, 200)
    t.equal(
      (await exported('/data/export', { dataTypeId, mapping: { 'values.number': 'No.', _id: 'Id' } })).status,
      200,
    )
    t.match(
      (await exported('/data/export', { dataTypeId, mapping: { prise: 'P' } })).json.message,
      /number, name, price/,
    )
    const data = { name: 'Two', target: 'data', dataTypeId }
    const tasks = { name: 'Two', target: 'task' }
    await refused('/export-config', { ...data, fields: ['nothing'] }, '/fields')
    await refused('/export-config', { ...data, filter: { nonsense: 1 } }, '/filter/nonsense')
    await refused('/export-config', { ...data, filter: { 'values.prise': 1 } }, '/filter/values.prise')
    await refused('/export-config', { ...data, mapping: { prise: 'P' } }, '/mapping/prise')
    await refused('/export-config', { ...tasks, fields: ['tittle'] }, '/fields')
    await refused('/export-config', { ...tasks, filter: { stat: 'new' } }, '/filter/stat')
    const { _id: other } = await make('/data-type', { name: 'Others', primaryKey: 'number', fields: FIELDS })
    const asked = { dataTypeId: other, filter: { 'values.price.from': -2 }, fields: ['number'] }
    const config = await make('/export-config', { ...data, ...asked })
    const amended = (body: object) => call(service, 'PATCH', `/export-config/${config._id}`, { token, body })
    t.match(await amended({ fields: ['nothing'] }), { status: 400, json: { errors: [{ path: '/fields' }] } })
    t.match(await amended({ filter: { nonsense: 1 } }), {
      status: 400,
      json: { errors: [{ path: '/filter/nonsense' }] },
    })
    const fields = FIELDS.filter(({ name }) => name !== 'price')
    await ask(service, 'PATCH', `/data-type/${other}`, { token, body: { fields } })
    t.equal((await amended({ name: 'Three' })).status, 200, 'what it asked for before is looked at when it changes')
    t.equal((await amended({ format: 'xlsx' })).status, 400)
    await ask(service, 'DELETE', `/export-config/${config._id}`, { token })
  })

  await t.test('what a role hides is in no export, and naming it is 403', async (t) => {
    const role = await make('/role', {
      name: 'Clerk',
      permissions: ['view/data'],
      permissionDetails: [{ permissionName: 'view/data', dataTypeId, hiddenFields: ['price'] }],
    })
    await make('/user', { name: 'Clerk', email: `clerk.${email}`, roleId: role._id, hubId: [hubId], password })
    const login = await ask(service, 'POST', '/auth/login', { body: { email: `clerk.${email}`, password } })
    const csv = await exported('/data/export', { dataTypeId }, login.token)
    t.equal(csv.text.split('\r\n')[0], '_id,number,name,seen,place')
    t.match((await exported('/data/export', { dataTypeId, fields: ['price'] }, login.token)).json, {
      code: 'forbidden',
      fields: ['price'],
    })
    t.equal((await exported('/data/export', { dataTypeId, filter: { 'values.price': -1.5 } }, login.token)).status, 403)
    t.match(await exported('/data/export', { dataTypeId, mapping: { price: 'P' } }, login.token), {
      status: 403,
      json: { fields: ['price'] },
    })
    const unknown = await exported('/data/export', { dataTypeId, mapping: { prise: 'P' } }, login.token)
    t.match(unknown.json.message, /expected number, name, seen, place, _id/)
    t.equal((await exported('/tasks/export', {}, login.token)).status, 403)
  })

  await t.test('tasks, with the components of their flow', async (t) => {
    const components = [{ id: 'parcels', type: 'number' }]
    const flow = await make('/flow', { name: 'F', steps: [{ id: 's', name: 'S', components }] })
    const task = await make('/task', {
      flowId: flow._id,
      hubId,
      title: '+1',
      lat: 52,
      lng: 21,
      components: { parcels: 2 },
    })
    const csv = parse((await exported('/tasks/export', { filter: { flowId: flow._id } })).text, {
      columns: true,
    }) as Json[]
    t.match(csv, [{ _id: task._id, title: "'+1", 'components.parcels': '2', lat: '52', createdAt: task.createdAt }])
    const geojson = JSON.parse((await exported('/tasks/export', { format: 'geojson' })).text)
    t.ok(geojson.features.some(({ id }: Json) => id === task._id))
    const log = await ask(service, 'GET', '/tasks/export-log?kind=task', { token })
    t.match(log.data[0], { kind: 'task', status: 'completed' })
    t.ok(log.total >= 2)
    const { createdBy } = log.data[0]
    const by = async (id: string): Promise<number> =>
      (await ask(service, 'GET', `/tasks/export-log?kind=task&createdBy=${id}`, { token })).total
    t.same([await by(createdBy), await by(task._id)], [log.total, 0], 'of one user')
  })

  await t.test('more rows are a job, with a path that is signed and expires', async (t) => {
    const many = `number\n${Array.from({ length: 5_001 }, (_, i) => `m-${i}`).join('\n')}\n`
    t.equal((await imported(service, token, many, { type: 'datasource', dataTypeId })).succeeded, 5_001)
    const answer = await exported('/data/export', { dataTypeId, format: 'csv', fields: ['number'] })
    t.equal(answer.status, 202, answer.text)
    const path = `/tasks/export-log/${answer.json.data._id}`
    let row: Json
    await until('the file', async () => {
      row = (await ask(service, 'GET', path, { token })).data
      return row.status === 'completed'
    })
    t.match(row, { kind: 'data', rows: 5_003, downloadPath: /^\/api\/v3\/export-file\// })
    const file = await call(service, 'GET', `/${row.downloadPath}`)
    t.equal(file.status, 200, file.text.slice(0, 200))
    t.equal(new Set(file.text.trim().split('\r\n')).size, 5_004)
    t.equal(Buffer.byteLength(file.text), row.size)
    t.equal((await call(service, 'GET', `/${row.downloadPath.replace(/signature=./, 'signature=~')}`)).status, 404)
    t.equal((await call(service, 'GET', `/${row.downloadPath.replace(/expires=\d/, 'expires=9')}`)).status, 404)
    t.equal((await call(service, 'GET', `/${row.downloadPath.replace(/organization=[^&]+&/, '')}`)).status, 404)
    const { token: stranger } = await signUp(service)
    t.equal((await call(service, 'GET', path, { token: stranger })).status, 404)
    await ask(service, 'DELETE', path, { token })
    t.equal((await call(service, 'GET', path, { token })).status, 404)
    t.equal((await call(service, 'GET', `/${row.downloadPath}`)).status, 404)
  })

  await t.test('a path ends with the rights of whoever asked for the file', async (t) => {
    const role = await make('/role', { name: 'Reader', permissions: ['view/data'] })
    const reader = { name: 'Rea', email: `rea.${email}`, password, roleId: role._id, hubId: [hubId] }
    const { _id } = await make('/user', reader)
    const login = await ask(service, 'POST', '/auth/login', { body: { email: reader.email, password } })
    const asked = await exported('/data/export', { dataTypeId, format: 'csv', fields: ['number'] }, login.token)
    const path = `/tasks/export-log/${asked.json.data._id}`
    let row: Json
    await until('the file', async () => {
      row = (await ask(service, 'GET', path, { token: login.token })).data
      return row.status === 'completed'
    })
    const change = (changed: string, body: object) => ask(service, 'PATCH', changed, { token, body })
    const status = async (): Promise<number> => (await call(service, 'GET', `/${row.downloadPath}`)).status
    t.equal(await status(), 200)
    await change(`/role/${role._id}`, { permissions: ['view/hub'] })
    t.equal(await status(), 404, 'without the permission')
    await change(`/role/${role._id}`, { permissions: ['view/data'] })
    t.equal(await status(), 200)
    await change(`/user/${_id}`, { status: 'disabled' })
    t.equal(await status(), 404, 'disabled')
    await change(`/user/${_id}`, { status: 'active' })
    t.equal(await status(), 200)
    await ask(service, 'DELETE', `/user/${_id}`, { token })
    t.equal(await status(), 404, 'deleted')
  })
})
