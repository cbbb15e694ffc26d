import { Failure, taken } from '../../../kernel/errors.ts'
import { email, latitude, longitude, newName, objectSchema } from '../../../kernel/schema.ts'
import { metadataOf } from '../../../kit/http/request-context.ts'
import { allWrote } from '../../../kit/commands/wrote.ts'
import { route, type Reply, type Route, type RouteRequest } from '../../../kit/http/route.ts'
import type { IdentityContext } from '../context.ts'
import { foundOrganization } from '../organizations/found-organization.ts'
import { hashNew } from '../passwords/new-password.ts'
import { issueToken } from '../sessions/issue-token.ts'
import { newLink } from '../links/links.ts'
import { PREDEFINED_ROLES } from '../users/predefined-roles.ts'
import { signupClosed } from '../people.ts'
import { organizationItem, sessionAnswer, sessionBody } from '../sessions/session-answer.ts'
import { PASSWORD } from '../users/user.ts'

interface SignupBody {
  name: string
  email: string
  password: string
  organizationName: string
  hubName: string
  hubLat: number
  hubLng: number
}

export const signupRoute = (context: IdentityContext): Route =>
  route<object, SignupBody>({
    method: 'POST',
    path: '/auth/signup',
    operationId: 'signup',
    summary: 'Sign up: a person, an organization with its first hub, and a token',
    tag: 'Authentication',
    access: 'public',
    signsIn: true,
    body: objectSchema({
      name: newName({ max: 100 }),
      email: email(),
      password: PASSWORD,
      organizationName: newName({ min: 3, max: 100 }),
      hubName: newName({ max: 100 }),
      hubLat: latitude(),
      hubLng: longitude(),
    }),
    bodyExample: {
      name: 'Ada Kowalska',
      email: 'ada@example.com',
      password: 'correct horse battery staple',
      organizationName: 'Green Couriers',
      hubName: 'Warsaw West',
      hubLat: 52.23,
      hubLng: 20.98,
    },
    answers: { 200: sessionAnswer('Signed up.', { isHubSet: { type: 'boolean' } }, { isHubSet: true }) },
    handler: (request) => signup(context, request),
  })

const signup = async (context: IdentityContext, request: RouteRequest<object, SignupBody>): Promise<Reply> => {
  const { ids, now, body } = request
  if (context.config.signup === 'closed') throw signupClosed()
  const [organizationId, identityId, userId, jti] = [ids.next(), ids.next(), ids.next(), ids.next()]
  const origin = { organizationId, now, ids, metadata: metadataOf(request, organizationId, `user:${userId}`) }
  const { name, organizationName, hubName, hubLat, hubLng } = body
  const { organization, owner, wrote } = await foundOrganization(context, origin, userId, async () => {
    await assertWelcome(context, request)
    const about = [name, body.email, organizationName]
    return {
      name: organizationName,
      hubs: [{ name: hubName, lat: hubLat, lng: hubLng }],
      owner: { identityId, userId, name, email: body.email },
      signUp: {
        passwordHash: await hashNew(context, { password: body.password, about, source: request.network }),
        firstOnly: context.config.signup === 'first',
        link: newLink({ linkId: ids.next(), kind: 'verification', email: body.email, organizationId, userId }, now),
      },
    }
  })
  const ownerRole = { key: PREDEFINED_ROLES[0].key }
  const person = await context.people.load(identityId)
  // The owner of the address may have verified it before this repeated request.
  if (person === undefined || person.state.proofs > 0) throw new Failure('unauthenticated')
  const issued = await issueToken(context, request, { person, userId, organizationId, jti })
  const items = [organizationItem(organization, ownerRole, userId, true)]
  return {
    body: { ...sessionBody('Your organization is ready.', issued.signed, owner, items), isHubSet: true },
    wrote: allWrote(wrote, issued.wrote),
    secret: true,
  }
}

/** Refuses before hashing, which would delay others. @throws Failure not_available, rate_limited, key_in_use */
const assertWelcome = async (
  { config, people, limits }: IdentityContext,
  { body, network, now }: RouteRequest<object, SignupBody>,
): Promise<void> => {
  if (config.signup === 'first' && (await people.hasFirst())) throw signupClosed()
  await limits.countSignUp(network, config.signupsPerAddress, now)
  if ((await people.findByEmail(body.email)) !== undefined) throw taken('/email')
}
