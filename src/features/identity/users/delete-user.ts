import { Failure } from '../../../kernel/errors.ts'
import type { Row } from '../../../kernel/table.ts'
import { userOf } from '../../../kit/http/request-context.ts'
import {
  asService,
  assertVersion,
  type Deletion,
  type WriteOrigin,
  type Written,
} from '../../../kit/resource/writes.ts'
import { trackerLookups } from '../../trackers/views.ts'
import { isActiveOwner, loadReached } from './change-user.ts'
import type { IdentityContext } from '../context.ts'
import { forgottenStream } from '../passwords/forgotten.ts'
import { DELETE_USER, type DeleteUserData } from '../processes.ts'
import type { UserRow } from './user.ts'
import { assertHolds, assertOwner, assertReach, type RoleRow } from './user-rules.ts'
import { ROLES_TABLE } from '../views.ts'

/**
 * Removes a user from the organization; `erase` leaves nothing of them, and may also be requested later. The answer has
 * the last row. @throws Failure not_found, stale_version, forbidden, conflict for the last owner.
 */
export const deleteUser = async (
  context: IdentityContext,
  origin: WriteOrigin,
  { id: userId, expectedVersion, erase = false }: Deletion,
): Promise<Written> => {
  let row: Row = {}
  const wrote = await context.services.processes.run(DELETE_USER, userId, asService(origin), async () => {
    const former = erase ? await formerUser(context, origin, userId) : undefined
    if (former !== undefined) {
      row = former
      const { identityId } = former
      return { userId, identityId, isOwner: false, erase: await erasureOf(context, origin, former) }
    }
    const { row: before, role } = await loadReached(context, origin, userId)
    assertVersion(expectedVersion, before.version as number)
    assertOwner(userOf({ caller: origin.caller as never }), role)
    row = before
    const { identityId, status } = before
    const erasure = erase ? { erase: await erasureOf(context, origin, before) } : {}
    return { userId, identityId, isOwner: isActiveOwner(role, status), expectedVersion, ...erasure }
  })
  return { row, wrote }
}

/** Last state of a user who was deleted and is not erased yet. @throws Failure forbidden */
const formerUser = async (
  { services: { tables }, users }: IdentityContext,
  { organizationId, caller: asking }: WriteOrigin,
  userId: string,
): Promise<UserRow | undefined> => {
  const caller = userOf({ caller: asking as never })
  const { state, version } = await users.load(userId)
  if (state.status !== 'deleted' || state.organizationId !== organizationId) return undefined
  const row = { ...state.values, _id: userId, organizationId, version, teamIds: [] } as unknown as UserRow
  assertReach(caller, row.hubId)
  const role = await tables.get<RoleRow>(ROLES_TABLE, organizationId, row.roleId)
  // Permissions of a removed role are unknown.
  if (role === undefined && caller.hubIds !== 'all')
    throw new Failure('forbidden', { message: 'Only somebody who sees all hubs can erase this user.' })
  if (role !== undefined) {
    assertHolds(caller, role)
    assertOwner(caller, role)
  }
  return row
}

/** Dependent data of a user, and of the person if they are in no other organization. */
const erasureOf = async (
  context: IdentityContext,
  { organizationId }: WriteOrigin,
  { _id: userId, identityId }: UserRow,
): Promise<NonNullable<DeleteUserData['erase']>> => {
  const { services, people } = context
  const person = await people.load(identityId)
  const phoneIds = await trackerLookups(services.tables).phonesOf(organizationId, userId)
  return { phoneIds, forgotten: forgottenStream(services.keyring, person?.state.email ?? '') }
}
