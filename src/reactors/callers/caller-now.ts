import type { TableStore } from '../../engines/table-store.ts'
import { identityOf, userCaller } from '../../features/identity/sessions/authenticate.ts'
import { editingService } from '../../features/identity/sessions/authenticate-service.ts'
import { ACCESS_ROLES, ACCESS_USERS, type AccessRoleRow, type AccessUserRow } from '../../features/identity/views.ts'
import { ACCESS_SERVICES, type AccessServiceRow } from '../../features/service-accounts/views.ts'
import type { UserCaller } from '../../kernel/caller.ts'

/** The user who asked for a job, with their present rights; undefined if they are gone or may no longer sign in. */
export const callerNow = async (
  tables: Pick<TableStore, 'get'>,
  organizationId: string,
  userId: string,
  now: number,
): Promise<UserCaller | undefined> => {
  const user = await tables.get<AccessUserRow>(ACCESS_USERS.name, organizationId, userId)
  if (user === undefined) {
    const account = await tables.get<AccessServiceRow>(ACCESS_SERVICES.name, organizationId, userId)
    return account === undefined ? undefined : editingService(tables, organizationId, userId, account, now)
  }
  if (user.status !== 'active') return undefined
  const role = await tables.get<AccessRoleRow>(ACCESS_ROLES.name, organizationId, user.roleId)
  const identity = await identityOf(tables, user)
  return userCaller({ organizationId, userId, jti: '', expiresAt: 0 }, user, role, identity)
}
