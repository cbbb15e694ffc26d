import { test } from 'tap'
import { openIdentity } from '../../support/open-identity.ts'

const COMPONENTS = [
  { id: 'receiver', type: 'text', required: true, max: 50 },
  { id: 'parcels', type: 'number', min: 0 },
  { id: 'where', type: 'coordinate' },
]

const flowOf = (components: object[], more = {}) => ({
  name: 'Own',
  steps: [{ id: 'one', name: 'One', components }],
  ...more,
})

test('a new organization has the default flows, a copied one those of its source', async (t) => {
  const { signup, session } = await openIdentity(t)
  const owner = await signup()
  const flows = (await owner.call('GET', '/flows?sortBy=name')).body.data
  t.same(
    flows.map(({ key, needsDataType }: { key: string; needsDataType: boolean }) => [key, needsDataType]),
    [
      ['delivery', false],
      ['inspection', false],
      ['pickup', false],
      ['visit', false],
    ],
  )
  const type = (
    await owner.call('POST', '/data-type', { name: 'Sites', primaryKey: 'id', fields: [{ name: 'id', type: 'text' }] })
  ).body.data
  const own = flowOf([...COMPONENTS, { id: 'site', type: 'reference', dataTypeId: type._id }], {
    dataSource: { dataTypeId: type._id, mapping: { receiver: 'id' } },
  })
  t.equal((await owner.call('POST', '/flow', own)).status, 201)
  const [delivery] = flows
  t.equal((await owner.call('PATCH', `/flow/${delivery._id}`, { description: 'Ours' })).body.data.version, 2)
  const visit = flows[3]
  t.equal((await owner.call('DELETE', `/flow/${visit._id}`)).status, 200, 'a default flow can go')
  t.equal((await owner.call('PATCH', `/flow/${flows[1]._id}`, { name: 'Visit' })).status, 200)

  const created = await owner.call('POST', '/organization', { organizationName: 'Second', copyDataFromFirstOrg: true })
  t.equal(created.status, 200)
  const { call } = session(created, owner.email)
  const copies = (await call('GET', '/flows?sortBy=name')).body.data
  t.match(
    copies.map(({ name, key, description }: { name: string; key?: string; description?: string }) => [
      name,
      key,
      description,
    ]),
    [
      ['Delivery', 'delivery', 'Ours'],
      ['Own', undefined, undefined],
      ['Pickup', 'pickup', undefined],
      ['Visit', 'inspection', undefined],
      ['Visit (default)', 'visit', undefined],
    ],
  )
  const copy = copies[1]
  t.match(copy, { needsDataType: true, dataSource: undefined })
  t.equal(copy.steps[0].components[3].dataTypeId, undefined, 'nothing names what is the other organization’s')
  t.equal((await call('PATCH', `/flow/${copy._id}`, { isActive: false })).status, 200)
  const other = (
    await call('POST', '/data-type', { name: 'Places', primaryKey: 'id', fields: [{ name: 'id', type: 'text' }] })
  ).body.data
  const steps = flowOf([...COMPONENTS, { id: 'site', type: 'reference', dataTypeId: other._id }]).steps
  t.match(await call('PATCH', `/flow/${copy._id}`, { steps, dataSource: { dataTypeId: other._id, mapping: {} } }), {
    status: 200,
    body: { data: { needsDataType: false } },
  })
  t.equal((await call('DELETE', `/data-type/${other._id}`)).status, 409, 'the flow needs it')
})

test('a flow that does not hold is refused by its member', async (t) => {
  const { signup } = await openIdentity(t)
  const { call } = await signup()
  const type = (
    await call('POST', '/data-type', {
      name: 'Customers',
      primaryKey: 'number',
      fields: [
        { name: 'number', type: 'text' },
        { name: 'count', type: 'number' },
        { name: 'place', type: 'coordinate' },
      ],
    })
  ).body.data
  const refused = async (body: object, path: string) =>
    t.match(await call('POST', '/flow', body), { status: 400, body: { errors: [{ path }] } }, path)
  const at = '/steps/0/components'
  for (const id of ['__proto__', '1a', 'a b', 'x'.repeat(51), ''])
    await refused(flowOf([{ id, type: 'text' }]), `${at}/0/id`)
  await refused(
    flowOf([
      { id: 'a', type: 'text' },
      { id: 'a', type: 'number' },
    ]),
    `${at}/1/id`,
  )
  await refused(flowOf([{ id: 'a', type: 'colour' }]), `${at}/0/type`)
  await refused(flowOf([{ id: 'a', type: 'text', pattern: '(' }]), `${at}/0/pattern`)
  await refused(flowOf([{ id: 'a', type: 'number', filesMax: 2 }]), `${at}/0/filesMax`)
  await refused(flowOf([{ id: 'a', type: 'option' }]), `${at}/0/options`)
  await refused(flowOf([{ id: 'a', type: 'reference' }]), `${at}/0/dataTypeId`)
  await refused(flowOf([{ id: 'a', type: 'text', nonsense: 1 }]), `${at}/0/nonsense`)
  await refused({ ...flowOf(COMPONENTS), steps: [] }, '/steps')
  const source = (mapping: object, dataTypeId = type._id) => flowOf(COMPONENTS, { dataSource: { dataTypeId, mapping } })
  await refused(source({}, '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6f'), '/dataSource/dataTypeId')
  await refused(source({ nobody: 'number' }), '/dataSource/mapping/nobody')
  await refused(source({ receiver: 'none' }), '/dataSource/mapping/receiver')
  await refused(source({ parcels: 'number' }), '/dataSource/mapping/parcels')
  await refused(source({ receiver: 'place' }), '/dataSource/mapping/receiver')
  const made = await call('POST', '/flow', source({ receiver: 'count', parcels: 'count', where: 'place' }))
  t.match(made, { status: 201, body: { data: { version: 1, needsDataType: false } } })
  t.match(await call('PUT', `/flow/${made.body.data._id}`, { ...made.body.data, name: 'New', dataSource: null }), {
    status: 200,
    body: { data: { version: 2, name: 'New', dataSource: undefined } },
  })
  t.match(await call('POST', '/flow', flowOf([{ id: 'constructor', type: 'text' }])), { status: 201 })
  const phone = [{ id: 'a', type: 'text', pattern: '^\\+?[0-9 ()/-]{5,60}$' }]
  t.match(await call('POST', '/flow', flowOf(phone, { name: 'Phones' })), { status: 201 })
  t.equal((await call('POST', '/flow', flowOf(COMPONENTS, { name: 'dELIVERY' }))).status, 409)
})

test('a flow maps what its editor sees, and keeps what others mapped', async (t) => {
  const { signup, login, roleId } = await openIdentity(t)
  const owner = await signup()
  const make = async (path: string, body: object) => (await owner.call('POST', path, body)).body.data
  const fields = ['number', 'name', 'gate'].map((name) => ({ name, type: 'text' }))
  const type = await make('/data-type', { name: 'Customers', primaryKey: 'number', fields })
  const mapping = (named: object) => ({ dataSource: { dataTypeId: type._id, mapping: named } })
  const flow = await make('/flow', flowOf(COMPONENTS, mapping({ receiver: 'name' })))
  const { permissions } = (await owner.call('GET', `/role/${await roleId(owner, 'admin')}`)).body.data
  const permissionDetails = [{ permissionName: 'view/data', dataTypeId: type._id, hiddenFields: ['gate', 'name'] }]
  const role = await make('/role', { name: 'Clerk', permissions, permissionDetails })
  const password = 'Correct-horse-9-battery'
  await make('/user', {
    name: 'C',
    email: 'clerk@example.com',
    password,
    roleId: role._id,
    hubId: owner.body.data.hubId,
  })
  const clerk = await login('clerk@example.com', password)
  const path = `/flow/${flow._id}`
  for (const [method, url, body] of [
    ['PATCH', path, mapping({ receiver: 'gate' })],
    ['PUT', path, flowOf(COMPONENTS, mapping({ receiver: 'gate' }))],
    ['POST', '/flow', flowOf(COMPONENTS, { name: 'Mine', ...mapping({ receiver: 'gate' }) })],
  ] as const)
    t.match(await clerk.call(method, url, body), { status: 403, body: { fields: ['gate'] } }, method)
  t.equal((await clerk.call('PATCH', path, { description: 'Ours' })).status, 200)
  t.equal((await clerk.call('PATCH', path, mapping({ receiver: 'number' }))).status, 200)
})

test('a flow is read as it was in a version, for tasks that were made with it', async (t) => {
  const { signup, login, roleId } = await openIdentity(t)
  const owner = await signup()
  const stranger = await signup()
  const make = async (path: string, body: object) => (await owner.call('POST', path, body)).body.data
  const type = await make('/data-type', {
    name: 'Customers',
    primaryKey: 'number',
    fields: [{ name: 'number', type: 'text' }],
  })
  const first = await make(
    '/flow',
    flowOf(COMPONENTS, { dataSource: { dataTypeId: type._id, mapping: { receiver: 'number' } } }),
  )
  const path = `/flow/${first._id}`
  const password = 'Correct-horse-9-battery'
  const email = 'driver@example.com'
  const hubId = owner.body.data.hubId
  await make('/user', { name: 'D', email, password, roleId: await roleId(owner, 'fieldUser'), hubId })
  const driver = await login(email, password)
  const { steps } = flowOf([{ id: 'other', type: 'text' }])
  const second = (await owner.call('PATCH', path, { steps, dataSource: null, name: 'Newer' })).body.data
  t.equal(second.version, 2)
  for (const { call } of [owner, driver]) {
    t.match(await call('GET', `${path}?version=1`), { status: 200, body: { data: first } })
    t.same((await call('GET', `${path}?version=2`)).body.data, second)
    t.same((await call('GET', path)).body.data, second)
    t.same((await call('GET', `${path.toUpperCase().replace('/FLOW', '/flow')}?version=1&fields=name`)).body.data, {
      _id: first._id,
      name: 'Own',
    })
  }
  t.equal((await owner.call('GET', `${path}?version=1`)).headers.etag, '"1"')
  for (const version of [3, Number.MAX_SAFE_INTEGER])
    t.equal((await owner.call('GET', `${path}?version=${version}`)).status, 404, `${version}`)
  for (const version of ['0', '-1', '1.5', 'x', '9007199254740993'])
    t.equal((await owner.call('GET', `${path}?version=${version}`)).status, 400, version)
  t.equal((await stranger.call('GET', `${path}?version=1`)).status, 404)

  t.equal((await owner.call('DELETE', path)).status, 200)
  t.equal((await owner.call('GET', path)).status, 404)
  t.match(await driver.call('GET', `${path}?version=1`), { status: 200, body: { data: first } }, 'tasks still show it')
  t.equal((await owner.call('GET', `${path}?version=3`)).status, 404, 'a deletion is no version')
})
