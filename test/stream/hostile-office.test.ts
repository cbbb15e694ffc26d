import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { deflateRawSync } from 'node:zlib'
import { test, type Test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { formOf, png } from '../support/pictures.ts'
import { type Answer, ask, call, type Json, type Service, signUp, startService } from '../support/service.ts'

interface Office {
  service: Service
  token: string
  hubId: string
  typeId: string
  recordId: string
  flowId: string
  taskId: string
  make(path: string, body: Json): Promise<Json>
  send(method: string, path: string, body?: Json, headers?: { [name: string]: string }): Promise<Answer>
}

const text = (name: string, more: object = {}): Json => ({ name, type: 'text', ...more })
const typeBody = (name: string, fields: Json[]): Json => ({ name, primaryKey: 'id', fields: [text('id'), ...fields] })
const flowBody = (name: string, components: Json[]): Json => ({ name, steps: [{ id: 'one', name: 'One', components }] })

/** What hostile clients send about data, flows, tasks and files gets its answer, and nothing else is disturbed. */
test('hostile data, tasks and files', { timeout: 900_000 }, async (t) => {
  const service = await startService(folderOf(t), ['--file-bytes-max', '1MiB'])
  t.teardown(() => service.kill())
  const office = await open(service)
  const before = await everything(office)
  for (const [what, attack] of Object.entries({ types, patterns, records, components, moves, forms, names, contents }))
    await t.test(what, async (t) => {
      await attack(t, office)
      t.same(await everything(office), before, 'all else is as it was')
    })
  const errors = service.lines.filter((line) => line.includes('"level":"error"'))
  t.same(errors, [], 'the service saw no error of its own')
})

const open = async (service: Service): Promise<Office> => {
  const { token, hubId } = await signUp(service, 'Office')
  const send: Office['send'] = (method, path, body, headers) => call(service, method, path, { token, body, headers })
  const make: Office['make'] = async (path, body) => (await ask(service, 'POST', path, { token, body })).data
  const type = await make('/data-type', typeBody('Customers', [text('name')]))
  const record = await make('/data', { dataTypeId: type._id, values: { id: 'C-1', name: 'Shop' } })
  const files = ['photo', 'file'].map((kind) => ({ id: kind, type: kind }))
  const flow = await make('/flow', flowBody('Round', [{ id: 'note', type: 'text' }, ...files]))
  const task = await make('/task', { flowId: flow._id, title: 'Kept', hubId })
  const ids = { typeId: type._id, recordId: record._id, flowId: flow._id, taskId: task._id }
  return { service, token, hubId, ...ids, make, send }
}

/** What the office had in the beginning; what attacks make is deleted by them. */
const everything = async ({ send, typeId, recordId, flowId, taskId }: Office): Promise<Json> => ({
  type: (await send('GET', `/data-type/${typeId}`)).json.data,
  record: (await send('GET', `/data/${recordId}`)).json.data,
  records: (await send('GET', `/data?dataTypeId=${typeId}`)).json.total,
  flow: (await send('GET', `/flow/${flowId}`)).json.data,
  task: (await send('GET', `/task/${taskId}`)).json.data,
  history: (await send('GET', `/task/${taskId}/history`)).json.data,
  odd: ({} as { odd?: unknown }).odd,
})

const refused = (t: Test, answer: Answer, status: number, path: string | RegExp | undefined, what: string): void => {
  const errors = path === undefined ? undefined : [{ path }]
  t.match(
    { status: answer.status, json: answer.json },
    { status, json: { status: false, ...(errors && { errors }) } },
    what,
  )
}

const types = async (t: Test, { send, make, typeId }: Office): Promise<void> => {
  const many = Array.from({ length: 10_000 }, (_, i) => text(`f${i}`))
  refused(t, await send('POST', '/data-type', typeBody('Many', many)), 400, '/fields', '10,000 fields')
  const long = Array.from({ length: 60_000 }, (_, i) => text(`field ${i}`))
  refused(t, await send('POST', '/data-type', typeBody('Long', long)), 413, undefined, '2 MB of fields')
  for (const name of ['__proto__', ' ', '1', 'a.b', '‮abc', 'x'.repeat(51), 'a\u0000b'])
    refused(
      t,
      await send('POST', '/data-type', typeBody('Odd', [text(name)])),
      400,
      /^\/fields\/1/,
      JSON.stringify(name),
    )
  const twice = [text('same'), text('SAME')]
  refused(t, await send('POST', '/data-type', typeBody('Twice', twice)), 400, '/fields/2/name', 'a name twice')
  const link = (dataTypeId: string, required: boolean) => ({ name: 'link', type: 'reference', dataTypeId, required })
  const one = await make('/data-type', typeBody('One', []))
  const two = await make('/data-type', typeBody('Two', [link(one._id, true)]))
  const round = { fields: [...one.fields, link(two._id, true)] }
  refused(t, await send('PATCH', `/data-type/${one._id}`, round), 400, '/fields/1/dataTypeId', 'a circle of two')
  const self = { fields: [...one.fields, link(one._id, true)] }
  refused(t, await send('PATCH', `/data-type/${one._id}`, self), 400, '/fields/1/dataTypeId', 'a circle of one')
  const may = { fields: [...one.fields, link(two._id, false)] }
  t.equal((await send('PATCH', `/data-type/${one._id}`, may)).status, 200, 'one that a first record can enter')
  const first = await make('/data', { dataTypeId: one._id, values: { id: '1' } })
  const second = await make('/data', { dataTypeId: two._id, values: { id: '2', link: first._id } })
  t.equal((await send('PATCH', `/data/${first._id}`, { values: { link: second._id } })).status, 200)
  refused(t, await send('DELETE', `/data/${first._id}`), 409, undefined, 'neither goes while the other names it')
  await send('PATCH', `/data/${first._id}`, { values: { link: null } })
  for (const path of [`/data/${second._id}`, `/data/${first._id}`]) t.equal((await send('DELETE', path)).status, 200)
  await send('PATCH', `/data-type/${one._id}`, { fields: one.fields })
  for (const { _id } of [two, one]) t.equal((await send('DELETE', `/data-type/${_id}`)).status, 200)
  refused(t, await send('DELETE', `/data-type/${typeId}`), 409, undefined, 'a type with records')
}

/** They run in linear time or not at all. */
const patterns = async (t: Test, { send, make }: Office): Promise<void> => {
  for (const pattern of [
    '(?=a)',
    '(?<!a)b',
    '(a)\\1',
    '(',
    'a{2000}',
    '((a{100}){100}){100}',
    'a'.repeat(501),
    '[z-a]',
  ])
    for (const [path, body, at] of [
      ['/data-type', typeBody('P', [text('slow', { pattern })]), /^\/fields\/1\/pattern/],
      ['/flow', flowBody('P', [{ id: 'slow', type: 'text', pattern }]), /^\/steps\/0\/components\/0\/pattern/],
    ] as const)
      refused(t, await send('POST', path, body), 400, at, `${path} ${pattern.slice(0, 30)}`)
  const bomb = '^(([a-z])+.)+[A-Z]([a-z])+$'
  const type = await make(
    '/data-type',
    typeBody('Slow', [text('slow', { pattern: bomb }), text('other', { pattern: '(a|aa)+$' })]),
  )
  for (const field of ['slow', 'other']) {
    const values = { id: '1', [field]: `${'a'.repeat(9_999)}!` }
    refused(
      t,
      await send('POST', '/data', { dataTypeId: type._id, values }),
      400,
      `/values/${field}`,
      'explodes elsewhere',
    )
  }
  t.equal((await send('DELETE', `/data-type/${type._id}`)).status, 200)
}

const records = async (t: Test, { send, make, service, typeId, recordId, hubId }: Office): Promise<void> => {
  const of = (values: Json) => ({ dataTypeId: typeId, values })
  const large = of({ id: 'C-2', name: 'x'.repeat(1_000_000) })
  refused(t, await send('POST', '/data', large), 413, undefined, 'a record of 1 MB')
  refused(t, await send('PATCH', `/data/${recordId}`, { values: large.values }), 413, undefined, 'grown to 1 MB')
  refused(
    t,
    await send('POST', '/data', of({ id: 'C-2', name: 'x'.repeat(10_001) })),
    400,
    '/values/name',
    'a long text',
  )
  const members = Object.fromEntries(Array.from({ length: 201 }, (_, i) => [`m${i}`, i]))
  refused(t, await send('POST', '/data', of(members)), 400, '/values', '201 values')
  const proto = JSON.stringify(of({ id: 'C-2' })).replace('{"id"', '{"__proto__":{"odd":1},"id"')
  refused(t, await send('POST', '/data', proto), 400, /__proto__/, 'a prototype')
  for (const name of ['constructor', 'toString', 'hasOwnProperty'])
    refused(t, await send('POST', '/data', of({ id: 'C-2', [name]: 'x' })), 400, `/values/${name}`, name)
  for (const query of [
    'values.__proto__=1',
    'values.constructor=1',
    'values.=1',
    'sortBy=values.__proto__',
    'fields=constructor',
  ])
    refused(t, await send('GET', `/data?dataTypeId=${typeId}&${query}`), 400, /./, query)
  const words = Array.from({ length: 40 }, (_, i) => `w${i}`).join('%20')
  t.equal((await send('GET', `/data?dataTypeId=${typeId}&q=${words}`)).json.total, 0, 'many words')

  const [{ permissions }] = (await send('GET', '/roles?key=planner')).json.data
  const hides = { permissionName: 'view/data', dataTypeId: typeId, hiddenFields: ['id'] }
  const role = await make('/role', { name: 'Keyless', permissions, permissionDetails: [hides] })
  const login = { email: `keyless.${process.pid}@example.com`, password: 'Correct-horse-9-battery' }
  const user = await make('/user', { name: 'K', ...login, roleId: role._id, hubId: [hubId] })
  const { token } = await ask(service, 'POST', '/auth/login', { body: login })
  const get = (path: string) => call(service, 'GET', path, { token })
  t.match((await get(`/data/${recordId}`)).json.data.values, { id: undefined, name: 'Shop' }, 'a role hides the key')
  t.equal((await get('/data/type/customers/C-1')).status, 404, 'by which it finds nothing')
  t.equal((await get(`/data/type/customers/${recordId}`)).status, 200)
  refused(t, await get(`/data?dataTypeId=${typeId}&values.id=C-1`), 403, undefined, 'nor by a filter')
  const put = { method: 'PUT', body: { values: { name: 'Shop' } } }
  const kept = await call(service, put.method, `/data/${recordId}`, { token, body: put.body })
  t.match(kept, { status: 200, json: { data: { version: 1 } } }, 'what it leaves out stays')
  await send('DELETE', `/user/${user._id}`)
  await send('DELETE', `/role/${role._id}`)
}

const components = async (t: Test, { send, make, flowId, taskId, hubId }: Office): Promise<void> => {
  const other = await make('/flow', flowBody('Other', [{ id: 'theirs', type: 'text' }]))
  for (const id of ['__proto__', 'a-b', '1', '', 'x'.repeat(51), 'ä'])
    refused(
      t,
      await send('POST', '/flow', flowBody('Odd', [{ id, type: 'text' }])),
      400,
      /^\/steps\/0/,
      JSON.stringify(id),
    )
  const odd = await make('/flow', flowBody('Odd', [{ id: 'constructor', type: 'text' }]))
  const mine = await make('/task', { flowId: odd._id, title: 'T', hubId, components: { constructor: 'x' } })
  t.equal(mine.components.constructor, 'x', 'an id like any other')
  const plain = await make('/task', { flowId: odd._id, title: 'T', hubId })
  t.same(Object.keys(plain.components), [], 'which is empty where nothing was said')
  for (const path of [`/task/${mine._id}`, `/task/${plain._id}`, `/flow/${odd._id}`, `/flow/${other._id}`])
    t.equal((await send('DELETE', path)).status, 200, path)
  for (const name of ['theirs', 'constructor', 'toString', 'hasOwnProperty'])
    for (const [method, path, body] of [
      ['POST', '/task', { flowId, title: 'T', hubId, components: { [name]: 'x' } }],
      ['PATCH', `/task/${taskId}`, { components: { [name]: 'x' } }],
    ] as const)
      refused(t, await send(method, path, body), 400, `/components/${name}`, `${method} ${name}`)
  const proto = '{"components":{"__proto__":{"odd":1}}}'
  refused(t, await send('PATCH', `/task/${taskId}`, proto), 400, /__proto__/, 'a prototype')
  const deep = `{"components":{"note":${'['.repeat(50)}${']'.repeat(50)}}}`
  t.equal((await send('PATCH', `/task/${taskId}`, deep)).status, 400, 'deep')
  const large = { components: { note: 'x'.repeat(1_000_000) } }
  refused(t, await send('PATCH', `/task/${taskId}`, large), 413, undefined, '1 MB')
}

const moves = async (t: Test, { send, make, flowId, hubId, service, token }: Office): Promise<void> => {
  const me = (await send('GET', '/user')).json.data._id
  const task = await make('/task', { flowId, title: 'T', hubId, assigneeIds: [me] })
  const path = `/task/${task._id}`
  refused(t, await send('POST', `${path}/start`, { at: '1826-01-01T00:00:00Z' }), 409, undefined, 'before it was made')
  for (const at of ['2126-01-01T00:00:00Z', -1e15, 1e15, '2026-02-30T00:00:00Z', 'yesterday'])
    refused(t, await send('POST', `${path}/start`, { at }), 400, '/at', `${at}`)
  refused(t, await send('POST', `${path}/finish`, {}), 409, undefined, 'not yet')
  await send('POST', `${path}/start`, {})
  const each = await Promise.all(Array.from({ length: 8 }, () => send('POST', `${path}/finish`, {})))
  t.same(each.map(({ status }) => status).sort(), [200, ...Array(7).fill(409)], 'eight who finish at once')
  for (const { status, json } of each)
    if (status === 409) t.match(json, { code: 'conflict', data: { _id: task._id, state: 'finished' } })
  const types = (await send('GET', `${path}/history`)).json.data.map(({ type }: Json) => type)
  t.same(types, ['created', 'started', 'finished'])
  const deleted = await Promise.all([1, 2].map(() => call(service, 'DELETE', path, { token })))
  t.same(deleted.map(({ status }) => status).sort(), [200, 404])
}

const multipart = (boundary: string): { [name: string]: string } => ({
  'content-type': `multipart/form-data; boundary=${boundary}`,
})

const forms = async (t: Test, { send, service, taskId, recordId }: Office): Promise<void> => {
  const stranger = (await signUp(service, 'Stranger')).token
  const form = new FormData()
  form.append('componentId', 'photo')
  form.append('file', new File([png()], 'a.png'))
  const { body, headers } = await formOf(form)
  const foreign = await call(service, 'POST', `/task/${taskId}/files`, { token: stranger, body, headers })
  t.equal(foreign.status, 404, 'to the task of another organization')
  const part = (disposition: string, content: string): string =>
    `--b\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n${content}\r\n`
  const file = part('name="file"; filename="a"', 'x')
  for (const [what, sent, status] of [
    ['nothing', '', 400],
    ['no form', 'hello', 400],
    ['no parts', '--b--\r\n', 400],
    ['parts without end', file, 400],
    ['10,000 parts', `${part('name="componentId"', 'x').repeat(10_000)}--b--\r\n`, 400],
    ['10,000 files', `${file.repeat(10_000)}--b--\r\n`, 400],
    ['a header of 200 KB', `${part(`name="componentId"; x="${'x'.repeat(200_000)}"`, 'x')}--b--\r\n`, 400],
    ['10,000 headers', `--b\r\n${'X-A: b\r\n'.repeat(10_000)}\r\nx\r\n--b--\r\n`, 400],
    ['a field of 500 KB', `${part('name="componentId"', 'x'.repeat(500_000))}${file}--b--\r\n`, 400],
    ['parts without a name', `${part('x="y"', 'x')}--b--\r\n`, 400],
    ['a field called __proto__', `${part('name="__proto__"', 'x')}${file}--b--\r\n`, 400],
    ['a file that is a field', `${part('name="file"', 'x')}${part('name="componentId"', 'file')}--b--\r\n`, 400],
    [
      '2 MB',
      `${part('name="componentId"', 'file')}${part('name="file"; filename="a"', 'x'.repeat(2_000_000))}--b--\r\n`,
      413,
    ],
  ] as const)
    t.equal((await send('POST', `/task/${taskId}/files`, sent, multipart('b'))).status, status, what)
  for (const type of ['multipart/form-data', 'multipart/form-data; boundary=', 'application/json', 'text/plain'])
    t.ok(
      [400, 415].includes((await send('POST', `/task/${taskId}/files`, file, { 'content-type': type })).status),
      type,
    )
  t.equal((await send('POST', `/data/${recordId}/files`, body, headers)).status, 400, 'the form of a task for a record')
  for (const id of [
    '__proto__',
    'x',
    '..%2f..%2fkeys.json',
    '%00',
    '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6f',
    'x'.repeat(101),
  ])
    for (const method of ['GET', 'DELETE']) t.equal((await send(method, `/file/${id}`)).status, 404, `${method} ${id}`)
  t.same(attachments(service), [], 'nothing is left')
}

const attachments = ({ data }: Service): string[] =>
  readdirSync(join(data, 'files'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)

const upload = async (
  { send, flowId, hubId, make }: Office,
  files: readonly (readonly [name: string, content: string | Buffer])[],
  check: (answer: Answer, name: string, content: Buffer) => Promise<void>,
): Promise<void> => {
  const task = await make('/task', { flowId, title: 'T', hubId })
  for (const [name, content] of files) {
    const form = new FormData()
    form.append('componentId', 'file')
    form.append('file', new File([content], name))
    const { body, headers } = await formOf(form)
    await check(await send('POST', `/task/${task._id}/files`, body, headers), name, Buffer.from(content))
  }
  await send('DELETE', `/task/${task._id}`)
}

const names = async (t: Test, office: Office): Promise<void> => {
  const shown: { [name: string]: string } = {
    '../../x': 'x',
    '/etc/passwd': 'passwd',
    'C:\\Windows\\x.exe': 'x.exe',
    '..': 'file',
    'Größe 表 🚚.txt': 'Größe 表 🚚.txt',
    'a\u202egnp.exe': 'agnp.exe',
    'a"; filename="b': 'a"; filename="b',
    '=cmd()': '=cmd()',
    'con.txt': 'con.txt',
  }
  const before = readdirSync(office.service.data).sort()
  await upload(office, Object.entries(shown), async (answer, name) => {
    t.match(answer, { status: 201, json: { data: { name: shown[name] } } }, name)
    const read = await office.send('GET', `/file/${answer.json.data._id}`)
    const encoded = /filename\*=UTF-8''(\S+)$/.exec(String(read.headers['content-disposition']))?.[1] ?? ''
    t.equal(decodeURIComponent(encoded), shown[name])
    t.match(String(read.headers['content-disposition']), /^attachment; filename="[^"\\]*"; filename\*=/)
  })
  await upload(
    office,
    [['x'.repeat(5_000), 'x']],
    async (answer) => t.equal(answer.json.data.name.length, 255) as never,
  )
  t.same(readdirSync(office.service.data).sort(), before, 'nothing is written beside')
}

const contents = async (t: Test, office: Office): Promise<void> => {
  const svg = '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(1)</script></svg>'
  const jpeg = Buffer.from('ffd8ffe000104a46494600010100000100010000ffd9', 'hex')
  const types: { [name: string]: RegExp } = {
    'picture.svg': /^(application\/xml|text\/plain)$/,
    'page.html': /^text\/plain$/,
    'paper.pdf': /^image\/jpeg$/,
    'bomb.docx': /^application\/(zip|vnd\.)/,
  }
  const files = [
    ['picture.svg', svg],
    ['page.html', '<!doctype html><script>alert(1)</script>'],
    ['paper.pdf', jpeg],
    ['bomb.docx', zipBomb()],
  ] as const
  await upload(office, files, async (answer, name, content) => {
    t.match(answer, { status: 201, json: { data: { contentType: types[name], size: content.length } } }, name)
    const { headers, text: got } = await office.send('GET', `/file/${answer.json.data._id}`)
    t.match(
      headers,
      {
        'content-disposition': /^attachment;/,
        'x-content-type-options': 'nosniff',
        'content-security-policy': /sandbox/,
      },
      `${name} is never shown in place of a page`,
    )
    if (name.endsWith('l')) t.equal(got, content.toString(), 'as it was sent')
  })
}

/** 60 MB of zeros in the entry that says what an Office document is. */
const zipBomb = (): Buffer => {
  const zeros = Buffer.alloc(60 * 1024 * 1024)
  const packed = deflateRawSync(zeros)
  const name = Buffer.from('[Content_Types].xml')
  const head = Buffer.alloc(30)
  head.writeUInt32LE(0x04034b50, 0)
  head.writeUInt16LE(20, 4)
  head.writeUInt16LE(8, 8)
  head.writeUInt32LE(packed.length, 18)
  head.writeUInt32LE(zeros.length, 22)
  head.writeUInt16LE(name.length, 26)
  return Buffer.concat([head, name, packed])
}
