import { Failure, invalid, taken } from '../../../kernel/errors.ts'
import type { JsonObject } from '../../../kernel/json.ts'
import { userOf } from '../../../kit/http/request-context.ts'
import { assertReferences } from '../../../kit/resource/references.ts'
import { asService, assertVersion, type Change, type WriteOrigin, type Written } from '../../../kit/resource/writes.ts'
import { rowOf } from '../../../kit/commands/declared-event.ts'
import type { IdentityContext } from '../context.ts'
import type { LinkIssued, LinkKind } from '../events.ts'
import { newLink } from '../links/links.ts'
import { hashNew } from '../passwords/new-password.ts'
import type { Person } from '../people.ts'
import { CHANGE_USER, type ChangeUserData } from '../processes.ts'
import {
  assertHolds,
  assertOwner,
  assertRecipient,
  assertReach,
  assertSeesTeams,
  assertTeams,
  nextStatus,
  roleOf,
  type RoleRow,
} from './user-rules.ts'
import { user, type UserRow } from './user.ts'
import { USERS_TABLE } from '../views.ts'

const TRIES = 5

/**
 * Changes a user of the organization. E-mail and password belong to the identity: only the organization where it was
 * first created may change them here.
 * @throws Failure not_found, stale_version, forbidden, invalid, conflict, key_in_use, rate_limited
 */
export const changeUser = async (context: IdentityContext, origin: WriteOrigin, change: Change): Promise<Written> => {
  let plan: Plan | undefined
  let alone: Written | undefined
  const next = async (): Promise<ChangeUserData | undefined> => {
    plan = await planOf(context, origin, change)
    if (!isUserAlone(plan)) return plan
    alone = await context.users.change(origin, { ...change, ...plan.change, expectedVersion: plan.version })
    return undefined
  }
  const wrote = await withoutRaces(change, () =>
    context.services.processes.run(CHANGE_USER, change.id, asService(origin), next),
  )
  if (alone !== undefined) return { row: { ...alone.row, teamIds: plan?.teamIds ?? [] }, wrote: alone.wrote }
  const { state, version } = await context.users.load(change.id)
  return { row: { ...rowOf(change.id, version, state), teamIds: plan?.teamIds ?? [] }, wrote }
}

interface OwnAccess {
  password?: string
  email?: string
  cancelsEmail: boolean
  /** Session that stays. */
  keeps: string
  /** Number of the identity's proofs when the present password was given. */
  proofs?: number
}

/** Changes a user's own fields. @throws Failure not_found, stale_version, invalid, key_in_use, rate_limited */
export const changeOwnUser = async (
  context: IdentityContext,
  origin: WriteOrigin,
  { identityId, teamIds }: Pick<UserRow, 'identityId' | 'teamIds'>,
  change: Change,
  { password, email, cancelsEmail, keeps, proofs }: OwnAccess,
): Promise<Written> => {
  if (password === undefined && email === undefined && !cancelsEmail) return context.users.change(origin, change)
  const wrote = await withoutRaces(change, () =>
    context.services.processes.run(CHANGE_USER, change.id, asService(origin), async () => {
      const { state, version } = await context.users.load(change.id)
      assertVersion(change.expectedVersion, version)
      if (email !== undefined) await assertMailable(context, origin, email)
      const person = await context.people.load(identityId)
      // An administrator's password is known to two people.
      const asker = { organizationId: origin.organizationId, userId: change.id, bindsTo: person?.state.opensOnly }
      return {
        ...unchanged(change, version, state.values, identityId, teamIds),
        ...(password !== undefined && {
          passwordHash: await hashNew(context, {
            password,
            about: [state.values.name as string, state.values.email as string],
            organizationId: origin.organizationId,
          }),
          keeps,
        }),
        ...(email !== undefined && { emailLink: linkFor(origin, 'emailChange', email, asker) }),
        ...(cancelsEmail && { cancelsEmail }),
        ...(proofs !== undefined && { proofs }),
      }
    }),
  )
  const { state, version } = await context.users.load(change.id)
  return { row: rowOf(change.id, version, state), wrote }
}

/** If the client named no version, a conflicting change is decided again. */
const withoutRaces = async <Result>(
  { expectedVersion }: Pick<Change, 'expectedVersion'>,
  run: () => Promise<Result>,
): Promise<Result> => {
  for (let tries = 1; ; tries++) {
    try {
      return await run()
    } catch (error) {
      const isRace = error instanceof Failure && error.code === 'stale_version' && expectedVersion === undefined
      if (!isRace || tries === TRIES) throw error
    }
  }
}

interface Plan extends ChangeUserData {
  teamIds: readonly string[]
}

const planOf = async (context: IdentityContext, origin: WriteOrigin, change: Change): Promise<Plan> => {
  const caller = userOf({ caller: origin.caller as never })
  const { tables } = context.services
  const { id, kind, body } = change
  const { row: before, role } = await loadReached(context, origin, id)
  const next = await nextOf(context, origin, before, kind, body)
  if (next.role._id !== role._id) assertHolds(caller, next.role)
  const hubs = { hubId: next.hubIds }
  await assertReferences(user.declaration, context.services, caller, origin.organizationId, hubs, {
    hubId: before.hubId,
  })
  await assertTeams(tables, caller, next.teamIds, before.teamIds, next)
  await assertSeesTeams(
    tables,
    caller,
    before.teamIds.filter((teamId) => !next.teamIds.includes(teamId)),
  )
  const person = await context.people.load(before.identityId)
  if (person === undefined) throw new Failure('not_found')
  // An invitation may spell the address differently from its owner.
  const isEmail = next.email !== before.email && next.email !== person.state.email
  const cancelsEmail = body.pendingEmail === null && before.pendingEmail !== undefined
  const isAccess = typeof body.password === 'string' || isEmail || cancelsEmail
  assertOrigin(person, origin.organizationId, isAccess)
  if (isAccess || next.role._id !== role._id || next.status !== before.status) {
    assertOwner(caller, role)
    assertOwner(caller, next.role)
  }
  assertVersion(change.expectedVersion, before.version as number)
  if (isEmail) await assertMailable(context, origin, next.email)
  const { password, teamIds: _teams, ...fields } = body
  const asked = {
    ...change,
    body: {
      ...fields,
      ...((kind === 'replace' || fields.status !== undefined) && { status: next.status }),
      ...(isEmail && { email: before.email }),
    },
  }
  const { organizationId } = origin
  const asker = { organizationId, userId: id, askedBy: caller.userId, bindsTo: organizationId }
  const [wasOwner, isOwner] = [isActiveOwner(role, before.status), isActiveOwner(next.role, next.status)]
  return {
    ...unchanged(asked, before.version as number, before as unknown as JsonObject, before.identityId, next.teamIds),
    ...(wasOwner !== isOwner && { owners: isOwner ? 'add' : 'remove' }),
    ...(isEmail && { emailLink: linkFor(origin, 'emailChange', next.email, asker) }),
    ...(cancelsEmail && { cancelsEmail }),
    joined: next.teamIds.filter((teamId) => !before.teamIds.includes(teamId)),
    left: before.teamIds.filter((teamId) => !next.teamIds.includes(teamId)),
    ...(typeof password === 'string' && {
      passwordHash: await hashNew(context, { password, about: [next.name, next.email], organizationId }),
      opensOnly: origin.organizationId,
      reopeningLink: linkFor(origin, 'reopening', person.state.email, asker),
    }),
  }
}

const linkFor = (
  { ids, now }: WriteOrigin,
  kind: LinkKind,
  email: string,
  asker: Pick<LinkIssued, 'organizationId' | 'userId' | 'askedBy' | 'bindsTo'>,
): LinkIssued =>
  newLink({ linkId: ids.next(), kind, email, ...asker, ...(kind === 'emailChange' && { isCounted: true }) }, now)

/**
 * Counts the mail to a person's new address; until its link is followed, another person may claim it.
 * @throws Failure invalid, key_in_use if it is taken, rate_limited
 */
const assertMailable = async (
  { people, unverified }: IdentityContext,
  { now }: WriteOrigin,
  email: string,
): Promise<void> => {
  assertRecipient(email)
  if ((await people.findByEmail(email)) !== undefined) throw taken('/email')
  await unverified.demand(email, 'emailChange', now)
}

/** Whether only the user's own stream is written. */
const isUserAlone = ({ owners, emailLink, cancelsEmail, joined, left, passwordHash }: Plan): boolean =>
  [owners, emailLink, cancelsEmail, passwordHash].every((part) => part === undefined) &&
  joined.length + left.length === 0

const unchanged = (
  { id: userId, kind, body }: Change,
  version: number,
  values: JsonObject,
  identityId: string,
  teamIds: readonly string[],
): Plan => {
  const names = kind === 'replace' ? Object.keys(user.declaration.fields) : Object.keys(body)
  const before = Object.fromEntries(names.map((name) => [name, values[name] ?? null]))
  return { userId, identityId, change: { kind, body }, version, before, joined: [], left: [], teamIds }
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
    status: nextStatus((body.status as string | undefined) ?? before.status, before.status),
    email: given('email', before.email),
    name: given('name', before.name),
  }
}

/** A user whom the caller may change. @throws Failure not_found, forbidden */
export const loadReached = async (
  context: IdentityContext,
  origin: WriteOrigin,
  userId: string,
): Promise<{ row: UserRow; role: RoleRow }> => {
  const caller = userOf({ caller: origin.caller as never })
  const { before: row, role } = await loadUser(context, origin, userId)
  assertHolds(caller, role)
  assertReach(caller, row.hubId)
  return { row, role }
}

/** The user's row from its stream, with teams from the directory. @throws Failure not_found */
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

const assertOrigin = ({ state }: Person, organizationId: string, isAccess: boolean): void => {
  if (!isAccess || state.originOrganizationId === organizationId) return
  throw new Failure('forbidden', {
    message:
      'E-mail and password can only be changed in the organization where this person first registered, or by themselves.',
  })
}

export const isActiveOwner = ({ key }: RoleRow, status: string): boolean => key === 'owner' && status === 'active'
