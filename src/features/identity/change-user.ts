import { Failure, invalid } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { formatTime, userOf } from '../../kit/http/request-context.ts'
import type { Change, WriteOrigin, Written, Deletion } from '../../kit/resource/writes.ts'
import type { Wrote } from '../../kit/http/route.ts'
import { allWrote } from '../../kit/commands/wrote.ts'
import { assertReferences } from '../../kit/resource/references.ts'
import type { IdentityContext } from './context.ts'
import { changeOwners } from './owners.ts'
import type { Person } from './people.ts'
import { assertHolds, assertStatus, assertTeams, roleOf, type RoleRow } from './user-rules.ts'
import { user, type UserRow } from './user.ts'
import { joinTeams, leaveTeams } from './user-teams.ts'
import { USERS_TABLE } from './views.ts'

/** What a PUT or PATCH of a user comes down to. */
interface Plan {
  before: UserRow
  person: Person
  email: string
  teamIds: string[]
  wasOwner: boolean
  isOwner: boolean
}

/**
 * Changes a user of the organization. E-mail and password belong to the identity: only the organization where it was
 * first created may change them here.
 * @throws Failure not_found, stale_version, forbidden, invalid, conflict, key_in_use
 */
export const changeUser = async (context: IdentityContext, origin: WriteOrigin, change: Change): Promise<Written> => {
  const { password, teamIds: _teams, ...values } = change.body
  const plan = await planOf(context, origin, change)
  const { before } = plan
  const body = change.kind === 'replace' && values.status === undefined ? { ...values, status: before.status } : values
  const { log } = context.services
  const owner = { userId: before._id, at: formatTime(origin.now) }
  const left =
    plan.wasOwner && !plan.isOwner
      ? await changeOwners(log, origin.organizationId, { type: 'remove', ...owner }, origin)
      : undefined
  const email = await changeEmail(context, origin, plan, () => context.users.change(origin, { ...change, body }))
  const came =
    plan.isOwner && !plan.wasOwner
      ? await changeOwners(log, origin.organizationId, { type: 'add', ...owner }, origin)
      : undefined
  const joined = await joinTeams(
    context,
    origin,
    before._id,
    plan.teamIds.filter((id) => !before.teamIds.includes(id)),
  )
  const parted = await leaveTeams(
    context,
    origin,
    before._id,
    before.teamIds.filter((id) => !plan.teamIds.includes(id)),
  )
  const secret =
    typeof password === 'string' ? await changePassword(context, origin, plan.person.identityId, password) : undefined
  return {
    row: { ...email.row, teamIds: plan.teamIds },
    wrote: allWrote(email.wrote, left, came, secret, ...joined, ...parted),
  }
}

/** @throws Failure not_found, stale_version, forbidden, conflict for the last owner. */
export const deleteUser = async (
  context: IdentityContext,
  origin: WriteOrigin,
  { id: userId, expectedVersion }: Deletion,
): Promise<Written> => {
  const { before, role } = await loadUser(context, origin, userId)
  if (expectedVersion !== undefined && expectedVersion !== before.version)
    throw new Failure('stale_version', { extra: { version: before.version } })
  assertHolds(userOf({ caller: origin.caller as never }), role)
  const at = formatTime(origin.now)
  const { log } = context.services
  const left = isActiveOwner(role, before.status)
    ? await changeOwners(log, origin.organizationId, { type: 'remove', userId, at }, origin)
    : undefined
  const deleted = await context.users.delete(origin, { id: userId, expectedVersion })
  const ended = await context.people.command(
    before.identityId,
    { type: 'endMembership', organizationId: origin.organizationId, at },
    origin,
  )
  return { row: deleted.row, wrote: allWrote(left, deleted.wrote, ended) }
}

export const changePassword = async (
  context: IdentityContext,
  origin: Pick<WriteOrigin, 'now' | 'ids' | 'metadata'>,
  identityId: string,
  password: string,
): Promise<Wrote | undefined> => {
  const passwordHash = await context.passwords.hash(password)
  return context.people.command(
    identityId,
    { type: 'changePassword', passwordHash, at: formatTime(origin.now) },
    origin,
  )
}

const planOf = async (context: IdentityContext, origin: WriteOrigin, { id, kind, body }: Change): Promise<Plan> => {
  const caller = userOf({ caller: origin.caller as never })
  const { tables } = context.services
  const { before, role } = await loadUser(context, origin, id)
  assertHolds(caller, role)
  const next = await nextOf(context, origin, before, kind, body)
  if (next.role._id !== role._id) assertHolds(caller, next.role)
  assertStatus(next.status, before.status)
  const hubs = { hubId: next.hubIds }
  await assertReferences(user.declaration, context.services, caller, origin.organizationId, hubs, {
    hubId: before.hubId,
  })
  await assertTeams(tables, caller, next.teamIds, before.teamIds, next)
  const person = await context.people.load(before.identityId)
  if (person === undefined) throw new Failure('not_found')
  assertOrigin(person, origin.organizationId, body, next.email)
  const owners = { wasOwner: isActiveOwner(role, before.status), isOwner: isActiveOwner(next.role, next.status) }
  return { before, person, email: next.email, teamIds: next.teamIds, ...owners }
}

const nextOf = async (
  context: IdentityContext,
  { organizationId }: WriteOrigin,
  before: UserRow,
  kind: Change['kind'],
  body: JsonObject,
) => {
  const given = <Value>(name: keyof UserRow & string, missing: Value): Value =>
    (body[name] ?? (kind === 'replace' ? missing : (before[name] ?? missing))) as Value
  const nulled = ['roleId', 'email', 'name', 'status'].find((name) => body[name] === null)
  if (nulled !== undefined) throw invalid(`/${nulled}`, 'must not be null')
  const role = await roleOf(context.services.tables, organizationId, given('roleId', before.roleId))
  const teamIds = body.teamIds === null ? [] : given<string[]>('teamIds', [])
  const hubIds = body.hubId === null ? [] : given<string[]>('hubId', [])
  return {
    role,
    hubIds,
    teamIds,
    status: (body.status as string | undefined) ?? before.status,
    email: given('email', before.email),
  }
}

/** The user's row as the streams have it, its teams as the directory has them. @throws Failure not_found */
const loadUser = async (
  context: IdentityContext,
  { organizationId }: WriteOrigin,
  userId: string,
): Promise<{ before: UserRow; role: RoleRow }> => {
  const { state, version } = await context.users.load(userId)
  if (state.status !== 'live' || state.organizationId !== organizationId) throw new Failure('not_found')
  const { teamIds = [] } = (await context.services.tables.get<UserRow>(USERS_TABLE, organizationId, userId)) ?? {}
  const before = { ...state.values, _id: userId, organizationId, version, teamIds } as unknown as UserRow
  return { before, role: await roleOf(context.services.tables, organizationId, before.roleId) }
}

const assertOrigin = ({ state }: Person, organizationId: string, body: JsonObject, email: string): void => {
  const isChange = typeof body.password === 'string' || email !== state.email
  if (!isChange || state.originOrganizationId === organizationId) return
  throw new Failure('forbidden', {
    message:
      'E-mail and password can only be changed in the organization where this person first registered, or by themselves.',
  })
}

/** Gives the identity its new e-mail, and every other user record of it, around the change of this one. */
const changeEmail = async (
  context: IdentityContext,
  origin: WriteOrigin,
  { person, email, before }: Plan,
  write: () => Promise<Written>,
): Promise<Written> => {
  const { identityId, state } = person
  if (email === state.email) return write()
  const written = await write()
  const changed = await context.people
    .command(identityId, { type: 'changeEmail', email, at: formatTime(origin.now) }, origin)
    .catch(async (error: unknown) => {
      const back: Change = { id: before._id, kind: 'amend', body: { email: before.email } }
      if (error instanceof Failure && error.code === 'key_in_use') await context.users.change(origin, back)
      throw error
    })
  const others: (Wrote | undefined)[] = []
  for (const { organizationId, userId } of state.memberships) {
    if (userId === before._id) continue
    const service: WriteOrigin = {
      organizationId,
      now: origin.now,
      ids: origin.ids,
      metadata: { ...origin.metadata, organizationId },
    }
    others.push((await context.users.change(service, { id: userId, kind: 'amend', body: { email } })).wrote)
  }
  return { row: written.row, wrote: allWrote(written.wrote, changed, ...others) }
}

const isActiveOwner = ({ key }: RoleRow, status: string): boolean => key === 'owner' && status === 'active'
