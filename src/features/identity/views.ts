import type { TableStore } from '../../engines/table-store.ts'
import { hasAllHubs, type PermissionDetail, type UserCaller } from '../../kernel/caller.ts'
import type { Row, TableDeclaration } from '../../kernel/table.ts'

/** Read model for authorizing tokens. */
export const ACCESS = 'access'

/** Data needed to authorize a token at each call, by organization and user. */
export const ACCESS_USERS: TableDeclaration = {
  name: 'access-users',
  version: 1,
  equality: ['teamIds'],
  isShared: true,
}

export type AccessUserRow = {
  identityId: string
  email: string
  status: 'invited' | 'active' | 'disabled'
  roleId: string
  hubIds: string[]
  teamIds: string[]
}

/** By organization and role. */
export const ACCESS_ROLES: TableDeclaration = { name: 'access-roles', version: 1, isShared: true }

export type AccessRoleRow = {
  key?: NonNullable<UserCaller['roleKey']>
  permissions: string[]
  permissionDetails: PermissionDetail[]
}

/** By identity, without organization. */
export const ACCESS_IDENTITIES: TableDeclaration = { name: 'access-identities', version: 2, isShared: true }

export type AccessIdentityRow = {
  /** Address that its owner has verified. */
  verifiedEmail?: string
  hasSecondFactor?: boolean
}

/** Organizations that require a second factor, each in its own scope. */
export const ACCESS_ORGANIZATIONS: TableDeclaration = { name: 'access-organizations', version: 2 }

export type AccessOrganizationRow = {
  /** Start of the requirement, ms since the epoch; absent if it began before such dates existed. */
  fromMs?: number
}

/**
 * Revoked tokens by organization and `jti`, until they expire or their user is deleted. Stored with the users: no
 * engine loses them and keeps those.
 */
export const REVOCATIONS: TableDeclaration = { name: 'revocations', version: 3, equality: ['userId'] }

export type RevocationRow = {
  userId: string
  graceMs: number
}

/** Tables of the directory, by the names that other features use. */
export const USERS_TABLE = 'users'
export const ROLES_TABLE = 'roles'
export const ORGANIZATIONS_TABLE = 'organizations'

/** Time zone of an organization. */
export const timeZoneOf = async (tables: Pick<TableStore, 'get'>, organizationId: string): Promise<string> => {
  const row = await tables.get(ORGANIZATIONS_TABLE, organizationId, organizationId)
  return (row?.settings as { timeZone?: string } | undefined)?.timeZone ?? 'UTC'
}
export const HUBS_TABLE = 'hubs'
export const TEAMS_TABLE = 'teams'

/** Whether a user's row has a hub: in its list, or by a role with all hubs. */
export const userHasHub = async (
  tables: Pick<TableStore, 'get'>,
  organizationId: string,
  user: Row,
  hubId: string,
): Promise<boolean> =>
  (user.hubId as string[]).includes(hubId) ||
  hasAllHubs(await tables.get(ROLES_TABLE, organizationId, user.roleId as string))
