import { isDeepStrictEqual } from 'node:util'
import { Failure, invalid } from '../../../kernel/errors.ts'
import type { JsonObject, JsonSchema } from '../../../kernel/json.ts'
import { optional, patchSchema, secret } from '../../../kernel/schema.ts'
import { userOf } from '../../../kit/http/request-context.ts'
import { amendSchema } from '../../../kit/resource/schemas.ts'
import { pick } from '../../../kit/resource/pick.ts'
import { rowAnswer, rowReply } from '../../../kit/resource/answers.ts'
import { assertNewNames } from '../../../kit/resource/new-names.ts'
import { shownBy } from '../../../kit/resource/show.ts'
import { originOf, versionOf, type Change } from '../../../kit/resource/writes.ts'
import { route, type Reply, type Route, type RouteRequest } from '../../../kit/http/route.ts'
import { changeOwnUser } from './change-user.ts'
import type { IdentityContext } from '../context.ts'
import { OWN_USER, user, type UserRow } from './user.ts'
import { USERS_TABLE } from '../views.ts'

/** Fields that all users may change for themselves. */
const OWN = ['name', 'language', 'timeZone']
/** Fields that only an administrator may change. */
const NOT_OWN = ['roleId', 'hubId', 'teamIds', 'status']

export const ownUserRoute = (context: IdentityContext): Route =>
  route<object, JsonObject>({
    method: 'PATCH',
    path: '/user',
    operationId: 'amendOwnUser',
    summary: 'Amend the calling user: name, language, time zone, password, and e-mail once its link was followed',
    description:
      'A new e-mail is `pendingEmail` until the link that is mailed to it is followed; `pendingEmail: null` cancels the change. The mail to the present address has a link that undoes it for 7 days, also once it took effect.',
    tag: user.declaration.tag,
    access: 'user',
    isPersonal: true,
    body: ownSchema(),
    bodyExample: { name: 'Ada Nowak', language: 'pl', timeZone: 'Europe/Warsaw' },
    answers: { 200: rowAnswer(OWN_USER) },
    handler: (request) => amendOwn(context, request),
  })

const amendOwn = async (context: IdentityContext, request: RouteRequest<object, JsonObject>): Promise<Reply> => {
  const { body } = request
  const { organizationId, userId, identityId, jti } = userOf(request)
  const origin = originOf(request)
  const row = await context.services.tables.get<UserRow>(USERS_TABLE, organizationId, userId)
  if (row === undefined) throw new Failure('not_found')
  await assertNewNames(user.declaration.fields, body, async () => row)
  const fields = NOT_OWN.filter((name) => body[name] !== undefined && !isDeepStrictEqual(body[name], row[name]))
  if (body.email === null) throw invalid('/email', 'must not be null')
  if (fields.length > 0)
    throw new Failure('forbidden', {
      message: `Only an administrator may change ${fields.join(', ')}.`,
      extra: { fields },
    })
  const password = typeof body.password === 'string' ? body.password : undefined
  const email = typeof body.email === 'string' && body.email !== row.email ? body.email : undefined
  const isAccess = password !== undefined || email !== undefined
  const proofs = isAccess ? await assertPassword(context, request, row, identityId) : undefined
  const kept = Object.fromEntries(Object.entries(body).filter(([name]) => OWN.includes(name))) as JsonObject
  const change: Change = { id: userId, kind: 'amend', body: kept, expectedVersion: versionOf(request, body) }
  const asked = { password, email, cancelsEmail: body.pendingEmail === null, keeps: jti, proofs }
  const { row: changed, wrote } = await changeOwnUser(context, origin, row, change, asked)
  const written = { ...changed, teamIds: row.teamIds }
  return rowReply(await shownBy(user.declaration, context.services, request, written), changed, wrote)
}

/** Proofs when the password was right. Guesses count as failed logins. @throws Failure wrong_password, rate_limited */
const assertPassword = async (
  context: IdentityContext,
  request: RouteRequest<object, JsonObject>,
  { email }: UserRow,
  identityId: string,
): Promise<number | undefined> => {
  const { currentPassword } = pick(request.body, ['currentPassword'])
  if (typeof currentPassword !== 'string') throw invalid('/currentPassword', 'is required to change password or e-mail')
  const guard = context.throttle.guard(email, request.network, request.now)
  await guard.admit()
  const person = await context.people.load(identityId)
  if (!(await context.passwords.verify(currentPassword, person?.state.passwordHash, guard)))
    throw new Failure('wrong_password')
  return person?.state.proofs
}

const ownSchema = (): JsonSchema => {
  const schema = amendSchema(user.declaration)
  const { properties } = patchSchema({ currentPassword: optional(secret({ max: 200 })) })
  return { ...schema, properties: { ...(schema.properties as object), ...(properties as object) } }
}
