import { Failure } from '../../kernel/errors.ts'
import { email, latitude, longitude, objectSchema, text } from '../../kernel/schema.ts'
import { formatTime, metadataOf } from '../../kit/http/request-context.ts'
import type { WriteOrigin } from '../../kit/resource/write.ts'
import { route, type Reply, type Route, type RouteRequest } from '../../kit/http/route.ts'
import { claimValue, confirmClaim, releaseClaim, uniqueClaim, claimOwner } from '../../kit/commands/unique-claim.ts'
import { allWrote } from '../../kit/commands/wrote.ts'
import type { IdentityContext } from './context.ts'
import { foundingIds, foundOrganization, type Founded, type FoundingIds } from './found-organization.ts'
import { PREDEFINED_ROLES } from './predefined-roles.ts'
import { organizationItem, sessionAnswer, sessionBody } from './session-answer.ts'

export const PASSWORD = text({ min: 8, max: 200 })

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
    body: objectSchema({
      name: text({ max: 100 }),
      email: email(),
      password: PASSWORD,
      organizationName: text({ min: 3, max: 100 }),
      hubName: text({ max: 100 }),
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
  if (context.config.signup === 'closed') throw closed()
  const [organizationId, identityId, userId, jti] = [ids.next(), ids.next(), ids.next(), ids.next()]
  const newIds = foundingIds(ids, 1)
  const origin: WriteOrigin = {
    organizationId,
    now,
    ids,
    metadata: metadataOf(request, organizationId, `user:${userId}`),
  }
  const commandContext = { ids, metadata: origin.metadata }
  const passwordHash = await context.passwords.hash(body.password)
  const found = (): Promise<Founded> =>
    foundForSignup(context, origin, body, { identityId, userId, passwordHash, newIds })
  const undo = async (): Promise<void> => {
    await context.people.command(identityId, { type: 'delete', at: formatTime(now) }, commandContext)
  }
  const { organization, owner, wrote } = await asFirst(context, origin, identityId, () =>
    context.people.withEmail(body.email, identityId, now, commandContext, found, undo),
  )
  const ownerRole = { key: PREDEFINED_ROLES[0].key }
  const signed = context.tokens.issue({ userId, organizationId, jti }, now)
  const items = [organizationItem(organization, ownerRole, userId, true)]
  return {
    body: { ...sessionBody('Your organization is ready.', signed, owner, items), isHubSet: true },
    wrote,
    secret: true,
  }
}

const foundForSignup = async (
  context: IdentityContext,
  origin: WriteOrigin,
  body: SignupBody,
  {
    identityId,
    userId,
    passwordHash,
    newIds,
  }: { identityId: string; userId: string; passwordHash: string; newIds: FoundingIds },
): Promise<Founded> => {
  const { name, email: itsEmail, organizationName, hubName, hubLat, hubLng } = body
  const { organizationId } = origin
  const at = formatTime(origin.now)
  const owner = { identityId, userId, name, email: itsEmail }
  const founded = await foundOrganization(
    context,
    origin,
    { name: organizationName, hubs: [{ name: hubName, lat: hubLat, lng: hubLng }], owner },
    newIds,
  )
  // The identity comes last: whoever finds it finds a whole organization.
  const membership = { organizationId, userId }
  const create = {
    type: 'create',
    email: itsEmail,
    name,
    passwordHash,
    originOrganizationId: organizationId,
    membership,
    at,
  } as const
  const commandContext = { ids: origin.ids, metadata: origin.metadata }
  const created = await context.people.command(identityId, create, commandContext)
  const accessed = await context.people.command(identityId, { type: 'access', organizationId, at }, commandContext)
  return { ...founded, wrote: allWrote(founded.wrote, created, accessed) }
}

/** Notes who signed up first, for ever; with `--signup first` nobody else may. */
const asFirst = async <Result>(
  context: IdentityContext,
  { now, ids, metadata }: WriteOrigin,
  identityId: string,
  run: () => Promise<Result>,
): Promise<Result> => {
  const { log, keyring } = context.services
  const claim = uniqueClaim(keyring, 'installation', 'first', '', 'signup')
  const commandContext = { ids, metadata }
  const first = await claimOwner(log, claim)
  const isTaken = first.confirmed && first.owner !== identityId
  if (isTaken && context.config.signup === 'open') return run()
  if (isTaken) throw closed()
  try {
    await claimValue(
      log,
      claim,
      identityId,
      now,
      commandContext,
      async (owner) => (await context.people.load(owner)) !== undefined,
    )
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'key_in_use') throw error
    if (context.config.signup === 'first') throw closed()
    return run()
  }
  try {
    const result = await run()
    await confirmClaim(log, claim, identityId, commandContext)
    return result
  } catch (error) {
    if (error instanceof Failure && error.status < 500) await releaseClaim(log, claim, identityId, commandContext)
    throw error
  }
}

const closed = (): Failure =>
  new Failure('not_available', { status: 403, message: 'Signing up is closed on this server; ask for an invitation.' })
