import { Failure } from '../../kernel/errors.ts'
import type { JsonObject, JsonSchema } from '../../kernel/json.ts'
import { id, list, objectSchema, optional, patchSchema, withDefault } from '../../kernel/schema.ts'
import type { Row } from '../../kernel/table.ts'
import {
  answerList,
  chooseFields,
  FIELDS_PARAMETER,
  listQuerySchema,
  type ListQuery,
  type ListShape,
} from '../../kit/http/list-query.ts'
import { userOf } from '../../kit/http/request-context.ts'
import { amendSchema, createSchema, replaceSchema } from '../../kit/resource/declaration.ts'
import { idParameter } from '../../kit/resource/names.ts'
import {
  listAnswer,
  listShape,
  originOf,
  readRoute,
  rowAnswer,
  rowReply,
  versionOf,
} from '../../kit/resource/routes.ts'
import { route, type Reply, type Route, type RouteRequest } from '../../kit/http/route.ts'
import { normalizeKey } from '../../kit/commands/unique-claim.ts'
import { changeUser, deleteUser } from './change-user.ts'
import type { IdentityContext } from './context.ts'
import { createUser, type NewUser } from './create-user.ts'
import { PASSWORD } from './signup-routes.ts'
import { presentUser, user, type UserRow } from './user.ts'
import { USERS_TABLE } from './views.ts'

const declaration = user.declaration
const PARAMS = { [idParameter(declaration)]: { type: 'string', minLength: 1, maxLength: 100 } }
const FIELDS_QUERY: JsonSchema = {
  type: 'object',
  properties: { fields: FIELDS_PARAMETER },
  additionalProperties: false,
}
const TEAM_IDS = withDefault(list(id(), { max: 500, unique: true }), [])

export const userRoutes = (context: IdentityContext): Route[] => [
  listUsers(context),
  readMe(context),
  readByEmail(context),
  readRoute(declaration, context.services),
  create(context),
  change(context, 'PUT', 'replace'),
  change(context, 'PATCH', 'amend'),
  remove(context),
]

const shape: ListShape = (() => {
  const { filters, ...rest } = listShape(declaration)
  const { emailKey: _internal, ...shown } = filters
  return { ...rest, filters: shown }
})()

const listUsers = ({ services }: IdentityContext): Route => {
  const schema = listQuerySchema(shape)
  return route<ListQuery & { email?: string }>({
    method: 'GET',
    path: '/users',
    operationId: 'listUsers',
    summary: 'List users',
    tag: declaration.tag,
    access: { permission: declaration.permissions.view },
    query: { ...schema, properties: { ...(schema.properties as object), email: { type: 'string', maxLength: 254 } } },
    answers: { 200: listAnswer(declaration) },
    handler: (request) => {
      const caller = userOf(request)
      const { email } = request.query
      const where = email === undefined ? undefined : { emailKey: normalizeKey(email) }
      return answerList(shape, {
        tables: services.tables,
        scope: caller.organizationId,
        caller,
        query: request.query,
        path: '/api/v3/users',
        where,
        present: presentUser,
      })
    },
  })
}

const readMe = ({ services }: IdentityContext): Route =>
  route<{ fields?: string }>({
    method: 'GET',
    path: '/user',
    operationId: 'readOwnUser',
    summary: 'Read the calling user',
    tag: declaration.tag,
    access: 'user',
    query: FIELDS_QUERY,
    answers: { 200: rowAnswer(declaration) },
    handler: async (request) => {
      const { organizationId, userId } = userOf(request)
      return reply(request, await services.tables.get(USERS_TABLE, organizationId, userId))
    },
  })

const readByEmail = ({ services }: IdentityContext): Route =>
  route<{ fields?: string }>({
    method: 'GET',
    path: '/user/email/{email}',
    operationId: 'readUserByEmail',
    summary: 'Read a user by e-mail',
    tag: declaration.tag,
    access: { permission: declaration.permissions.view },
    params: { email: { type: 'string', maxLength: 254 } },
    query: FIELDS_QUERY,
    answers: { 200: rowAnswer(declaration) },
    handler: async (request) => {
      const { organizationId } = userOf(request)
      const { rows } = await services.tables.find(USERS_TABLE, organizationId, {
        where: { emailKey: normalizeKey(request.params.email) },
        limit: 1,
      })
      return reply(request, rows[0]?.row)
    },
  })

const create = (context: IdentityContext): Route =>
  route<object, NewUser>({
    method: 'POST',
    path: '/user',
    operationId: 'createUser',
    summary: 'Create a user',
    tag: declaration.tag,
    access: { permission: declaration.permissions.edit },
    body: createSchema({ fields: { ...declaration.fields, teamIds: TEAM_IDS, password: optional(PASSWORD) } }),
    bodyExample: { ...declaration.example, password: 'correct horse battery staple' },
    answers: { 201: rowAnswer(declaration) },
    handler: async (request) => {
      const { row, wrote } = await createUser(context, originOf(request), request.body)
      return rowReply(presentUser(row), row, wrote, 201)
    },
  })

const change = (context: IdentityContext, method: 'PUT' | 'PATCH', kind: 'replace' | 'amend'): Route =>
  route<object, JsonObject>({
    method,
    path: `/user/{${idParameter(declaration)}}`,
    operationId: kind === 'replace' ? 'replaceUser' : 'amendUser',
    summary: kind === 'replace' ? 'Replace a user' : 'Amend a user',
    tag: declaration.tag,
    access: { permission: declaration.permissions.edit },
    params: PARAMS,
    body: changeSchema(kind),
    bodyExample: kind === 'replace' ? declaration.example : { status: 'disabled' },
    answers: { 200: rowAnswer(declaration) },
    handler: async (request) => {
      const { row, wrote } = await changeUser(context, originOf(request), {
        id: request.params[idParameter(declaration)],
        kind,
        body: request.body,
        expectedVersion: versionOf(request, request.body),
      })
      return rowReply(presentUser(row), row, wrote)
    },
  })

const remove = (context: IdentityContext): Route =>
  route({
    method: 'DELETE',
    path: `/user/{${idParameter(declaration)}}`,
    operationId: 'deleteUser',
    summary: 'Remove a user from the organization',
    tag: declaration.tag,
    access: { permission: declaration.permissions.edit },
    params: PARAMS,
    answers: { 200: { description: 'The user is removed.' } },
    handler: async (request) => ({
      wrote: await deleteUser(
        context,
        originOf(request),
        request.params[idParameter(declaration)],
        versionOf(request, undefined),
      ),
    }),
  })

/** `teamIds` and `password` are written too, though neither is kept with the user. */
const changeSchema = (kind: 'replace' | 'amend'): JsonSchema => {
  const schema = kind === 'replace' ? replaceSchema(declaration) : amendSchema(declaration)
  const further = { teamIds: TEAM_IDS, password: optional(PASSWORD) }
  const { properties } = kind === 'replace' ? objectSchema(further) : patchSchema(further)
  return { ...schema, properties: { ...(schema.properties as object), ...(properties as object) } }
}

const reply = (request: RouteRequest<{ fields?: string }>, row: Row | undefined): Reply => {
  if (row === undefined) throw new Failure('not_found')
  return rowReply(chooseFields(shape.members, request.query.fields)(presentUser(row as UserRow)), row)
}
