import { test } from 'tap'
import type { Session } from '../../support/open-identity.ts'
import { FLOW, openTasks } from '../../support/open-tasks.ts'

test('a task moves by the table and nothing else', async (t) => {
  const { task, make, move, ada, owner, other, at } = await openTasks(t)
  const one = await task()
  t.match(one, {
    state: 'new',
    flowVersion: 1,
    assigneeIds: [],
    components: { parcels: 1 },
    createdBy: { type: 'user' },
  })
  for (const type of ['start', 'finish']) {
    const refused = await move(one._id, type)
    t.match(refused, { status: 409, body: { code: 'conflict' } }, type)
    t.same(refused.body.data, one, 'with the task as it is')
  }
  t.match(await move(one._id, 'assign', { assigneeIds: [ada.id] }), {
    status: 200,
    body: { data: { state: 'assigned', assignedAt: String } },
  })
  t.match(await move(one._id, 'assign', { assigneeIds: [] }), {
    status: 200,
    body: { data: { state: 'new', assignedAt: undefined } },
  })
  await move(one._id, 'assign', { assigneeIds: [ada.id] })
  t.equal((await move(one._id, 'finish')).status, 409)
  t.match(await move(one._id, 'start', { at: at(5), lat: 52, lng: 21 }, ada.session), {
    status: 200,
    body: { data: { state: 'inProgress', startedAt: at(5), startedPlace: { lat: 52, lng: 21 } } },
  })
  t.match(await move(one._id, 'start', { at: at(5) }, ada.session), { status: 200 }, 'the same again')
  t.equal((await move(one._id, 'start', { at: at(6) }, ada.session)).status, 409)
  t.equal((await move(one._id, 'start')).status, 409)
  t.match(await move(one._id, 'finish', { at: at(-296) }), { status: 409, body: { code: 'conflict' } })
  t.match(await move(one._id, 'finish', { at: at(10) }), {
    status: 400,
    body: { errors: [{ path: '/components/receiver' }] },
  })
  const both = await Promise.all([
    move(one._id, 'finish', { at: at(10), components: { receiver: 'X' } }, ada.session),
    move(one._id, 'finish', { at: at(11), components: { receiver: 'Y' } }),
  ])
  t.same(both.map(({ status }) => status).sort(), [200, 409], 'two who finish at once')
  for (const [type, body] of [
    ['start', {}],
    ['finish', {}],
    ['cancel', {}],
    ['assign', { assigneeIds: [] }],
    ['move', { hubId: other }],
  ] as const)
    t.equal((await move(one._id, type, body)).status, 409, type)
  const history = (await owner.call('GET', `/task/${one._id}/history`)).body.data
  t.same(
    history.map(({ type }: { type: string }) => type),
    ['created', 'assigned', 'assigned', 'assigned', 'started', 'finished'],
  )
  t.match(history[4], {
    at: at(5),
    actor: { type: 'user', id: ada.id },
    changes: { state: { from: 'assigned', to: 'inProgress' } },
  })

  const walked = async (id: string, limit: number): Promise<{ pages: object[][]; cursor: string }> => {
    const pages: object[][] = []
    for (let cursor = '', next: string | null = ''; ; cursor = next) {
      const query = `limit=${limit}${next === '' ? '' : `&cursor=${next}`}`
      const { body } = await owner.call('GET', `/task/${id}/history?${query}`)
      pages.push(body.data)
      next = body.nextCursor as string | null
      if (next === null) return { pages, cursor }
    }
  }
  const { pages, cursor } = await walked(one._id, 4)
  t.same(
    pages.map(({ length }) => length),
    [4, 2],
  )
  t.same(pages.flat(), history, 'its pages have all of it once')
  const elsewhere = await owner.call('GET', `/task/${(await task())._id}/history?cursor=${cursor}`)
  t.match(elsewhere, { status: 400, body: { errors: [{ path: '/cursor' }] } })
  const ids = Array.from({ length: 20 }, (_, i) => `text${i}`)
  const wide = await make('/flow', {
    name: 'Wide',
    steps: [{ id: 'one', name: 'One', components: ids.map((id) => ({ id, type: 'text' })) }],
  })
  const large = await task({ flowId: wide._id })
  const values = Array.from({ length: 30 }, (_, i) =>
    Object.fromEntries(ids.map((id) => [id, `${i}`.padEnd(9_000, '.')])),
  )
  for (const components of values)
    t.equal((await owner.call('PATCH', `/task/${large._id}`, { components })).status, 200)
  const heavy = (await walked(large._id, 500)).pages
  t.ok(heavy.length > 1, 'a page of large entries is closed before its limit')
  const entries = heavy.flat() as { changes: { components?: { to: object } } }[]
  t.same(
    entries.map(({ changes }) => changes.components?.to),
    [undefined, ...values],
  )

  for (const at of ['2126-01-01T00:00:00Z', '1926-01-01T00:00:00Z'])
    t.match(await move((await task())._id, 'cancel', { at }), { status: 400, body: { errors: [{ path: '/at' }] } })
  const gone = await task()
  t.match(await move(gone._id, 'cancel', { reason: 'Rain' }), {
    status: 200,
    body: { data: { state: 'cancelled', cancelReason: 'Rain' } },
  })
  t.equal((await move(gone._id, 'assign', { assigneeIds: [ada.id] })).status, 409)
})

test('what was done without a connection is judged by its time', async (t) => {
  const { task, move, ada, at, clock } = await openTasks(t)
  const make = async () => (await task({ assigneeIds: [ada.id] }))._id as string
  const [one, two, three] = [await make(), await make(), await make()]
  const [started, finished] = [at(60), at(120)]
  clock.advance(300_000)
  for (const id of [one, two, three]) t.match(await move(id, 'cancel'), { status: 200 })
  t.match(await move(one, 'start', { at: started }, ada.session), {
    status: 200,
    body: { data: { state: 'cancelled', startedAt: started } },
  })
  t.match(
    await move(one, 'finish', { at: finished, components: { receiver: 'X' } }, ada.session),
    { status: 200, body: { data: { state: 'finished', finishedAt: finished, cancelledAt: undefined } } },
    'it was finished before it was cancelled',
  )
  const again = { at: finished, components: { receiver: 'Y' } }
  t.match(
    await move(one, 'finish', again, ada.session),
    { status: 200, body: { data: { components: { receiver: 'X' } } } },
    'the same move again changes nothing',
  )
  const late = await move(two, 'start', { at: at(1) }, ada.session)
  t.match(late, { status: 409, body: { data: { state: 'cancelled' } } }, 'it was cancelled by then')
  t.equal((await move(three, 'finish', { at: finished }, ada.session)).status, 409, 'it was never started')
})

test('a task keeps an assignee whose hub is taken: they see it again once they have the hub again', async (t) => {
  const { task, move, ada, bob, hubId, other, owner } = await openTasks(t)
  const one = await task()
  await move(one._id, 'assign', { assigneeIds: [ada.id] })
  const seen = async (): Promise<unknown> => (await ada.session.call('GET', '/tasks')).body.total
  t.equal(await seen(), 1)
  t.equal((await owner.call('PATCH', `/user/${ada.id}`, { hubId: [other] })).status, 200)
  t.equal(await seen(), 0)
  t.match(await move(one._id, 'start', {}, ada.session), { status: 409, body: { code: 'taken_away' } })
  t.match((await owner.call('GET', `/tasks?assigneeId=${ada.id}`)).body, { total: 1 }, 'a dispatcher finds it')
  t.equal((await owner.call('GET', '/tasks?assigneeId=ada')).status, 400)
  t.equal((await owner.call('GET', `/tasks?assigneeId=${ada.id.toUpperCase()}`)).body.total, 1)
  t.match(await owner.call('PATCH', `/task/${one._id}`, { title: 'Later' }), {
    status: 200,
    body: { data: { state: 'assigned', assigneeIds: [ada.id] } },
  })
  t.match(await move(one._id, 'assign', { assigneeIds: [ada.id, bob.id] }), {
    status: 400,
    body: { errors: [{ path: '/assigneeIds/0' }] },
  })
  await owner.call('PATCH', `/user/${ada.id}`, { hubId: [hubId] })
  t.equal(await seen(), 1)
})

test('people of a task have its hub and its team; it comes to another hub without those who lack that', async (t) => {
  const { task, move, ada, bob, hubId, other, make, owner } = await openTasks(t)
  const team = await make('/team', { name: 'T', hubId, userIds: [bob.id] })
  const elsewhere = await make('/team', { name: 'E', hubId: other, userIds: [bob.id] })
  const one = await task({ teamId: team._id })
  t.equal(one.state, 'assigned')
  const refused = async (body: object, path: string) =>
    t.match(await move(one._id, 'assign', body), { status: 400, body: { errors: [{ path }] } }, JSON.stringify(body))
  await refused({ assigneeIds: [ada.id] }, '/assigneeIds/0')
  await refused({ teamId: elsewhere._id }, '/teamId')
  await refused({ assigneeIds: [hubId] }, '/assigneeIds/0')
  t.match(await owner.call('POST', '/task', { flowId: one.flowId, title: 'X', hubId: other, assigneeIds: [ada.id] }), {
    status: 400,
  })
  t.match(await move(one._id, 'assign', { assigneeIds: [ada.id, bob.id], teamId: null }), {
    status: 200,
    body: { data: { teamId: undefined } },
  })
  await move(one._id, 'assign', { assigneeIds: [bob.id], teamId: team._id })
  t.match(await move(one._id, 'move', { hubId: other }), {
    status: 200,
    body: { data: { state: 'assigned', hubId: other, assigneeIds: [bob.id], teamId: undefined } },
  })
  t.match((await owner.call('PATCH', `/task/${one._id}`, { assigneeIds: [] })).body.data, {
    state: 'new',
    assigneeIds: [],
  })
  t.match((await owner.call('PATCH', `/task/${one._id}`, { assigneeIds: [bob.id] })).body.data, { state: 'assigned' })
  t.match((await owner.call('PATCH', `/task/${one._id}`, { hubId })).body.data, {
    state: 'assigned',
    assigneeIds: [bob.id],
  })
  await owner.call('PATCH', `/task/${one._id}`, { assigneeIds: [bob.id] })
  t.equal((await owner.call('DELETE', `/user/${bob.id}`)).status, 200)
  t.match(
    (await owner.call('GET', `/task/${one._id}`)).body.data,
    { state: 'new', assigneeIds: [], assignedAt: undefined },
    'nobody is left',
  )
  t.match(await owner.call('DELETE', `/hub/${hubId}`), { status: 409, body: { message: /task/ } })
  t.match(await owner.call('DELETE', `/flow/${one.flowId}`), {
    status: 409,
    body: { errors: [{ path: `/task/${one._id}` }] },
  })
  await move(one._id, 'cancel')
  t.equal((await owner.call('DELETE', `/flow/${one.flowId}`)).status, 200)
  t.equal(
    (await owner.call('PATCH', `/task/${one._id}`, { title: 'Later' })).status,
    200,
    'it keeps the flow that it was made with',
  )
})

test('a flow that is deleted while a task of it is made stays, or the task is refused', async (t) => {
  const { owner, make, hubId } = await openTasks(t)
  for (let i = 0; i < 8; i++) {
    const { _id: flowId } = await make('/flow', { ...FLOW, name: `Round ${i}` })
    const create = () => owner.call('POST', '/task', { flowId, title: 'X', hubId })
    const remove = () => owner.call('DELETE', `/flow/${flowId}`)
    await Promise.all((i % 2 === 0 ? [create, remove, create] : [remove, create]).map((one) => one()))
    const isGone = (await owner.call('GET', `/flow/${flowId}`)).status === 404
    const { total } = (await owner.call('GET', `/tasks?flowId=${flowId}`)).body
    t.equal(isGone, total === 0, `${total} tasks have it`)
  }
})

test('without dispatch/task one sees and changes what is one’s own', async (t) => {
  const { task, move, ada, bob, hubId, make, flow, owner } = await openTasks(t)
  const team = await make('/team', { name: 'T', hubId, userIds: [bob.id] })
  const [mine, ours, others] = [await task({ assigneeIds: [ada.id] }), await task({ teamId: team._id }), await task()]
  const seen = async (session: Session, query = '') =>
    (await session.call('GET', `/tasks${query}`)).body.data.map(({ _id }: { _id: string }) => _id).sort()
  t.same(await seen(ada.session), [mine._id])
  t.same(await seen(bob.session), [ours._id])
  t.equal((await seen(owner)).length, 3)
  t.same(await seen(owner, `?assigneeId=${ada.id}`), [mine._id])
  t.same(await seen(ada.session, '?assigneeId=me'), [mine._id])
  t.same(await seen(ada.session, `?assigneeId=${bob.id}`), [])
  for (const id of [ours._id, others._id]) {
    for (const [method, path] of [
      ['GET', ''],
      ['GET', '/history'],
      ['PATCH', ''],
      ['POST', '/start'],
    ] as const)
      t.equal(
        (await ada.session.call(method, `/task/${id}${path}`, method === 'GET' ? undefined : {})).status,
        404,
        `${method} ${path}`,
      )
  }
  t.equal((await ada.session.call('POST', '/task', { flowId: flow._id, title: 'X', hubId })).status, 403)
  t.equal((await ada.session.call('DELETE', `/task/${mine._id}`)).status, 403)
  t.equal((await move(mine._id, 'assign', { assigneeIds: [bob.id] }, ada.session)).status, 403)
  t.equal((await ada.session.call('PATCH', `/task/${mine._id}`, { title: 'X' })).status, 403)
  t.equal(
    (await ada.session.call('PATCH', `/task/${mine._id}`, { hubId: ours.hubId, assigneeIds: [bob.id] })).status,
    403,
  )
  t.match(await ada.session.call('PATCH', `/task/${mine._id}`, { components: { parcels: 3 } }), {
    status: 200,
    body: { data: { components: { parcels: 3 } } },
  })
  t.equal((await move(mine._id, 'cancel', {}, ada.session)).status, 200)
  t.equal((await ada.session.call('PATCH', `/task/${mine._id}`, { components: { parcels: 4 } })).status, 409)
})

test('components keep the rules of their flow, and what the data source maps is filled in', async (t) => {
  const { task, owner, make, flow, hubId } = await openTasks(t)
  const fields = [
    { name: 'number', type: 'text' },
    { name: 'place', type: 'coordinate' },
    { name: 'count', type: 'number' },
  ]
  const type = await make('/data-type', { name: 'Customers', primaryKey: 'number', fields })
  const record = await make('/data', {
    dataTypeId: type._id,
    values: { number: 'C-1', place: { lat: 1, lng: 2 }, count: -4 },
  })
  const mapping = { customer: 'number', place: 'place', parcels: 'count' }
  t.equal(
    (await owner.call('PATCH', `/flow/${flow._id}`, { dataSource: { dataTypeId: type._id, mapping } })).status,
    200,
  )
  const dataSource = { dataTypeId: type._id, dataId: record._id }
  const made = await task({ dataSource, components: { place: { lat: 5, lng: 5 } } })
  t.match(
    made,
    { flowVersion: 2, components: { customer: 'C-1', place: { lat: 5, lng: 5 }, parcels: 1 } },
    'where the body says nothing else; what does not fit is left out',
  )
  t.equal((await owner.call('GET', `/tasks?dataId=${record._id}`)).body.total, 1)
  const refused = async (body: object, path: string) =>
    t.match(
      await owner.call('POST', '/task', { flowId: flow._id, title: 'X', hubId, ...body }),
      { status: 400, body: { errors: [{ path }] } },
      path,
    )
  await refused({ components: { parcels: -1 } }, '/components/parcels')
  await refused({ components: { nobody: 1 } }, '/components/nobody')
  await refused({ components: { constructor: 1 } }, '/components/constructor')
  await refused({ components: { customer: 'C-9' } }, '/components/customer')
  await refused({ dataSource: { ...dataSource, dataId: type._id } }, '/dataSource/dataId')
  await refused({ flowId: hubId }, '/flowId')
  await refused({ window: { from: '2026-01-02T00:00:00Z', to: '2026-01-01T00:00:00Z' } }, '/window/to')
  t.match(await owner.call('PATCH', `/task/${made._id}`, { components: { customer: 'C-9' } }), { status: 400 })
  t.match((await owner.call('PATCH', `/task/${made._id}`, { components: { place: null } })).body.data.components, {
    place: undefined,
    customer: 'C-1',
  })
  await refused({ lat: 1 }, '/lng')
  t.match(
    await owner.call('PATCH', `/task/${made._id}`, { lng: 1 }),
    { status: 400, body: { errors: [{ path: '/lat' }] } },
    'a place has both coordinates',
  )
  t.match(
    await owner.call('PUT', `/task/${made._id}`, { flowId: flow._id, title: 'Anew', hubId }),
    { status: 200, body: { data: { title: 'Anew', components: { customer: 'C-1', parcels: undefined } } } },
    'a PUT keeps what its sender may only read',
  )
  await owner.call('PATCH', `/flow/${flow._id}`, {
    steps: [{ id: 'two', name: 'Two', components: [] }],
    dataSource: null,
  })
  t.equal(
    (await owner.call('PATCH', `/task/${made._id}`, { components: { receiver: 'Eve' } })).status,
    200,
    'by the version that it was made with',
  )
  const same = {
    _id: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b60',
    flowId: flow._id,
    title: 'Mine',
    hubId,
    externalId: 'o-1',
  }
  t.equal((await owner.call('POST', '/task', same)).status, 201)
  t.equal((await owner.call('POST', '/task', same)).status, 201, 'an id that the client made: the same again')
  t.equal((await owner.call('POST', '/task', { ...same, title: 'Other' })).status, 409)
  t.equal((await owner.call('POST', '/task', { ...same, _id: undefined })).status, 409, 'the external id')
})

test('a mapping follows its field to another name, and no other field that takes its name', async (t) => {
  const { task, owner, make, flow } = await openTasks(t)
  const type = await make('/data-type', {
    name: 'Customers',
    primaryKey: 'number',
    fields: ['number', 'phone'].map((name) => ({ name, type: 'text' })),
  })
  const record = await make('/data', { dataTypeId: type._id, values: { number: 'C-1', phone: '500' } })
  const path = `/flow/${flow._id}`
  const ask = async (method: 'GET' | 'PUT' | 'PATCH', url: string, body?: object) =>
    (await owner.call(method, url, body)).body.data
  const mapped = (customer: string) => ({ dataSource: { dataTypeId: type._id, mapping: { customer } } })
  await ask('PATCH', path, mapped('phone'))
  const [number, phone] = type.fields
  const mobile = { ...phone, name: 'mobile' }
  const fields = [number, { name: 'phone', type: 'text' }, mobile]
  await ask('PATCH', `/data-type/${type._id}`, { fields })
  await ask('PATCH', `/data/${record._id}`, { values: { phone: '600' } })
  const dataSource = { dataTypeId: type._id, dataId: record._id }
  t.match((await task({ dataSource })).components, { customer: '500' })
  const read = await ask('GET', path)
  t.match(read, mapped('mobile'))
  t.match((await ask('GET', `/flows?q=${read.name}`))[0], mapped('mobile'))
  for (const [method, body] of [
    ['PUT', read],
    ['PATCH', { description: 'Ours' }],
  ] as const)
    t.match(await ask(method, path, body), mapped('mobile'), method)
  t.match(await ask('PATCH', path, mapped('phone')), mapped('phone'), 'a field that has the name now is meant')
  t.match((await task({ dataSource })).components, { customer: '600' })
  await ask('PATCH', `/data-type/${type._id}`, { fields: [number, mobile] })
  t.same((await ask('PATCH', path, { isActive: true })).dataSource.mapping, {}, 'a field that is gone fills nothing')
})

test('tasks are found by what an office asks for', async (t) => {
  const { task, owner, ada } = await openTasks(t)
  const hour = (day: number, h: number) => `2026-03-0${day}T${String(h).padStart(2, '0')}:00:00.000Z`
  const window = (day: number, from: number, to: number) => ({ from: hour(day, from), to: hour(day, to) })
  await task({ title: 'A', window: window(1, 8, 10), lat: 52, lng: 21, tags: ['cooled'], priority: 3 })
  await task({
    title: 'B',
    window: window(1, 9, 12),
    lat: 50,
    lng: 19,
    externalId: 'x',
    assigneeIds: [ada.id],
    address: 'Łódź',
  })
  await task({
    title: 'C long road',
    window: { from: hour(1, 1), to: hour(9, 1) },
    lat: -17,
    lng: 179.5,
    description: 'Ring twice',
  })
  await task({ title: 'D', lat: -17, lng: -179.5 })
  const found = async (query: string) =>
    (await owner.call('GET', `/tasks?sortBy=title&${query}`)).body.data
      ?.map(({ title }: { title: string }) => title[0])
      .join('')
  t.equal(await found(''), 'ABCD')
  t.equal(await found('state=new'), 'ACD')
  t.equal(await found('state=new,assigned'), 'ABCD')
  t.equal(await found('tags=cooled'), 'A')
  t.equal(await found('externalId=x'), 'B')
  t.equal(await found('priority=3'), 'A')
  t.notMatch(await found('priority=null'), 'A')
  t.equal(await found('priority=3&priority=null'), 'ABCD')
  for (const priority of ['0x3', '3.0', '+3', ' 3', '3,0x3'])
    t.match(
      await owner.call('GET', `/tasks?priority=${encodeURIComponent(priority)}`),
      { status: 400, body: { errors: [{ path: '/priority' }] } },
      priority,
    )
  t.match(await owner.call('GET', '/tasks?priority=10'), { status: 400, body: { errors: [{ path: '/priority' }] } })
  t.equal(await found(`from=${hour(1, 10)}&to=${hour(1, 11)}`), 'ABC')
  t.equal(await found(`from=${hour(1, 11)}&to=${hour(1, 11)}`), 'BC')
  t.equal(await found(`from=${hour(2, 1)}`), 'C')
  t.equal(await found(`to=${hour(1, 8)}`), 'AC')
  const sorted = async (query: string) =>
    (await owner.call('GET', `/tasks?${query}`)).body.data?.map(({ title }: { title: string }) => title[0]).join('')
  t.equal(await sorted('sortBy=window.from'), 'DCAB', 'those without a window come first')
  t.equal(await sorted('sortBy=window.from&sortOrder=desc'), 'BACD')
  t.equal(await sorted('sortBy=window.to'), 'DABC')
  t.equal(await sorted(`sortBy=window.to&sortOrder=desc&from=${hour(1, 11)}&to=${hour(1, 11)}`), 'CB')
  const first = (await owner.call('GET', '/tasks?sortBy=window.from&limit=2')).body
  t.equal(await sorted(`sortBy=window.from&limit=2&cursor=${first.nextCursor}`), 'AB')
  for (const sortBy of ['windowFrom', 'window'])
    t.match(await owner.call('GET', `/tasks?sortBy=${sortBy}`), {
      status: 400,
      body: { errors: [{ path: '/sortBy' }] },
    })
  t.equal(await found('bbox=18,49,20,51'), 'B')
  t.equal(await found('bbox=18,49,21,52'), 'AB')
  t.equal(await found('bbox=179,-18,-179,-16'), 'CD')
  t.equal(await found('bbox=-180,-90,180,90'), 'ABCD')
  t.equal(await found('bbox=22,-90,20.5,90'), 'BCD', 'nearly all of the way around')
  t.equal(await found('q=ring'), 'C')
  for (const q of ['--', '🙂', '+ring?', ' ', 'Infinity'])
    t.equal(await found(`q=${encodeURIComponent(q)}`), q === '+ring?' ? 'C' : '', `a search for ${q}`)
  for (const q of ['lodz', 'LODZ', 'Łódź', 'łód']) t.equal(await found(`q=${encodeURIComponent(q)}`), 'B', q)
  t.equal((await owner.call('GET', '/tasks?state=open')).status, 400)
  t.equal((await owner.call('GET', '/tasks?bbox=1,2,3')).status, 400)
  t.same(
    (await owner.call('GET', '/tasks?limit=1&sortBy=priority&sortOrder=desc&fields=title,priority')).body.data[0]
      .priority,
    3,
  )
})

test('an assignee is named once, however the id is written', async (t) => {
  const { task, move, owner, ada } = await openTasks(t)
  const assigneeIds = [ada.id, ada.id.toUpperCase()]
  const { _id, assigneeIds: kept } = await task({ assigneeIds })
  t.same(kept, [ada.id])
  for (const answer of [
    await move((await task())._id, 'assign', { assigneeIds }),
    await owner.call('PATCH', `/task/${_id}`, { assigneeIds }),
  ])
    t.same(answer.body.data.assigneeIds, [ada.id])
})

test('a device whose clock is ahead does not hold up what comes after it', async (t) => {
  const { task, move, ada, at } = await openTasks(t)
  const tomorrow = at(23 * 3600)
  const started = async (): Promise<string> => {
    const { _id } = await task({ assigneeIds: [ada.id] })
    t.match(await move(_id, 'start', { at: tomorrow }, ada.session), { status: 200 })
    return _id
  }
  const [one, two] = [await started(), await started()]
  t.match(await move(one, 'finish', { at: at(60) }), { status: 409, body: { code: 'conflict' } })
  t.match(await move(one, 'finish', { components: { receiver: 'X' } }), {
    status: 200,
    body: { data: { finishedAt: tomorrow } },
  })
  t.match(await move(two, 'cancel'), { status: 200, body: { data: { cancelledAt: tomorrow } } })
})

test('null takes all values of components away', async (t) => {
  const { task, owner } = await openTasks(t)
  const { _id } = await task({ components: { parcels: 3, receiver: 'X' } })
  t.same((await owner.call('PATCH', `/task/${_id}`, { components: null })).body.data.components, {})
})

test('the repeat of a request that was cut short is answered with its task, although the flow is not active any more', async (t) => {
  const { owner, flow, hubId } = await openTasks(t)
  const body = { flowId: flow._id, title: 'Deliver', hubId }
  const send = (own: number) => owner.call('POST', '/task', body, { seed: Buffer.alloc(32, own) })
  const first = await send(1)
  t.equal((await owner.call('PATCH', `/flow/${flow._id}`, { isActive: false })).status, 200)
  t.match(await send(1), { status: 201, body: { data: first.body.data } })
  t.match(await send(2), { status: 400, body: { errors: [{ path: '/flowId' }] } }, 'another request makes none')
  t.equal((await owner.call('GET', `/tasks?flowId=${flow._id}`)).body.total, 1)
})

test('a state that differs is refused and names what changes it, the same one is taken', async (t) => {
  const { owner, ada, task } = await openTasks(t)
  const made = await task({ assigneeIds: [ada.id] })
  for (const method of ['PATCH', 'PUT'] as const) {
    const body = method === 'PUT' ? made : { title: 'Collect' }
    const refused = await owner.call(method, `/task/${made._id}`, { ...body, version: undefined, state: 'finished' })
    t.match(refused, { status: 400, body: { errors: [{ path: '/state', message: /POST \/task\/\{id\}\/start/ }] } })
    t.equal(
      (await owner.call(method, `/task/${made._id}`, { ...body, version: undefined, state: 'assigned' })).status,
      200,
    )
  }
  t.equal((await owner.call('GET', `/task/${made._id}`)).body.data.state, 'assigned')
})
