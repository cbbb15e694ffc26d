import { test } from 'tap'
import { directory } from '../../../projections/directory.ts'
import { role } from '../../../src/features/identity/users/role.ts'
import { anyObject, list, text } from '../../../src/kernel/schema.ts'
import { idSource } from '../../../src/kit/commands/ids.ts'
import { defineResource } from '../../../src/kit/resource/resource.ts'
import { folderOf } from '../../support/folder-of.ts'
import { openServices, startProjections } from '../../support/open-services.ts'
import { PERMISSIONS, PREDEFINED_ROLES } from '../../../src/features/identity/users/predefined-roles.ts'
import { openIdentity, PASSWORD } from '../../support/open-identity.ts'

test('the table holds together', async (t) => {
  t.equal(new Set(PERMISSIONS).size, PERMISSIONS.length)
  t.same(
    PREDEFINED_ROLES.map(({ key }) => key),
    ['owner', 'admin', 'planner', 'fieldUser'],
  )
  for (const { key, permissions } of PREDEFINED_ROLES) {
    t.same(
      permissions.filter((permission) => !PERMISSIONS.includes(permission)),
      [],
      key,
    )
    t.equal(permissions.includes('create/organization'), key === 'owner' || key === 'admin', key)
  }
})

test('custom roles; predefined ones keep name and existence, the owner all permissions', async (t) => {
  const { signup, login, roleId } = await openIdentity(t)
  const owner = await signup()
  const made = await owner.call('POST', '/role', {
    name: 'Clerk',
    permissions: ['view/user', 'edit/role', 'edit/user'],
  })
  t.match(made, { status: 201, body: { data: { name: 'Clerk', permissionDetails: [] } } })
  const { _id } = made.body.data
  t.match(await owner.call('POST', '/role', { name: 'X', permissions: ['view/nothing'] }), {
    status: 400,
    body: { errors: [{ path: '/permissions/0' }] },
  })
  t.equal((await owner.call('POST', '/role', { name: 'owner' })).status, 409, 'names are unique, case aside')
  t.equal((await owner.call('POST', '/role', { name: 'X', key: 'owner' })).status, 400)

  const planner = await roleId(owner, 'planner')
  const ownerRole = await roleId(owner, 'owner')
  t.equal((await owner.call('PATCH', `/role/${planner}`, { name: 'Boss' })).status, 409)
  t.equal((await owner.call('PATCH', `/role/${ownerRole}`, { permissions: [] })).status, 409)
  t.equal((await owner.call('DELETE', `/role/${planner}`)).status, 409)
  t.match(await owner.call('PATCH', `/role/${planner}`, { permissions: ['view/task'] }), {
    status: 200,
    body: { data: { key: 'planner', permissions: ['view/task'] } },
  })
  const record = (await owner.call('GET', `/role/${ownerRole}`)).body.data
  t.equal((await owner.call('PUT', `/role/${ownerRole}`, record)).status, 200, 'read, write back')

  await owner.call('POST', '/user', { name: 'C', email: 'c@example.com', password: PASSWORD, roleId: _id })
  const clerk = await login('c@example.com')
  t.match(await clerk.call('POST', '/role', { name: 'More', permissions: ['edit/hub'] }), {
    status: 403,
    body: { permissions: ['edit/hub'] },
  })
  t.equal(
    (await clerk.call('PATCH', `/role/${_id}`, { permissions: ['view/user', 'edit/role', 'edit/hub'] })).status,
    403,
    'nor for oneself',
  )
  t.equal(
    (await clerk.call('PATCH', `/role/${await roleId(owner, 'admin')}`, { permissions: [] })).status,
    403,
    'nor taken from who holds more',
  )
  t.equal((await owner.call('DELETE', `/role/${_id}`)).status, 409, 'in use')
  t.equal((await owner.call('PATCH', `/role/${_id}`, { permissions: ['view/user'] })).status, 200)
  t.equal((await clerk.call('POST', '/role', { name: 'Late' })).status, 403, 'counts at the next call')
  await owner.call('DELETE', `/user/${clerk.body.data._id}`)
  t.equal((await owner.call('DELETE', `/role/${_id}`)).status, 200)
})

test('every permission is listed with its title and group', async (t) => {
  const { signup, login, roleId } = await openIdentity(t)
  const owner = await signup()
  const { data } = (await owner.call('GET', '/permissions')).body
  t.same(
    data.map(({ name }: { name: string }) => name),
    PERMISSIONS,
  )
  const found = (name: string) => data.find((one: { name: string }) => one.name === name)
  t.same(found('view/export-config'), {
    name: 'view/export-config',
    group: 'Import and export',
    title: 'View Export Config',
  })
  t.ok(data.every(({ title, group }: { title: string; group: string }) => title !== '' && group !== ''))
  t.same((await owner.call('GET', '/permissions?fields=title')).body.data[0], {
    name: 'create/organization',
    title: 'Create Organization',
  })
  const field = { name: 'F', email: 'field@example.com', password: PASSWORD, roleId: await roleId(owner, 'fieldUser') }
  await owner.call('POST', '/user', field)
  const user = await login(field.email)
  t.equal((await user.call('GET', '/permissions')).status, 403)
  const own = (await user.call('GET', '/user/permissions')).body.data
  const { data: roles } = (await owner.call('GET', '/roles?key=fieldUser')).body
  t.same(own.permissions, [...roles[0].permissions].sort(), 'their own are theirs to read')
  t.same(own.permissionDetails, roles[0].permissionDetails)
})

test('permissionDetails name data types that there are, each once, and fields that they have', async (t) => {
  const dataType = defineResource({
    noun: 'dataType',
    plural: 'dataTypes',
    tag: 'Data',
    fields: { name: text({ max: 50 }), fields: list(anyObject(), { max: 9 }) },
    permissions: { view: 'view/data-type', edit: 'edit/data-type' },
    example: {},
  })
  const services = await openServices(folderOf(t), undefined, [role, dataType])
  const { runner, settle } = await startProjections(services, [directory([role.rows, dataType.rows])])
  t.teardown(() => services.close())
  t.teardown(() => runner.close())
  const now = services.clock.now()
  const origin = { organizationId: 'o', now, ids: idSource(now), metadata: {} }
  const made = await dataType.writer(services).create(origin, { name: 'customer', fields: [{ name: 'phone' }] })
  await settle(made.wrote ?? { position: -1, types: [] }, 60_000)
  const dataTypeId = made.row._id as string
  const detail = { permissionName: 'view/data', dataTypeId, hiddenFields: ['phone'] }
  const write = (...permissionDetails: object[]) =>
    role.writer(services).create(origin, { name: `Role ${origin.ids.next()}`, permissionDetails } as never)
  t.same((await write(detail)).row.permissionDetails, [detail])
  for (const [details, path] of [
    [[detail, detail], '/permissionDetails/1/dataTypeId'],
    [[{ ...detail, dataTypeId: origin.ids.next() }], '/permissionDetails/0/dataTypeId'],
    [[{ ...detail, hiddenFields: ['phone', 'fax'] }], '/permissionDetails/0/hiddenFields/1'],
  ] as const)
    await t.rejects(write(...details), { code: 'invalid', details: { errors: [{ path }] } }, path)

  const id = (await write(detail)).row._id as string
  const fields = [{ name: 'fax' }]
  const changed = await dataType.writer(services).update(origin, dataTypeId, (before) => ({ ...before, fields }))
  await settle(changed.wrote ?? { position: -1, types: [] }, 60_000)
  const amend = (...permissionDetails: object[]) =>
    role.writer(services).change(origin, { id, kind: 'amend', body: { permissionDetails } } as never)
  const other = await dataType.writer(services).create(origin, { name: 'product', fields: [{ name: 'price' }] })
  await settle(other.wrote ?? { position: -1, types: [] }, 60_000)
  const further = { ...detail, dataTypeId: other.row._id, hiddenFields: ['price'] }
  t.same(
    (await amend(detail, further)).row.permissionDetails,
    [detail, further],
    'what is not sent anew is not refused',
  )
  await t.rejects(amend({ ...detail, hiddenFields: ['phone', 'fax'] }), { code: 'invalid' }, 'what is, is')
})
