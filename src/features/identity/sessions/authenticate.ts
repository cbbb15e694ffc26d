import type { TableStore } from '../../../engines/table-store.ts'
import { hasAllHubs, type UserCaller } from '../../../kernel/caller.ts'
import type { Clock } from '../../../kernel/clock.ts'
import { Failure } from '../../../kernel/errors.ts'
import { RecentMap } from '../../../kernel/recent-map.ts'
import { NO_ORGANIZATION } from '../../../kernel/table.ts'
import type { Tokens } from './tokens.ts'
import {
  ACCESS_IDENTITIES,
  ACCESS_ORGANIZATIONS,
  ACCESS_ROLES,
  ACCESS_USERS,
  REVOCATIONS,
  type AccessIdentityRow,
  type AccessOrganizationRow,
  type AccessRoleRow,
  type AccessUserRow,
  type RevocationRow,
} from '../views.ts'

export interface Authenticator {
  /** User of a token, with their present role, hubs and permissions. @throws Failure unauthenticated */
  authenticate(token: string): Promise<UserCaller>
  /** The same for a revoked token: for a repeat of the call that revoked it. @throws Failure unauthenticated */
  authenticateRevoked(token: string): Promise<UserCaller>
}

export interface AuthenticatorServices {
  tables: Pick<TableStore, 'get'>
  clock: Clock
  /** Called with each counted use of a token; `expiresAt` in ms since the epoch. */
  used?(jti: string, expiresAt: number): void
}

/** What a user's row names. */
type Named = Pick<AccessUserRow, 'roleId' | 'identityId'>

/** Users whose role and identity are asked for together with their row. */
const NAMED_MAX = 10_000

/**
 * Only the token's signature is cached: status, role, hubs and revocation are read at each call, so changes take effect
 * at once, on every node. The ids of role and identity are remembered: all is one question unless they have changed.
 */
export const createAuthenticator = ({ tables, clock, used }: AuthenticatorServices, tokens: Tokens): Authenticator => {
  const lately = new RecentMap<string, Named>(NAMED_MAX)
  const rightsOf = (organizationId: string, { roleId, identityId }: Named) =>
    Promise.all([
      tables.get<AccessRoleRow>(ACCESS_ROLES.name, organizationId, roleId),
      identityOf(tables, { identityId }),
    ])
  const callerOf = async (token: string, mayBeRevoked: boolean): Promise<UserCaller> => {
    const { userId, organizationId, jti, expiresAt } = tokens.verify(token, clock.now())
    const key = `${organizationId} ${userId}`
    const named = lately.get(key)
    const [user, revoked, demanding, rights] = await Promise.all([
      tables.get<AccessUserRow>(ACCESS_USERS.name, organizationId, userId),
      tables.get<RevocationRow>(REVOCATIONS.name, organizationId, jti),
      tables.get<AccessOrganizationRow>(ACCESS_ORGANIZATIONS.name, organizationId, organizationId),
      named && rightsOf(organizationId, named),
    ])
    const isRefused = revoked !== undefined && !mayBeRevoked
    if (user?.status !== 'active' || isRefused) throw new Failure('unauthenticated')
    if (revoked === undefined) used?.(jti, expiresAt)
    const isAsNamed = named?.roleId === user.roleId && named.identityId === user.identityId
    if (!isAsNamed) lately.set(key, { roleId: user.roleId, identityId: user.identityId })
    const [role, identity] = isAsNamed && rights !== undefined ? rights : await rightsOf(organizationId, user)
    const caller = userCaller({ organizationId, userId, jti, expiresAt }, user, role, identity)
    const { fromMs = Number.NEGATIVE_INFINITY } = demanding ?? {}
    const isDue = fromMs <= clock.now()
    caller.isSecondFactorRequired = demanding !== undefined && isDue
    caller.hasSecondFactor = identity?.hasSecondFactor === true
    if (demanding !== undefined && !isDue && !caller.hasSecondFactor) caller.secondFactorDueMs = fromMs
    return caller
  }
  return {
    authenticate: (token) => callerOf(token, false),
    authenticateRevoked: (token) => callerOf(token, true),
  }
}

export const identityOf = (
  tables: Pick<TableStore, 'get'>,
  { identityId }: Pick<AccessUserRow, 'identityId'>,
): Promise<AccessIdentityRow | undefined> =>
  tables.get<AccessIdentityRow>(ACCESS_IDENTITIES.name, NO_ORGANIZATION, identityId)

/**
 * A user with their permissions and visibility, from the rows of access. Member by member: building it by spreading
 * several objects took as much processor time as the rest of the lookup.
 */
export const userCaller = (
  { organizationId, userId, jti, expiresAt }: Pick<UserCaller, 'organizationId' | 'userId' | 'jti' | 'expiresAt'>,
  user: AccessUserRow,
  role: AccessRoleRow | undefined,
  identity: AccessIdentityRow | undefined,
): UserCaller => {
  const caller: UserCaller = {
    kind: 'user',
    organizationId,
    userId,
    identityId: user.identityId,
    email: user.email,
    jti,
    expiresAt,
    roleId: user.roleId,
    roleKey: role?.key,
    permissions: permissionsOf(role),
    permissionDetails: role?.permissionDetails ?? [],
    hubIds: hasAllHubs(role) ? 'all' : user.hubIds,
    teamIds: user.teamIds,
  }
  if (identity?.verifiedEmail !== undefined) caller.verifiedEmail = identity.verifiedEmail
  return caller
}

const NO_PERMISSIONS: ReadonlySet<string> = new Set()
const ofRoles = new WeakMap<AccessRoleRow, ReadonlySet<string>>()

/** Cached for rows that are shared and immutable. */
export const permissionsOf = (role: AccessRoleRow | undefined): ReadonlySet<string> => {
  if (role === undefined) return NO_PERMISSIONS
  const known = ofRoles.get(role)
  if (known !== undefined) return known
  const permissions = new Set(role.permissions)
  if (Object.isFrozen(role)) ofRoles.set(role, permissions)
  return permissions
}
