import { id, list, object, oneOf, optional, text, withDefault } from '../../kernel/schema.ts'
import { defineResource } from '../../kit/resource.ts'
import { PERMISSIONS } from './predefined-roles.ts'
import { ROLES_TABLE } from './views.ts'

const permissionDetail = object({
  permissionName: oneOf('view/data'),
  dataTypeId: id(),
  hiddenFields: list(text({ max: 100 }), { max: 500 }),
})

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
  indexes: { equality: ['key'], range: ['name'], text: ['name'] },
  example: { name: 'Dispatcher', permissions: ['view/task', 'edit/task'] },
})
