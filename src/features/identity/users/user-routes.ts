import { assertShown, personalFields } from '../../../kernel/hidden-fields.ts'
import { Failure } from '../../../kernel/errors.ts'
import type { Row } from '../../../kernel/table.ts'
import { normalizeKey } from '../../../kit/commands/unique-claim.ts'
import { FIELDS_QUERY } from '../../../kit/http/list-query.ts'
import { userOf } from '../../../kit/http/request-context.ts'
import { route, type Reply, type Route, type RouteRequest } from '../../../kit/http/route.ts'
import { rowAnswer, rowReply } from '../../../kit/resource/answers.ts'
import { shownBy } from '../../../kit/resource/show.ts'
import type { ResourceWrites } from '../../../kit/resource/writes.ts'
import { changeUser } from './change-user.ts'
import type { IdentityContext } from '../context.ts'
import { createUser, type NewUser } from './create-user.ts'
import { deleteUser } from './delete-user.ts'
import { OWN_USER, user, withKeptIds } from './user.ts'
import { USERS_TABLE } from '../views.ts'

const { declaration } = user

export const userRoutes = (context: IdentityContext): Route[] => [
  readMe(context),
  readByEmail(context),
  ...user.routes(context.services, { writes: userWrites(context) }),
]

/** A user is more than a record: an identity, a place among the owners, members of teams. */
const userWrites = (context: IdentityContext): ResourceWrites => ({
  create: (origin, body) => createUser(context, origin, withKeptIds(body) as unknown as NewUser),
  change: (origin, change) => changeUser(context, origin, { ...change, body: withKeptIds(change.body) }),
  delete: (origin, deletion) => deleteUser(context, origin, deletion),
})

const readMe = ({ services }: IdentityContext): Route =>
  route<{ fields?: string }>({
    method: 'GET',
    path: '/user',
    operationId: 'readOwnUser',
    summary: 'Read the calling user',
    tag: declaration.tag,
    access: 'user',
    isPersonal: true,
    query: FIELDS_QUERY,
    answers: { 200: rowAnswer(OWN_USER) },
    handler: async (request) => {
      const { organizationId, userId } = userOf(request)
      return reply(services, request, await services.tables.get(USERS_TABLE, organizationId, userId))
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
    params: { email: { type: 'string', maxLength: 254, description: 'The address, in any case.' } },
    query: FIELDS_QUERY,
    answers: { 200: rowAnswer(declaration) },
    handler: async (request) => {
      const { organizationId, email } = userOf(request)
      const hidden = personalFields(userOf(request), declaration.personal)
      if (normalizeKey(email) !== normalizeKey(request.params.email)) assertShown(hidden, ['email'])
      const { rows } = await services.tables.find(USERS_TABLE, organizationId, {
        where: { emailKey: normalizeKey(request.params.email) },
        limit: 1,
      })
      return reply(services, request, rows[0]?.row)
    },
  })

const reply = async (
  services: IdentityContext['services'],
  request: RouteRequest<{ fields?: string }>,
  row: Row | undefined,
): Promise<Reply> => {
  if (row === undefined) throw new Failure('not_found')
  return rowReply(await shownBy(declaration, services, request, row, request.query.fields), row)
}
