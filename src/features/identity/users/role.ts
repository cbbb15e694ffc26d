import { isDeepStrictEqual } from 'node:util'
import { Failure, invalid } from '../../../kernel/errors.ts'
import { id, list, newName, object, oneOf, optional, text, withDefault } from '../../../kernel/schema.ts'
import type { PermissionDetail } from '../../../kernel/caller.ts'
import type { Row } from '../../../kernel/table.ts'
import type { WriteContext } from '../../../kit/resource/declaration.ts'
import { defineResource } from '../../../kit/resource/resource.ts'
import { PERMISSIONS } from './predefined-roles.ts'
import { assertTellsNobody } from './role-recipients.ts'
import { assertHolds, type RoleRow } from './user-rules.ts'
import { ROLES_TABLE } from '../views.ts'

const permissionDetail = object({
  permissionName: oneOf('view/data'),
  dataTypeId: id(),
  hiddenFields: list(text({ max: 100 }), { max: 500, unique: true }),
})

/** Permissions of users. Predefined roles have a `key`: their name and, for the owner, permissions are fixed. */
export const role = defineResource({
  noun: 'role',
  plural: ROLES_TABLE,
  tag: 'Roles',
  fields: {
    name: newName({ max: 100 }),
    permissions: withDefault(list(oneOf(...PERMISSIONS), { max: 200, unique: true }), []),
    permissionDetails: withDefault(list(permissionDetail, { max: 500 }), []),
  },
  readOnly: { key: optional(oneOf('owner', 'admin', 'planner', 'fieldUser')) },
  permissions: { view: 'view/role', edit: 'edit/role' },
  unique: { field: 'name' },
  deletion: {
    replaceable: true,
    check: async ({ services, organizationId, id: roleId, caller, values }, heir) => {
      if (values.key !== undefined) throw fixed('A predefined role cannot be deleted.')
      if (caller !== undefined) assertHolds(caller, values as unknown as RoleRow)
      if (heir?.key === 'owner')
        throw invalid('/replaceWith', 'must not be the role of owners: they are made one by one')
      if (caller !== undefined && heir !== undefined) assertHolds(caller, heir as RoleRow)
      if (heir === undefined) await assertTellsNobody(services, organizationId, roleId, caller)
    },
  },
  table: { version: 2, indexes: { equality: ['name', 'key'], range: ['name'], text: ['name'] } },
  example: { name: 'Dispatcher', permissions: ['view/task', 'edit/task'] },
  rules: { checks: (write) => assertRole(write) },
})

/** Data types of an organization, whose records' fields can be hidden. */
const DATA_TYPES = 'dataTypes'

const assertRole = async (write: WriteContext): Promise<void> => {
  const { caller, values, before } = write
  if (before?.key !== undefined && values.name !== before.name)
    throw fixed('The name of a predefined role cannot be changed.')
  const isOwnerChange = before?.key === 'owner' && !isDeepStrictEqual(rightsOf(values), rightsOf(before))
  if (isOwnerChange) throw fixed('The permissions of the owner cannot be changed.')
  await assertDetails(write)
  if (caller === undefined) return
  if (before !== undefined) assertHolds(caller, before as unknown as RoleRow)
  assertHolds(caller, values as unknown as RoleRow)
}

/** Checks that each entry names an existing data type and its fields; a data type has one entry. */
const assertDetails = async ({ services, organizationId, values, before }: WriteContext): Promise<void> => {
  const details = values.permissionDetails as unknown as readonly PermissionDetail[]
  if (isDeepStrictEqual(details, before?.permissionDetails)) return
  const known = (before?.permissionDetails ?? []) as unknown as readonly PermissionDetail[]
  const isKnown = (detail: PermissionDetail): boolean => known.some((one) => isDeepStrictEqual(one, detail))
  const ids = details.map(({ dataTypeId }) => dataTypeId)
  const rows = services.resources.isDeclared(DATA_TYPES)
    ? await services.tables.getMany<DataTypeRow>(DATA_TYPES, organizationId, ids)
    : undefined
  for (const [i, { dataTypeId, hiddenFields }] of details.entries()) {
    const path = `/permissionDetails/${i}`
    if (ids.indexOf(dataTypeId) < i) throw invalid(`${path}/dataTypeId`, 'has an entry already')
    // A type or field that has gone since leaves the entry without effect, and the rest of the role can be written.
    if (rows === undefined || isKnown(details[i])) continue
    const row = rows[i]
    if (row === undefined) throw invalid(`${path}/dataTypeId`, 'must be the id of a data type')
    const names = new Set(row.fields.map((field) => field.name))
    const unknown = hiddenFields.findIndex((name) => !names.has(name))
    if (unknown >= 0) throw invalid(`${path}/hiddenFields/${unknown}`, 'must be the name of a field of the data type')
  }
}

type DataTypeRow = Row & { fields: readonly { name: string }[] }

const rightsOf = ({ permissions, permissionDetails }: WriteContext['values']): unknown[] => [
  permissions,
  permissionDetails,
]

const fixed = (message: string): Failure => new Failure('conflict', { message })
