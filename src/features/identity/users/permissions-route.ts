import { answered, dataAnswer } from '../../../kit/http/page-members.ts'
import { chooseFields, FIELDS_QUERY } from '../../../kit/http/list-query.ts'
import { userOf } from '../../../kit/http/request-context.ts'
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
      200: dataAnswer(
        'All of them; the list is not paged.',
        { type: 'array', items: PERMISSION },
        PERMISSION_LIST.slice(0, 2),
      ),
    },
    handler: async ({ query }) => {
      const choose = chooseFields(Object.keys(PERMISSION.properties as object), query.fields, 'name')
      return { body: { data: PERMISSION_LIST.map(choose) } }
    },
  })

const TEXTS = { type: 'array', items: TEXT }
const DETAIL = { type: 'object', properties: { permissionName: TEXT, dataTypeId: TEXT, hiddenFields: TEXTS } }
const OWN_PERMISSIONS = answered('OwnPermissions', {
  permissions: TEXTS,
  permissionDetails: { type: 'array', items: DETAIL },
})

/** For clients that offer what their user may do, who may not read roles. */
export const ownPermissionsRoute = (): Route =>
  route({
    method: 'GET',
    path: '/user/permissions',
    operationId: 'readOwnPermissions',
    summary: 'Read what the caller may do: the permissions of their role, and the fields that it hides',
    tag: 'Users',
    access: 'user',
    answers: {
      200: dataAnswer('As a role has them.', OWN_PERMISSIONS, {
        permissions: ['view/task', 'view/tracker'],
        permissionDetails: [],
      }),
    },
    handler: async (request) => {
      const { permissions, permissionDetails } = userOf(request)
      return { body: { data: { permissions: [...permissions].sort(), permissionDetails: [...permissionDetails] } } }
    },
  })
