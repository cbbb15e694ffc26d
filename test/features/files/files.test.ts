import { test, type Test } from 'tap'
import { Uploads } from '../../../src/kit/files/uploads.ts'
import { seeSubject } from '../../../src/reactors/dispatch/subject-event.ts'
import { SubjectRows } from '../../../src/reactors/dispatch/subject-rows.ts'
import { deleteAttachments } from '../../../src/reactors/sweep/delete-attachments.ts'
import { sweepFiles } from '../../../src/reactors/sweep/sweep-files.ts'
import { fileOwners } from '../../../src/operations/file-owners.ts'
import { FILE_BYTES_MAX, openIdentity, PASSWORD, type Session } from '../../support/open-identity.ts'
import { formOf, png, textOf } from '../../support/pictures.ts'
import { until } from '../../support/service.ts'

const FLOW = {
  name: 'Round',
  steps: [
    {
      id: 'one',
      name: 'One',
      components: [
        { id: 'photo', type: 'photo', required: true, filesMax: 2 },
        { id: 'paper', type: 'file' },
        { id: 'sign', type: 'signature' },
        { id: 'note', type: 'text' },
        { id: 'locked', type: 'file', readOnly: true },
      ],
    },
  ],
}

const CONTRACTS = {
  name: 'Contracts',
  primaryKey: 'number',
  fields: [
    { name: 'number', type: 'text' },
    { name: 'scan', type: 'file', required: true, filesMax: 2 },
    { name: 'note', type: 'text' },
  ],
}

type Content = Buffer | string

const send = async (
  session: Session,
  path: string,
  parts: [name: string, value: string | { name: string; content: Content }][],
  options: { headers?: { [name: string]: string }; seed?: Buffer } = {},
) => {
  const form = new FormData()
  for (const [name, value] of parts)
    if (typeof value === 'string') form.append(name, value)
    else form.append(name, new File([value.content], value.name))
  const { body, headers } = await formOf(form)
  return session.call('POST', path, body, { ...options, headers: { ...headers, ...options.headers } })
}

const open = async (t: Test) => {
  const world = await openIdentity(t)
  const owner = await world.signup()
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
  const make = async (path: string, body: object): Promise<any> => {
    const answer = await owner.call('POST', path, body)
    if (answer.status !== 201) throw new Error(`${path} ${JSON.stringify(answer.body)}`)
    return answer.body.data
  }
  const [hubId] = owner.body.data.hubId as string[]
  const person = async (name: string, key: string) => {
    const email = `${name}.${owner.email}`
    const roleId = await world.roleId(owner, key)
    const { _id } = await make('/user', { name, email, password: PASSWORD, roleId, hubId: [hubId] })
    return { id: _id as string, session: await world.login(email) }
  }
  const flow = await make('/flow', FLOW)
  const task = async (body: object = {}) => (await make('/task', { flowId: flow._id, title: 'T', hubId, ...body }))._id
  const stored = async (): Promise<string[]> => {
    const keys: string[] = []
    for await (const { key } of world.files.list('attachments/')) keys.push(key)
    return keys
  }
  const attach = (id: string, componentId: string, content: Content = png(), name = 'a.png', by = owner) =>
    send(by, `/task/${id}/files`, [
      ['componentId', componentId],
      ['file', { name, content }],
    ])
  return { ...world, owner, make, person, hubId, task, stored, attach }
}

test('a file is attached to a task, read, and deleted; what it is, its bytes say', async (t) => {
  const { owner, task, attach, stored } = await open(t)
  const id = await task()
  const made = await attach(id, 'photo', png(), 'ünder/../../x "1".pdf')
  t.match(made, {
    status: 201,
    body: { data: { contentType: 'image/png', size: 64, taskId: id, componentId: 'photo' } },
  })
  const { _id: fileId } = made.body.data
  t.same(Object.keys(made.body.data).sort(), [
    '_id',
    'componentId',
    'contentType',
    'createdAt',
    'name',
    'size',
    'taskId',
  ])
  t.equal(made.body.data.name, 'x "1".pdf')
  t.same((await owner.call('GET', `/task/${id}`)).body.data.components, { photo: [fileId] })
  const read = await owner.call('GET', `/file/${fileId}`)
  t.match(read, {
    status: 200,
    headers: {
      'content-type': 'image/png',
      'content-disposition': `attachment; filename="x _1_.pdf"; filename*=UTF-8''x%20%221%22.pdf`,
      etag: `"${fileId}"`,
      'accept-ranges': 'bytes',
    },
  })
  t.equal(await textOf(read.stream), png().toString())
  const history = (await owner.call('GET', `/task/${id}/history`)).body.data
  t.match(history.at(-1), {
    type: 'changed',
    actor: { type: 'user' },
    changes: { components: { to: { photo: [fileId] } }, files: { to: [{ _id: fileId, name: 'x "1".pdf' }] } },
  })
  t.notOk(JSON.stringify(history).includes('upload'))
  t.equal((await stored()).length, 1)
  t.equal((await owner.call('DELETE', `/file/${fileId}`)).status, 200)
  t.same(await stored(), [])
  t.equal((await owner.call('GET', `/file/${fileId}`)).status, 404)
  t.equal((await owner.call('DELETE', `/file/${fileId}`)).status, 404)
  t.same((await owner.call('GET', `/task/${id}`)).body.data.components, {})
})

test('ranges and conditions', async (t) => {
  const { owner, task, attach } = await open(t)
  const text = Array.from({ length: 3_000 }, (_, i) => String(i % 10)).join('')
  const { _id: fileId } = (await attach(await task(), 'paper', text, 'digits')).body.data
  const get = (headers: { [name: string]: string }) => owner.call('GET', `/file/${fileId}`, undefined, { headers })
  for (const [range, from, to] of [
    ['bytes=0-9', 0, 9],
    ['bytes=2990-', 2990, 2999],
    ['bytes=-5', 2995, 2999],
    ['bytes=-9000', 0, 2999],
    ['bytes=2990-9999', 2990, 2999],
  ] as const) {
    const part = await get({ range })
    t.match(part, { status: 206, headers: { 'content-range': `bytes ${from}-${to}/3000` } }, range)
    t.equal(await textOf(part.stream), text.slice(from, to + 1), range)
  }
  for (const range of ['bytes=3000-', 'bytes=9999-10000', 'bytes=-0'])
    t.match(
      await get({ range }),
      { status: 416, headers: { 'content-range': 'bytes */3000' }, body: { status: false, code: 'invalid' } },
      range,
    )
  for (const range of ['bytes=5-2', 'bytes=0-1,4-5', 'lines=1-2', 'bytes=', 'bytes=-'])
    t.equal((await get({ range })).status, 200, `${range} is answered by the whole`)
  for (const tag of [`"${fileId}"`, `W/"${fileId}"`, '*', `"x", "${fileId}"`])
    t.equal((await get({ 'if-none-match': tag })).status, 304, tag)
  t.equal((await get({ 'if-none-match': '"x"' })).status, 200)
  t.equal((await get({ range: 'bytes=0-1', 'if-range': `"${fileId}"` })).status, 206)
  t.equal((await get({ range: 'bytes=0-1', 'if-range': '"other"' })).status, 200)
})

test('what is refused leaves nothing', async (t) => {
  const { owner, task, attach, stored } = await open(t)
  const id = await task()
  const path = `/task/${id}/files`
  const file = { name: 'a.png', content: png() }
  for (const [componentId, message] of [
    ['nothing', /not a component/],
    ['__proto__', /not a component/],
    ['constructor', /not a component/],
    ['note', /is a text/],
    ['locked', /read only/],
  ] as const)
    t.match(
      await attach(id, componentId),
      { status: 400, body: { code: 'invalid', errors: [{ path: '/componentId', message }] } },
      componentId,
    )
  const svg = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
  for (const component of ['photo', 'sign'])
    for (const content of ['%PDF-1.7 %%EOF', svg, 'text', Buffer.from([0, 1, 2])])
      t.match(await attach(id, component, content, 'a.png'), { status: 415, body: { code: 'unsupported_type' } })
  t.match(await attach(id, 'paper', Buffer.alloc(FILE_BYTES_MAX + 1)), { status: 413, body: { code: 'too_large' } })
  t.match(await attach(id, 'paper', ''), { status: 400, body: { errors: [{ path: '/file' }] } })
  for (const [parts, at] of [
    [[['file', file]], '/componentId'],
    [[['componentId', 'photo']], '/file'],
    [
      [
        ['componentId', 'photo'],
        ['file', file],
        ['file', file],
      ],
      '/file',
    ],
    [
      [
        ['componentId', 'photo'],
        ['other', file],
      ],
      '/other',
    ],
    [
      [
        ['componentId', 'photo'],
        ['file', file],
        ['more', 'x'],
      ],
      '/more',
    ],
    [
      [
        ['componentId', 'photo'],
        ['componentId', 'paper'],
        ['file', file],
      ],
      '/componentId',
    ],
  ] as const)
    t.match(await send(owner, path, parts as never), { status: 400, body: { errors: [{ path: at }] } }, `${at}`)
  const { body, headers } = await formOf(new FormData())
  for (const broken of [Buffer.from('no form'), body.subarray(0, 10), Buffer.alloc(100)])
    t.equal((await owner.call('POST', path, broken, { headers })).status, 400)
  const whole = await formOf(
    (() => {
      const form = new FormData()
      form.append('componentId', 'paper')
      form.append('file', new File([Buffer.alloc(100_000, 'x')], 'x'))
      return form
    })(),
  )
  const cut = await owner.call('POST', path, whole.body.subarray(0, 50_000), { headers: whole.headers })
  t.equal(cut.status, 400, 'a form that ends in the middle of its file')
  t.same(await stored(), [])
  await attach(id, 'photo')
  await attach(id, 'photo')
  t.match(await attach(id, 'photo'), {
    status: 400,
    body: { errors: [{ path: '/componentId', message: /at most 2/ }] },
  })
  t.equal((await stored()).length, 2)
})

test('SVG with a script, a picture that says it is a PDF and a zip bomb are bytes to be downloaded', async (t) => {
  const { owner, task, attach } = await open(t)
  const id = await task()
  const bomb = Buffer.concat([
    Buffer.from('504b0304140000000800000000000000000000f0000000000000ffffff7f13000000', 'hex').subarray(0, 30),
    Buffer.from('[Content_Types].xml'),
    Buffer.alloc(4_000, 0),
  ])
  for (const [name, content, type] of [
    [
      'x.svg',
      '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
      /^(text\/plain|application\/xml)$/,
    ],
    ['x.html', '<!doctype html><script>alert(1)</script>', /^text\/plain$/],
    ['x.pdf', Buffer.from('ffd8ffe000104a464946', 'hex'), /^image\/jpeg$/],
    ['x.docx', bomb, /^application\//],
    ['x.bin', Buffer.from([0, 1, 2, 255]), /^application\/octet-stream$/],
  ] as const) {
    const made = await attach(id, 'paper', content, name)
    t.match(made, { status: 201, body: { data: { name, contentType: type, size: content.length } } }, name)
    const read = await owner.call('GET', `/file/${made.body.data._id}`)
    t.match(read.headers, {
      'content-disposition': /^attachment; /,
      'content-security-policy': "default-src 'none'; sandbox",
    })
    t.equal(Buffer.from(await textOf(read.stream)).toString(), Buffer.from(content).toString(), name)
  }
})

test('a repeated upload is one file', async (t) => {
  const { owner, task, stored } = await open(t)
  const id = await task()
  const seed = Buffer.alloc(32, 7)
  const once = () =>
    send(
      owner,
      `/task/${id}/files`,
      [
        ['componentId', 'photo'],
        ['file', { name: 'a.png', content: png() }],
      ],
      { seed },
    )
  const first = await once()
  const again = await once()
  t.same(again.body.data, first.body.data)
  t.equal((await stored()).length, 1)
  t.same((await owner.call('GET', `/task/${id}`)).body.data.components.photo, [first.body.data._id])
})

test('whoever sees the task reads its files; its assignees attach and finish with what is required', async (t) => {
  const { owner, task, attach, person, signup, make, hubId } = await open(t)
  const [ada, bob] = [await person('ada', 'fieldUser'), await person('bob', 'fieldUser')]
  const id = await task({ assigneeIds: [ada.id] })
  t.equal((await attach(id, 'photo', png(), 'a.png', bob.session)).status, 404)
  await ada.session.call('POST', `/task/${id}/start`, {})
  t.match(await ada.session.call('POST', `/task/${id}/finish`, {}), {
    status: 400,
    body: { errors: [{ path: '/components/photo' }] },
  })
  const { _id: fileId } = (await attach(id, 'photo', png(), 'a.png', ada.session)).body.data
  for (const [session, status] of [
    [ada.session, 200],
    [owner, 200],
    [bob.session, 404],
    [await signup(), 404],
  ] as const)
    t.equal((await session.call('GET', `/file/${fileId}`)).status, status)
  t.equal((await bob.session.call('DELETE', `/file/${fileId}`)).status, 404)
  const other = await task({ assigneeIds: [ada.id] })
  const foreign = { components: { photo: [fileId] } }
  t.match(await ada.session.call('PATCH', `/task/${other}`, foreign), {
    status: 400,
    body: { errors: [{ path: '/components/photo', message: 'names a file that was not attached' }] },
  })
  const body = { flowId: (await owner.call('GET', `/task/${id}`)).body.data.flowId, title: 'T', hubId, ...foreign }
  t.match(await owner.call('POST', '/task', body), { status: 400, body: { errors: [{ path: '/components/photo' }] } })
  t.match(await ada.session.call('POST', `/task/${id}/finish`, { components: { photo: [fileId] } }), { status: 200 })
  t.match(await attach(id, 'paper', 'late', 'late', ada.session), {
    status: 409,
    body: { code: 'conflict', data: { _id: id, state: 'finished', files: undefined } },
  })
  t.equal((await ada.session.call('DELETE', `/file/${fileId}`)).status, 409)
  t.equal((await attach(id, 'paper', 'late', 'late')).status, 201, 'dispatchers may')
  const role = await make('/role', { name: 'None', permissions: ['view/hub'] })
  await make('/user', { name: 'N', email: `n.${owner.email}`, password: PASSWORD, roleId: role._id, hubId: [hubId] })
  t.ok(role)
})

test('a file of a record is as hidden as its field', async (t) => {
  const { owner, make, hubId, login, stored } = await open(t)
  const type = await make('/data-type', CONTRACTS)
  const record = await make('/data', { dataTypeId: type._id, values: { number: '1' } })
  const of = `dataTypeId=${type._id}`
  t.equal((await owner.call('GET', `/data?${of}&invalid=true`)).body.total, 1, 'its required file is missing')
  const attach = (field: string, by = owner) =>
    send(by, `/data/${record._id}/files`, [
      ['file', { name: 'scan.pdf', content: '%PDF-1.7 %%EOF' }],
      ['field', field],
    ])
  const made = await attach('scan')
  t.match(made, {
    status: 201,
    body: { data: { name: 'scan.pdf', contentType: 'application/pdf', dataId: record._id, field: 'scan' } },
  })
  const { _id: fileId } = made.body.data
  t.equal((await owner.call('GET', `/data?${of}&invalid=true`)).body.total, 0)
  for (const field of ['note', 'nothing', '__proto__'])
    t.match(await attach(field), { status: 400, body: { errors: [{ path: '/field' }] } }, field)
  t.same((await owner.call('GET', `/data/${record._id}`)).body.data.values.scan, [fileId])
  const another = await attach('scan')
  t.equal(another.status, 201)
  t.match(await attach('scan'), { status: 400, body: { errors: [{ path: '/field', message: /at most 2 files/ }] } })
  t.equal((await owner.call('DELETE', `/file/${another.body.data._id}`)).status, 200)
  const role = await make('/role', {
    name: 'Clerk',
    permissions: ['view/data', 'edit/data'],
    permissionDetails: [{ permissionName: 'view/data', dataTypeId: type._id, hiddenFields: ['scan'] }],
  })
  const email = `clerk.${owner.email}`
  await make('/user', { name: 'Clerk', email, password: PASSWORD, roleId: role._id, hubId: [hubId] })
  const clerk = await login(email)
  t.match(await clerk.call('GET', `/file/${fileId}`), { status: 403, body: { fields: ['scan'] } })
  t.equal((await attach('scan', clerk)).status, 201, 'writes are not affected')
  const other = await make('/data', { dataTypeId: type._id, values: { number: '2' } })
  t.match(await owner.call('PATCH', `/data/${other._id}`, { values: { scan: [fileId] } }), {
    status: 400,
    body: { errors: [{ path: '/values/scan' }] },
  })
  await clerk.call('PUT', `/data/${record._id}`, { values: { number: '1b' } })
  t.equal((await owner.call('GET', `/data/${record._id}`)).body.data.values.scan.length, 2, 'a hidden one is kept')
  await owner.call('PATCH', `/data/${record._id}`, { values: { scan: [fileId] } })
  t.equal((await owner.call('GET', `/file/${fileId}`)).status, 200)
  for (const values of [{ scan: null }, { scan: [] }])
    t.match(await owner.call('PATCH', `/data/${record._id}`, { values }), {
      status: 400,
      body: { errors: [{ path: '/values/scan', message: 'is required' }] },
    })
  t.match(
    await owner.call('DELETE', `/file/${fileId}`),
    { status: 409, body: { errors: [{ path: '/values/scan' }] } },
    'a required file that is there stays, until there is another',
  )
  t.equal((await attach('scan')).status, 201)
  t.equal((await owner.call('DELETE', `/file/${fileId}`)).status, 200)
  t.equal((await owner.call('GET', `/file/${fileId}`)).status, 404)
  t.equal((await stored()).length, 2, 'what was left out of the value is swept')
  const odd = await make('/data-type', {
    name: 'Odd',
    primaryKey: 'number',
    fields: [
      { name: 'number', type: 'text' },
      { name: 'constructor', type: 'file', required: true },
    ],
  })
  const own = await make('/data', { dataTypeId: odd._id, values: { number: '1' } })
  const only = await send(owner, `/data/${own._id}/files`, [
    ['file', { name: 'scan.pdf', content: '%PDF-1.7 %%EOF' }],
    ['field', 'constructor'],
  ])
  t.equal((await owner.call('DELETE', `/file/${only.body.data._id}`)).status, 409, 'whatever its field is called')
})

test('files go with their task, and what nothing names is swept part by part', async (t) => {
  const world = await open(t)
  const { owner, task, attach, stored, files, tables, clock } = world
  const follower = deleteAttachments(world)
  t.teardown(() => follower.close())
  const [one, two] = [await task(), await task()]
  await attach(one, 'photo')
  await attach(two, 'photo')
  await owner.call('DELETE', `/task/${one}`)
  await until('its file to go', async () => (await stored()).length === 1)
  const gone = [one, two].map((id) => `attachments/${id.slice(-2)}/o/task-${id}/left`)
  const strange = 'attachments/00/strange'
  for (const key of [...gone, strange])
    await files.put(
      key,
      (async function* () {
        yield Buffer.from('x')
      })(),
      10,
    )
  const sweep = (now: number, lookedMax?: number) =>
    sweepFiles({ files, tables, clock: { now: () => now } }, fileOwners(world), new AbortController().signal, lookedMax)
  t.equal(await sweep(Date.now() + 3_600_000), 0, 'the young may be on their way')
  const late = Date.now() + 25 * 3_600_000
  let swept = 0
  for (let i = 0; i < 4; i++) swept += await sweep(late, 1)
  t.equal(swept, 3, 'bounded, each goes on where the one before ended')
  t.equal((await stored()).length, 1, 'what a task names stays')
  t.ok(clock)
})

test('an organization has so many uploads on their way and no more; others go on', async (t) => {
  const { files } = await openIdentity(t)
  const uploads = new Uploads({ files, bytesMax: 1_000 })
  let release = (): void => undefined
  const released = new Promise<void>((resolve) => (release = resolve))
  async function* slow(bytes: Buffer): AsyncGenerator<Uint8Array> {
    await released
    yield bytes
  }
  const form = new FormData()
  form.append('place', 'x')
  form.append('file', new File(['x'], 'x'))
  const { body, headers } = await formOf(form)
  const receive = (organizationId: string) =>
    uploads.receive(
      { headers: { get: () => headers['content-type'] }, body: slow(body) },
      { noun: 'task', organizationId, id: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a' },
      { required: ['place'] },
    )
  const own = Array.from({ length: 16 }, () => receive('one'))
  await t.rejects(receive('one'), { code: 'overloaded' })
  const other = receive('two')
  release()
  await Promise.all([...own, other])
  t.ok(await receive('one'), 'as soon as there is room')
})

test('what is told of a task or a record to the outside holds ids of files, nothing else of them', async (t) => {
  const { owner, make, task, attach, log, tables } = await open(t)
  const { organizationId } = owner.body.data
  const row = (table: string, ...key: [string, string]) => tables.get(table, ...key)
  const told = async (type: 'task' | 'record', id: string): Promise<string> => {
    const trigger = {
      sourceId: '',
      organizationId,
      subject: { type, id },
      event: 'onTaskFinished' as const,
      at: 0,
      revision: 1,
    }
    const seen = await seeSubject({ rows: new SubjectRows(log), row }, trigger)
    return JSON.stringify(await seen.data({ permissions: new Set(), permissionDetails: [], userId: '' }))
  }
  const id = await task()
  const { _id: fileId } = (await attach(id, 'photo', png(), 'okapi.png')).body.data
  await owner.call('PATCH', `/task/${id}`, { title: 'Next' })
  t.match(await told('task', id), new RegExp(fileId))
  t.notMatch(await told('task', id), /okapi|upload/)
  const type = await make('/data-type', CONTRACTS)
  const record = await make('/data', { dataTypeId: type._id, values: { number: '1' } })
  const scan = { name: 'okapi.txt', content: 'x' }
  await send(owner, `/data/${record._id}/files`, [
    ['field', 'scan'],
    ['file', scan],
  ])
  t.match(await told('record', record._id), /"scan":\[/)
  t.notMatch(await told('record', record._id), /okapi|upload/)
})
