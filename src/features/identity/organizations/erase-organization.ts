import { Failure } from '../../../kernel/errors.ts'
import { objectSchema, secret } from '../../../kernel/schema.ts'
import { metadataOf, userOf } from '../../../kit/http/request-context.ts'
import { route, type Reply, type Route, type RouteRequest } from '../../../kit/http/route.ts'
import type { IdentityContext } from '../context.ts'
import { ERASE_ORGANIZATION } from '../processes.ts'

/** Erases the caller's organization for ever; an owner confirms with their password. */
export const eraseOrganizationRoute = (context: IdentityContext): Route =>
  route<object, { password: string }>({
    method: 'DELETE',
    path: '/organization',
    operationId: 'eraseOrganization',
    summary: 'Erase the organization with all that it has; only an owner may',
    description:
      'Nothing of it is left, not even in the log and the history, and everybody who is in no other organization is erased too. A large organization takes minutes; it goes on where the connection ends.',
    tag: 'Organization',
    access: 'user',
    isPersonal: true,
    body: objectSchema({ password: secret({ max: 200 }) }),
    bodyExample: { password: 'correct horse battery staple' },
    answers: { 200: { description: 'It is erased.' } },
    handler: (request) => eraseOrganization(context, request),
  })

const eraseOrganization = async (
  context: IdentityContext,
  request: RouteRequest<object, { password: string }>,
): Promise<Reply> => {
  const { organizationId, identityId, email, roleKey } = userOf(request)
  if (roleKey !== 'owner') throw new Failure('forbidden', { message: 'Only an owner can erase the organization.' })
  const { ids, now } = request
  const guard = context.throttle.guard(email, request.network, now)
  await guard.admit()
  const person = await context.people.load(identityId)
  if (!(await context.passwords.verify(request.body.password, person?.state.passwordHash, guard)))
    throw new Failure('wrong_password')
  const origin = { organizationId, now, ids, metadata: metadataOf(request) }
  const wrote = await context.services.processes.run(ERASE_ORGANIZATION, organizationId, origin, async () => ({}))
  return { wrote }
}
