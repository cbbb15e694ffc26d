import { answered, envelope } from '../../../kit/http/page-members.ts'
import { chooseFields, FIELDS_QUERY } from '../../../kit/http/list-query.ts'
import { type Route, route } from '../../../kit/http/route.ts'
import { PERMISSION_LIST } from './predefined-roles.ts'

const TEXT = { type: 'string' }
const PERMISSION = answered('Permission', { name: TEXT, group: TEXT, title: TEXT })

/** Permissions for editors of roles. */
export const permissionsRoute = (): Route =>
  route<{ fields?: string }>({
    method: 'GET',
    path: '/permissions',
    operationId: 'listPermissions',
    summary: 'List every permission there is, with its title and group',
    tag: 'Roles',
    access: { permission: 'view/role' },
    query: FIELDS_QUERY,
    answers: {
      200: {
        description: 'All of them; the list is not paged.',
        schema: envelope({ data: { type: 'array', items: PERMISSION } }),
        example: { status: true, data: PERMISSION_LIST.slice(0, 2) },
      },
    },
    handler: async ({ query }) => {
      const choose = chooseFields(Object.keys(PERMISSION.properties as object), query.fields, 'name')
      return { body: { data: PERMISSION_LIST.map(choose) } }
    },
  })
