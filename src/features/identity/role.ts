import { isDeepStrictEqual } from 'node:util'
import { Failure, invalid } from '../../kernel/errors.ts'
import { id, list, object, oneOf, optional, text, withDefault } from '../../kernel/schema.ts'
import type { WriteContext } from '../../kit/resource/declaration.ts'
import { defineResource } from '../../kit/resource/resource.ts'
import { PERMISSIONS } from './predefined-roles.ts'
import { assertHolds, type RoleRow } from './user-rules.ts'
import { ROLES_TABLE } from './views.ts'

const permissionDetail = object({
  permissionName: oneOf('view/data'),
  dataTypeId: id(),
  hiddenFields: list(text({ max: 100 }), { max: 500 }),
})

/** What its users may do. The predefined ones have a `key`: name and existence are fixed, permissions but the owner's are not. */
export const role = defineResource({
  noun: 'role',
  plural: ROLES_TABLE,
  tag: 'Roles',
  fields: {
    name: text({ max: 100 }),
    permissions: withDefault(list(oneOf(...PERMISSIONS), { max: 200, unique: true }), []),
    permissionDetails: withDefault(list(permissionDetail, { max: 500 }), []),
  },
  readOnly: { key: optional(oneOf('owner', 'admin', 'planner', 'fieldUser')) },
  permissions: { view: 'view/role', edit: 'edit/role' },
  unique: 'name',
  replaceable: true,
  version: 2,
  indexes: { equality: ['name', 'key'], range: ['name'], text: ['name'] },
  example: { name: 'Dispatcher', permissions: ['view/task', 'edit/task'] },
  checks: (write) => assertRole(write),
  beforeDelete: async ({ caller, values }, heir) => {
    if (values.key !== undefined) throw fixed('A predefined role cannot be deleted.')
    if (caller !== undefined) assertHolds(caller, values as unknown as RoleRow)
    if (heir?.key === 'owner') throw invalid('/replaceWith', 'must not be the role of owners: they are made one by one')
    if (caller !== undefined && heir !== undefined) assertHolds(caller, heir as RoleRow)
  },
})

const assertRole = async ({ caller, values, before }: WriteContext): Promise<void> => {
  if (before?.key !== undefined && values.name !== before.name)
    throw fixed('The name of a predefined role cannot be changed.')
  const isOwnerChange = before?.key === 'owner' && !isDeepStrictEqual(rightsOf(values), rightsOf(before))
  if (isOwnerChange) throw fixed('The permissions of the owner cannot be changed.')
  if (caller === undefined) return
  if (before !== undefined) assertHolds(caller, before as unknown as RoleRow)
  assertHolds(caller, values as unknown as RoleRow)
}

const rightsOf = ({ permissions, permissionDetails }: WriteContext['values']): unknown[] => [
  permissions,
  permissionDetails,
]

const fixed = (message: string): Failure => new Failure('conflict', { message })
