import { Failure } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { formatTime, userOf } from '../../kit/http/request-context.ts'
import { asService, type Written, type WriteOrigin } from '../../kit/resource/writes.ts'
import { normalizeKey } from '../../kit/commands/unique-claim.ts'
import { allWrote } from '../../kit/commands/wrote.ts'
import { assertReferences } from '../../kit/resource/references.ts'
import type { IdentityContext } from './context.ts'
import type { Membership } from './identity.ts'
import { changeOwners } from './owners.ts'
import type { Person } from './people.ts'
import { user, type UserRow } from './user.ts'
import { joinTeams } from './user-teams.ts'
import { assertHolds, assertTeams, roleOf, type RoleRow } from './user-rules.ts'
import { USERS_TABLE } from './views.ts'

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
 * Adds a person to the organization. Somebody who has an identity keeps name and password of it, and stays `invited`
 * until they accept; so does whoever was given no password.
 * @throws Failure invalid, forbidden, key_in_use, conflict
 */
export const createUser = async (context: IdentityContext, origin: WriteOrigin, body: NewUser): Promise<Written> => {
  const { _id, password, teamIds = [], ...values } = body
  const userId = _id ?? origin.ids.next()
  const known = await context.users.load(userId)
  if (known.state.status !== 'absent') return repeated(context, origin, userId, values, known.state.first.values)
  const role = await assertNewUser(context, origin, body)
  const identityId = origin.ids.next()
  const person = await context.people.findByEmail(body.email)
  const membership = { organizationId: origin.organizationId, userId }
  if (person === undefined || isBegun(person, membership))
    return withIdentity(context, origin, userId, person?.identityId ?? identityId, body, role)
  assertNoMember(person.state.memberships, membership)
  const written = await context.users.create(
    origin,
    { ...values, name: person.state.name, email: person.state.email, _id: userId, status: 'invited' },
    { identityId: person.identityId },
  )
  const command = { type: 'addMembership', membership, at: formatTime(origin.now) } as const
  const added = await undoing(context, origin, userId, () =>
    context.people.command(person.identityId, command, commandContext(origin)),
  )
  return finished(context, origin, written, teamIds, added)
}

const withIdentity = async (
  context: IdentityContext,
  origin: WriteOrigin,
  userId: string,
  identityId: string,
  body: NewUser,
  role: RoleRow,
): Promise<Written> => {
  const { password, teamIds = [], _id, ...values } = body
  const { organizationId, now } = origin
  const status = password === undefined ? 'invited' : (body.status ?? 'active')
  // Without a password nobody can log in: the hash is that of an id that is told to no one.
  const passwordHash = await context.passwords.hash(password ?? origin.ids.next())
  const at = formatTime(now)
  const create = {
    type: 'create',
    email: body.email,
    name: body.name,
    passwordHash,
    originOrganizationId: organizationId,
    membership: { organizationId, userId },
    at,
  } as const
  const created = await context.people.command(identityId, create, commandContext(origin))
  const written = await context.users.create(origin, { ...values, _id: userId, status }, { identityId })
  const isOwner = role.key === 'owner' && status === 'active'
  const owned = isOwner
    ? await changeOwners(context.services.log, organizationId, { type: 'add', userId, at }, commandContext(origin))
    : undefined
  return finished(context, origin, written, teamIds, allWrote(created, owned))
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
  await assertReferences(user.declaration, context.services, caller, origin.organizationId, { hubId }, undefined)
  await assertTeams(tables, caller, teamIds, [], { role, hubIds: hubId })
  return role
}

/** An earlier try of this request ended between the identity and its user. */
const isBegun = ({ state }: Person, { organizationId, userId }: Membership): boolean =>
  state.originOrganizationId === organizationId &&
  state.memberships.some((membership) => membership.organizationId === organizationId && membership.userId === userId)

/** The same `_id` again: the same person with the same fields is answered, anything else is refused. */
const repeated = async (
  context: IdentityContext,
  origin: WriteOrigin,
  _id: string,
  values: JsonObject,
  first: JsonObject,
): Promise<Written> => {
  const { identityId, status, name, email } = first
  const isSameEmail = normalizeKey(String(email)) === normalizeKey(String(values.email))
  // What was taken from the identity instead of the body is no difference.
  const kept = status === 'invited' ? { status, name, ...(isSameEmail && { email }) } : {}
  const { row } = await context.users.create(
    origin,
    { ...values, ...kept, _id } as JsonObject,
    { identityId } as JsonObject,
  )
  const { teamIds = [] } = (await context.services.tables.get<UserRow>(USERS_TABLE, origin.organizationId, _id)) ?? {}
  return { row: { ...row, teamIds } }
}

const finished = async (
  context: IdentityContext,
  origin: WriteOrigin,
  written: Written,
  teamIds: readonly string[],
  further: Written['wrote'],
): Promise<Written> => {
  const joined = await joinTeams(context, origin, written.row._id as string, teamIds)
  return { row: { ...written.row, teamIds: [...teamIds] }, wrote: allWrote(written.wrote, further, ...joined) }
}

const undoing = async <Result>(
  context: IdentityContext,
  origin: WriteOrigin,
  userId: string,
  run: () => Promise<Result>,
): Promise<Result> => {
  try {
    return await run()
  } catch (error) {
    if (error instanceof Failure && error.code === 'key_in_use')
      await context.users.delete(asService(origin), { id: userId })
    throw error
  }
}

const assertNoMember = (memberships: readonly Membership[], { organizationId }: Membership): void => {
  if (!memberships.some((membership) => membership.organizationId === organizationId)) return
  throw new Failure('key_in_use', {
    message: 'This person is already in the organization.',
    errors: [{ path: '/email', message: 'is already in the organization' }],
  })
}

const commandContext = ({ ids, metadata }: WriteOrigin): Pick<WriteOrigin, 'ids' | 'metadata'> => ({ ids, metadata })
