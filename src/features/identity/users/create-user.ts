import { Failure } from '../../../kernel/errors.ts'
import type { JsonObject } from '../../../kernel/json.ts'
import { userOf } from '../../../kit/http/request-context.ts'
import { type TakePlace, withinQuotas } from '../../../kit/quotas/quotas.ts'
import { createdId } from '../../../kit/resource/created-id.ts'
import { asService, type Written, type WriteOrigin } from '../../../kit/resource/writes.ts'
import { rowOf } from '../../../kit/commands/declared-event.ts'
import { assertReferences } from '../../../kit/resource/references.ts'
import type { IdentityContext } from '../context.ts'
import type { LinkIssued } from '../events.ts'
import type { Membership } from '../identity-state.ts'
import { newLink } from '../links/links.ts'
import { hashNew } from '../passwords/new-password.ts'
import { CREATE_USER, type CreateUserData } from '../processes.ts'
import { user, type UserRow } from './user.ts'
import { assertHolds, assertOwner, assertRecipient, assertTeams, roleOf, type RoleRow } from './user-rules.ts'
import { USERS_TABLE } from '../views.ts'

export interface NewUser {
  _id?: string
  name: string
  email: string
  password?: string
  roleId: string
  hubId?: string[]
  teamIds?: string[]
  status?: string
  language?: string
  timeZone?: string
}

/**
 * Adds a person to the organization. A person with an identity keeps its name and password, and stays `invited` until
 * they accept; so does a person without a given password.
 * @throws Failure invalid, forbidden, key_in_use, conflict, quota, rate_limited
 */
export const createUser = async (context: IdentityContext, origin: WriteOrigin, body: NewUser): Promise<Written> => {
  const { _id, password: _password, teamIds = [], ...values } = body
  const { id: userId } = createdId(user.declaration, origin, body as unknown as JsonObject)
  const newIdentityId = origin.ids.next()
  let repeat: Written | undefined
  const { processes, quotas } = context.services
  const { wrote } = await withinQuotas(quotas, origin.organizationId, async (take) => ({
    wrote: await processes.run(CREATE_USER, userId, asService(origin), async () => {
      const { state } = await context.users.load(userId)
      if (state.status === 'absent') return planOf(context, origin, userId, newIdentityId, body, take)
      const made = await context.users.madeBefore(origin, userId)
      const withTeams = made && { ...made, row: { ...made.row, teamIds: [...teamIds] } }
      repeat = withTeams ?? (await repeated(context, origin, userId, values, state.first.values))
      return undefined
    }),
  }))
  if (repeat !== undefined) return repeat
  const { state, version } = await context.users.load(userId)
  return { row: { ...rowOf(userId, version, state), teamIds: [...teamIds] }, wrote }
}

const planOf = async (
  context: IdentityContext,
  origin: WriteOrigin,
  userId: string,
  identityId: string,
  body: NewUser,
  take: TakePlace,
): Promise<CreateUserData> => {
  const { _id, password, teamIds = [], ...values } = body
  const { organizationId } = origin
  const role = await assertNewUser(context, origin, body)
  await take(USERS_TABLE)
  const person = await context.people.findByEmail(body.email)
  if (person !== undefined) {
    const { identityId: theirs, state } = person
    const insteadOf = await formerMember(context, state.memberships, { organizationId, userId })
    await countInvitation(context, origin, state.email)
    // The answer repeats the request: typing an address must not reveal a stranger's name.
    const link = invitation(origin, userId, state.email)
    return {
      userId,
      identityId: theirs,
      values: { ...values, status: 'invited' },
      isOwner: false,
      teamIds,
      insteadOf,
      link,
    }
  }
  const status = password === undefined ? 'invited' : (body.status ?? 'active')
  if (status === 'invited') await countInvitation(context, origin, body.email)
  // Without a password nobody can log in: the hash is that of a secret id.
  const passwordHash =
    password === undefined
      ? await context.passwords.hash(origin.ids.next(), organizationId)
      : await hashNew(context, { password, about: [body.name, body.email], organizationId })
  return {
    userId,
    identityId,
    values: { ...values, status },
    isOwner: role.key === 'owner' && status === 'active',
    teamIds,
    create: { email: body.email, name: body.name, passwordHash },
    ...(status === 'invited' && { link: invitation(origin, userId, body.email) }),
  }
}

/** @throws Failure invalid, rate_limited */
export const countInvitation = async (
  { limits, unverified }: IdentityContext,
  { organizationId, now }: Pick<WriteOrigin, 'organizationId' | 'now'>,
  email: string,
): Promise<void> => {
  assertRecipient(email)
  await limits.countInvitation(organizationId, email, now)
  await unverified.demand(email, 'invitation', now)
}

/** Link mailed to a person who has yet to accept; it must have been counted. */
export const invitation = (origin: WriteOrigin, userId: string, email: string): LinkIssued => {
  const { organizationId, ids, now } = origin
  const askedBy = userOf({ caller: origin.caller as never }).userId
  const link = {
    linkId: ids.next(),
    kind: 'invitation',
    email,
    organizationId,
    userId,
    askedBy,
    isCounted: true,
  } as const
  return newLink(link, now)
}

const assertNewUser = async (
  context: IdentityContext,
  origin: WriteOrigin,
  { roleId, hubId = [], teamIds = [] }: NewUser,
): Promise<RoleRow> => {
  const caller = userOf({ caller: origin.caller as never })
  const { tables } = context.services
  const role = await roleOf(tables, origin.organizationId, roleId)
  assertHolds(caller, role)
  assertOwner(caller, role)
  await assertReferences(user.declaration, context.services, caller, origin.organizationId, { hubId }, undefined)
  await assertTeams(tables, caller, teamIds, [], { role, hubIds: hubId })
  return role
}

/** A repeated `_id`: the same person with the same fields is answered, anything else is refused. */
const repeated = async (
  context: IdentityContext,
  origin: WriteOrigin,
  _id: string,
  values: JsonObject,
  first: JsonObject,
): Promise<Written> => {
  const { identityId, status } = first
  // Values decided instead of the body's are no difference.
  const kept = status === 'invited' ? { status } : {}
  const { row } = await context.users.create(
    origin,
    { ...values, ...kept, _id } as JsonObject,
    { identityId } as JsonObject,
  )
  const { teamIds = [] } = (await context.services.tables.get<UserRow>(USERS_TABLE, origin.organizationId, _id)) ?? {}
  return { row: { ...row, teamIds } }
}

/**
 * User of a merely nominal membership: its creation or deletion was interrupted.
 * @throws Failure key_in_use if the person is in the organization.
 */
const formerMember = async (
  context: IdentityContext,
  memberships: readonly Membership[],
  { organizationId, userId }: Membership,
): Promise<string | undefined> => {
  const present = memberships.find((membership) => membership.organizationId === organizationId)
  if (present === undefined || present.userId === userId) return undefined
  await context.services.processes.settle(present.userId)
  const { state } = await context.users.load(present.userId)
  if (state.status !== 'live') return present.userId
  throw new Failure('key_in_use', {
    message: 'This person is already in the organization.',
    errors: [{ path: '/email', message: 'is already in the organization' }],
  })
}
