import type { TableStore } from '../../../engines/table-store.ts'
import { hasAllHubs, type UserCaller } from '../../../kernel/caller.ts'
import type { Clock } from '../../../kernel/clock.ts'
import { Failure } from '../../../kernel/errors.ts'
import { NO_ORGANIZATION } from '../../../kernel/table.ts'
import type { Keyring } from '../../../kit/keys/keyring.ts'
import {
  ACCESS_KEYS,
  ACCESS_SERVICES,
  type AccessKeyRow,
  type AccessServiceRow,
  keyHashOf,
} from '../../service-accounts/views.ts'
import { permissionsOf } from './authenticate.ts'
import { ACCESS_ROLES, type AccessRoleRow } from '../views.ts'

/** Expiry of an account without one: later than any time. */
const NO_END = Number.POSITIVE_INFINITY
/** How long the last use of a key is kept. */
const USES_KEPT_MS = 10 * 365 * 24 * 3_600_000

export interface ServiceAuthenticatorServices {
  tables: Pick<TableStore, 'get'>
  keyring: Keyring
  clock: Clock
  /** Called with each counted use of a key. */
  used?(accountId: string, keptUntil: number): void
}

/**
 * Service account of a key, with its present role and hubs. Keys are found by their hashes, so that no comparison
 * reveals how much of a guess was right. @throws Failure unauthenticated, engine_down
 */
export const authenticateService = async (
  { tables, keyring, clock, used }: ServiceAuthenticatorServices,
  token: string,
): Promise<UserCaller> => {
  const keyHash = keyHashOf(keyring, token)
  const key = keyHash && (await tables.get<AccessKeyRow>(ACCESS_KEYS.name, NO_ORGANIZATION, keyHash))
  if (!key) throw new Failure('unauthenticated')
  const { organizationId, accountId } = key
  const account = await tables.get<AccessServiceRow>(ACCESS_SERVICES.name, organizationId, accountId)
  const now = clock.now()
  const expiresAt = account === undefined ? 0 : endOf(account, keyHash)
  if (account === undefined || expiresAt <= now) throw new Failure('unauthenticated')
  used?.(accountId, now + USES_KEPT_MS)
  const caller = serviceCaller(organizationId, accountId, account, await roleOf(tables, organizationId, account))
  caller.expiresAt = expiresAt
  return caller
}

/** The account with the rights of an automation that it edited last; undefined once it has expired. */
export const editingService = async (
  tables: Pick<TableStore, 'get'>,
  organizationId: string,
  accountId: string,
  account: AccessServiceRow,
  now: number,
): Promise<UserCaller | undefined> =>
  endOf(account, account.keyHash) <= now
    ? undefined
    : serviceCaller(organizationId, accountId, account, await roleOf(tables, organizationId, account))

/** Expiry of a key, ms since the epoch; 0 for one that was replaced at once. */
const endOf = (account: AccessServiceRow, keyHash: string): number => {
  const ends = account.expiresAt === undefined ? NO_END : Date.parse(account.expiresAt)
  if (keyHash === account.keyHash) return ends
  if (keyHash !== account.previousKeyHash) return 0
  return Math.min(ends, Date.parse(account.previousKeyUntil as string))
}

const roleOf = (tables: Pick<TableStore, 'get'>, organizationId: string, { roleId }: AccessServiceRow) =>
  tables.get<AccessRoleRow>(ACCESS_ROLES.name, organizationId, roleId)

const serviceCaller = (
  organizationId: string,
  accountId: string,
  { roleId, hubIds, expiresAt }: AccessServiceRow,
  role: AccessRoleRow | undefined,
): UserCaller => ({
  kind: 'user',
  isService: true,
  organizationId,
  userId: accountId,
  identityId: accountId,
  email: '',
  jti: accountId,
  expiresAt: expiresAt === undefined ? NO_END : Date.parse(expiresAt),
  endsAt: expiresAt === undefined ? undefined : Date.parse(expiresAt),
  roleId,
  roleKey: role?.key,
  permissions: permissionsOf(role),
  permissionDetails: role?.permissionDetails ?? [],
  hubIds: hasAllHubs(role) ? 'all' : hubIds,
  teamIds: [],
})
