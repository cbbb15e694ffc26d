import { readdirSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { parse } from 'csv-parse/sync'
import { test } from 'tap'
import { writeTable } from '../../src/kit/formats/table-writer.ts'
import { xlsxWriter } from '../../src/kit/formats/xlsx-writer.ts'
import { folderOf } from '../support/folder-of.ts'
import { ended, imported, sendFile } from '../support/import-calls.ts'
import { ask, call, signUp, startService, until } from '../support/service.ts'

// biome-ignore lint/suspicious/noExplicitAny: bodies of any route
type Json = any

const FIELDS = [
  { name: 'number', type: 'text' },
  { name: 'name', label: 'Customer name', type: 'text' },
  { name: 'price', type: 'number' },
  { name: 'since', type: 'date' },
  { name: 'kind', type: 'option', options: ['shop', 'restaurant'] },
  { name: 'place', type: 'coordinate' },
]

test('files become records and tasks', { timeout: 600_000 }, async (t) => {
  const service = await startService(folderOf(t), ['--import-bytes-max', '1MiB'])
  t.teardown(() => service.kill())
  const { token, hubId, email } = await signUp(service)
  const make = async (path: string, body: object): Promise<Json> =>
    (await ask(service, 'POST', path, { token, body })).data
  const type = await make('/data-type', { name: 'Customers', primaryKey: 'number', fields: FIELDS })
  const dataTypeId: string = type._id
  const records = async (): Promise<Json[]> =>
    (await ask(service, 'GET', `/data?dataTypeId=${dataTypeId}&limit=500`, { token })).data
  const flow = await make('/flow', {
    name: 'Delivery flow',
    steps: [{ id: 's', name: 'S', components: [{ id: 'parcels', label: 'Parcels', type: 'number' }] }],
  })

  await t.test('a preview keeps nothing and suggests a mapping', async (t) => {
    const csv = 'Customers of May\n\nNumber;CUSTOMER NAME;price;note\n007;Zoë;1,5;x\n'
    const path = '/data/import/preview'
    const { data } = (await sendFile(service, token, csv, { type: 'datasource', dataTypeId }, { path })).json
    t.same(data, {
      columns: ['Number', 'CUSTOMER NAME', 'price', 'note'],
      rows: [['007', 'Zoë', '1,5', 'x']],
      mapping: { Number: 'number', 'CUSTOMER NAME': 'name', price: 'price' },
      encoding: 'UTF-8',
      delimiter: ';',
      sheets: [],
    })
    const bare = await sendFile(service, token, csv, { type: 'datasource' }, { path })
    t.match(bare.json, { status: true, data: { mapping: {}, delimiter: ';' } })
    t.equal((await ask(service, 'GET', '/import-monitoring', { token })).total, 0)
  })

  let first: Json
  await t.test('records: good rows are made, others are named with row, column and what was expected', async (t) => {
    const csv =
      'number;name;price;since;kind;place\r\n' +
      '007;"Two\nlines";1.234,5;24.12.2026;SHOP;52.2, 21\r\n' +
      '008;B;abc;01.02.2026;shop;\r\n' +
      '009;C;2;31.02.2026;shop;\r\n' +
      '010;D;3;;bar;\r\n' +
      ';E;4;;;\r\n' +
      '007;F;5;;;\r\n' +
      '011;=1+1;25%;;;\r\n'
    first = await imported(service, token, csv, { type: 'datasource', dataTypeId })
    t.match(first, {
      status: 'completedWithErrors',
      total: 7,
      processed: 7,
      succeeded: 2,
      failed: 5,
      dryRun: false,
      fileName: 'file.csv',
      hasReport: true,
    })
    t.match(first.errors, [
      { row: 3, column: 'price', code: 'invalid', message: '"abc" must be a number' },
      { row: 4, column: 'since', message: /"31.02.2026" must be a date/ },
      { row: 5, column: 'kind', message: /must be one of shop, restaurant/ },
      { row: 6, column: 'number', message: /is required/ },
      { row: 7, column: 'number', code: 'key_in_use' },
    ])
    const found = (await records()).map(({ values }) => values)
    t.same(found, [
      {
        number: '007',
        name: 'Two\nlines',
        price: 1234.5,
        since: '2026-12-24',
        kind: 'shop',
        place: { lat: 52.2, lng: 21 },
      },
      { number: '011', name: '=1+1', price: 0.25 },
    ])
    const report = await call(service, 'GET', `/import-monitoring/${first._id}/report`, { token })
    t.match(report.headers, { 'content-disposition': /file-errors\.csv/ })
    const lines = parse(report.text, { delimiter: ';' }) as string[][]
    t.same(lines[0], ['number', 'name', 'price', 'since', 'kind', 'place', 'Reason'])
    t.same(lines[1].slice(0, 3), ['008', 'B', 'abc'])
    t.equal(lines[1][6], 'price: "abc" must be a number')
    t.equal(lines.length, 6)
    const audit = await ask(service, 'GET', '/audit-log?noun=data&limit=5', { token })
    t.match(audit.data[0], { actor: { type: 'import', id: first._id }, action: 'created' })
  })

  await t.test('an upsert changes what is there, makes the rest, and meets its own row', async (t) => {
    const csv = 'number,price\n007,9\n020,1\n020,2\n'
    const row = await imported(service, token, csv, { type: 'datasource', dataTypeId, mode: 'upsert' })
    t.match(row, { status: 'completed', succeeded: 3, failed: 0, hasReport: false })
    const found = (await records()).map(({ values }) => [values.number, values.price, values.name])
    t.same(found, [
      ['007', 9, 'Two\nlines'],
      ['011', 0.25, '=1+1'],
      ['020', 2, undefined],
    ])
    t.equal((await call(service, 'GET', `/import-monitoring/${row._id}/report`, { token })).status, 404)
  })

  await t.test('an undo takes back what only the import has written, twice where a row met its own', async (t) => {
    const before = await records()
    const csv = 'number,price,name\n007,8,New\n011,9,\n020,5,Named\n020,6,Named again\n050,1,\n050,2,\n051,1,\n051,2,\n'
    const row = await imported(service, token, csv, { type: 'datasource', dataTypeId, mode: 'upsert' })
    t.match(row, { status: 'completed', succeeded: 8 })
    const met = (await records()).find(({ values }) => values.number === '011')
    await ask(service, 'PATCH', `/data/${met._id}`, { token, body: { values: { price: 0.25 } } })
    const touched = (await records()).find(({ values }) => values.number === '051')
    await ask(service, 'PATCH', `/data/${touched._id}`, { token, body: { values: { name: 'kept' } } })
    await ask(service, 'POST', `/import-monitoring/${row._id}/undo`, { token })
    let undone: Json
    await until('the undo', async () => {
      undone = (await ask(service, 'GET', `/import-monitoring/${row._id}`, { token })).data
      return undone.undoneAt !== undefined
    })
    t.match(undone.undo, { undone: 4, kept: 2 })
    t.same(
      undone.undo.errors.map((one: Json) => [one.row, one.message.replace(/^\S+ /, '')]),
      [
        [3, 'was changed since'],
        [8, 'was changed since'],
      ],
    )
    const valuesOf = (rows: Json[]) => rows.filter(({ _id }) => _id !== touched._id).map(({ values }) => values)
    t.same(valuesOf(await records()), valuesOf(before), 'what was there has its values again')
    t.notOk((await records()).some(({ values }) => values.number === '050'))
    await ask(service, 'DELETE', `/data/${touched._id}`, { token })
  })

  await t.test('a dry run says the same and writes nothing', async (t) => {
    const csv = 'number,price\n007,1\n030,x\n031,1\n031,2\n'
    const row = await imported(service, token, csv, { type: 'datasource', dataTypeId, dryRun: 'true' })
    t.match(row, { status: 'completedWithErrors', dryRun: true, succeeded: 1, failed: 3 })
    t.same(
      row.errors.map((one: Json) => [one.row, one.code]),
      [
        [2, 'key_in_use'],
        [3, 'invalid'],
        [5, 'key_in_use'],
      ],
    )
    t.equal((await records()).length, 3)
  })

  await t.test('undo takes away what nobody touched', async (t) => {
    const touched = (await records()).find(({ values }) => values.number === '011')
    await ask(service, 'PATCH', `/data/${touched._id}`, { token, body: { values: { name: 'kept' } } })
    t.equal((await call(service, 'POST', `/import-monitoring/${first._id}/undo`, { token })).status, 202)
    let row: Json
    await until('the undo', async () => {
      row = (await ask(service, 'GET', `/import-monitoring/${first._id}`, { token })).data
      return row.undoneAt !== undefined
    })
    // The upsert above has touched the other one.
    t.match(row.undo, { undone: 0, kept: 2 })
    const second = await imported(service, token, 'number\n040\n041\n', { type: 'datasource', dataTypeId })
    await ask(service, 'POST', `/import-monitoring/${second._id}/undo`, { token })
    await until(
      'that undo',
      async () =>
        (await ask(service, 'GET', `/import-monitoring/${second._id}`, { token })).data.undoneAt !== undefined,
    )
    t.same(
      (await records()).map(({ values }) => values.number),
      ['007', '011', '020'],
    )
  })

  await t.test('tasks, from a workbook, by names and e-mail', async (t) => {
    const header = [
      'Title',
      'hub',
      'assignee',
      'window.from',
      'window.to',
      'Parcels',
      'externalId',
      'tags',
      'load.boxes',
    ]
    const at = new Date('2026-11-20T08:00:00Z')
    const rows = [
      ['Deliver', 'main', email, at, new Date(at.getTime() + 3_600_000), 3, 'order-1', 'a; b, c', 2],
      ['No hub there', 'Nowhere', '', at, at, 1, 'order-2', '', 1],
      ['Nobody', 'Main', 'x@y.example', at, at, 1, 'order-3', '', 1],
    ]
    const pieces: Buffer[] = []
    const pages = async function* () {
      yield rows
    }
    for await (const piece of writeTable(xlsxWriter({ header, sheet: 'Tasks' }), pages()))
      pieces.push(Buffer.from(piece))
    const file = Buffer.concat(pieces)
    const row = await imported(service, token, file, { type: 'task', flowId: flow._id }, { name: 'tasks.xlsx' })
    t.match(row, { status: 'completedWithErrors', succeeded: 1, failed: 2 })
    t.match(row.errors, [
      { row: 3, column: 'hub', message: /names no hub/ },
      { row: 4, column: 'assignee' },
    ])
    const [made] = (await ask(service, 'GET', '/tasks?externalId=order-1', { token })).data
    t.match(made, {
      title: 'Deliver',
      hubId,
      state: 'assigned',
      window: { from: '2026-11-20T08:00:00.000Z', to: '2026-11-20T09:00:00.000Z' },
      components: { parcels: 3 },
      tags: ['a', 'b, c'],
      load: { boxes: 2 },
      createdBy: { type: 'import', id: row._id },
    })
    const report = await call(service, 'GET', `/import-monitoring/${row._id}/report`, { token })
    t.match(report.headers, { 'content-type': /spreadsheetml/ })
    const exported = await call(service, 'POST', '/tasks/export', { token, body: { format: 'csv' } })
    const reread = await imported(service, token, exported.text, { type: 'task', flowId: flow._id, mode: 'upsert' })
    t.match(reread, { succeeded: 1 }, 'an export of tasks, which names people by id, is imported again')
    t.same((await ask(service, 'GET', `/task/${made._id}`, { token })).data.assigneeIds, made.assigneeIds)
    const csv =
      'externalId,title,description,assignee,tags,load.boxes,load.pallets,Parcels\nORDER-1,Changed,New,,c,5,1,4\n,None,,,,,,\n'
    const changed = await imported(service, token, csv, {
      type: 'visit',
      flowId: flow._id,
      hubId,
      mode: 'upsert',
    })
    t.match(changed, { succeeded: 1, failed: 1, errors: [{ row: 3, column: 'externalId', message: /is required/ }] })
    t.match((await ask(service, 'GET', `/task/${made._id}`, { token })).data, {
      title: 'Changed',
      load: { boxes: 5, pallets: 1 },
      components: { parcels: 4 },
    })
    await ask(service, 'POST', `/import-monitoring/${changed._id}/undo`, { token })
    let undone: Json
    await until('the undo', async () => {
      undone = (await ask(service, 'GET', `/import-monitoring/${changed._id}`, { token })).data
      return undone.undoneAt !== undefined
    })
    t.match(undone.undo, { undone: 1, kept: 0, errors: [] })
    const {
      version: _version,
      updatedAt: _at,
      ...again
    } = (await ask(service, 'GET', `/task/${made._id}`, { token })).data
    t.match(made, again, 'the task is as it was')
  })

  await t.test('what cannot be imported is refused at once, by name', async (t) => {
    const refused = async (
      status: number,
      message: RegExp,
      file: string | Uint8Array,
      fields: { [name: string]: string },
      name?: string,
    ) => {
      const answer = await sendFile(service, token, file, fields, { name })
      t.equal(answer.status, status, answer.text)
      t.match(answer.json.message, message)
    }
    const known = { type: 'datasource', dataTypeId }
    await refused(400, /type is required/, 'a\n1\n', {})
    await refused(400, /type must be one of/, 'a\n1\n', { type: 'x' })
    await refused(400, /dataTypeId is required/, 'a\n1\n', { type: 'datasource' })
    await refused(400, /flowId is required/, 'a\n1\n', { type: 'task' })
    await refused(400, /mapping/, 'a\n1\n', known)
    await refused(400, /is no column/, 'number\n1\n', { ...known, mapping: '{"x":"number"}' })
    await refused(400, /must name a field that can be written/, 'number\n1\n', {
      ...known,
      mapping: '{"number":"createdAt"}',
    })
    await refused(400, /must name a field that can be written/, 'n\n1\n', {
      type: 'task',
      flowId: flow._id,
      mapping: '{"n":"state"}',
    })
    await refused(400, /mapping must be a JSON object/, 'number\n1\n', { ...known, mapping: '{' })
    await refused(400, /dryRun/, 'number\n1\n', { ...known, dryRun: 'maybe' })
    await refused(
      400,
      /encrypted/,
      Buffer.concat([Buffer.from('d0cf11e0a1b11ae1', 'hex'), Buffer.from('EncryptedPackage', 'utf16le')]),
      known,
      'a.xlsx',
    )
    await refused(400, /damaged/, Buffer.from('504b0304aaaa', 'hex'), known, 'a.xlsx')
    await refused(400, /must not be empty/, '', known)
    await refused(400, /must have a row with the names of its columns/, ' \n\n', known)
    await refused(415, /\.csv, \.xlsx, \.xls/, 'number\n1\n', known, 'a.pdf')
    await refused(415, /neither a spreadsheet nor text/, Buffer.from('number\0\n'), known)
    await refused(413, /larger than/, 'x'.repeat(1_048_577), known)
    t.equal((await call(service, 'POST', '/data/import', { token, body: {} })).status, 415)
  })

  await t.test('an upload that is cut in the middle leaves nothing', async (t) => {
    const stored = (): string[] => readdirSync(join(service.data, 'files'), { recursive: true }) as string[]
    const asked = async (): Promise<number> => (await ask(service, 'GET', '/import-monitoring', { token })).total
    const imports = await asked()
    const before = new Set(stored())
    const more = (): number => stored().filter((name) => !before.has(name)).length
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'multipart/form-data; boundary=cut' }
    const upload = request(`${service.url}/api/v3/data/import`, {
      method: 'POST',
      headers: { ...headers, 'content-length': 500_000 },
    })
    upload.on('error', () => undefined)
    const part = 'content-disposition: form-data; name="file"; filename="cut.csv"'
    upload.write(`--cut\r\n${part}\r\n\r\nnumber\n${'cut\n'.repeat(50_000)}`)
    await until('the first part of the file', () => more() > 0)
    upload.destroy()
    await until('nothing of the file', () => more() === 0)
    t.equal(await asked(), imports)
  })

  await t.test('fifty at once all end, and each row is there once', async (t) => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        sendFile(service, token, `number\nmany-${i}\n`, { type: 'datasource', dataTypeId }),
      ),
    )
    const accepted = answers.filter(({ status }) => status === 202)
    t.ok(accepted.length >= 49, `${accepted.length} accepted`)
    for (const { json } of accepted) t.equal((await ended(service, token, json.data._id)).succeeded, 1)
    const list = await ask(service, 'GET', '/import-monitoring?status=completedWithErrors&limit=100', { token })
    t.ok(list.total >= 3 && list.data.every(({ status }: Json) => status === 'completedWithErrors'))
  })

  await t.test('cancelled while it runs; deleted once it has ended', async (t) => {
    const csv = `number\n${Array.from({ length: 30_000 }, (_, i) => `c-${i}`).join('\n')}\n`
    const { json } = await sendFile(service, token, csv, { type: 'datasource', dataTypeId })
    const path = `/import-monitoring/${json.data._id}`
    await until('progress', async () => (await ask(service, 'GET', path, { token })).data.status === 'processing')
    t.equal((await call(service, 'DELETE', path, { token })).status, 200)
    const { data } = await ask(service, 'GET', path, { token })
    t.equal(data.status, 'cancelled')
    await ask(service, 'DELETE', path, { token })
    t.equal((await call(service, 'GET', path, { token })).status, 404)
  })

  await t.test('who lacks import/data or another organization sees nothing of it', async (t) => {
    const { token: stranger } = await signUp(service)
    t.equal((await call(service, 'GET', `/import-monitoring/${first._id}`, { token: stranger })).status, 404)
    t.equal((await sendFile(service, stranger, 'number\n1\n', { type: 'datasource', dataTypeId })).status, 400)
    t.equal((await ask(service, 'GET', '/import-monitoring', { token: stranger })).total, 0)
  })
})
