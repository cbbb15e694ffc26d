import { decodeJson, type RecordedEvent } from '../src/kernel/event.ts'
import { NO_ORGANIZATION } from '../src/kernel/table.ts'
import { type EmailVerified, IDENTITY, SESSION_STREAMS, type TokenRevoked } from '../src/features/identity/events.ts'
import {
  ACCESS,
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
} from '../src/features/identity/views.ts'
import {
  ACCESS_KEYS,
  ACCESS_SERVICES,
  type AccessKeyRow,
  type AccessServiceRow,
} from '../src/features/service-accounts/views.ts'
import { eventTypes, idOfStream, type ResourceData } from '../src/kit/commands/declared-event.ts'
import { linkRows } from '../src/kit/http/link-rows.ts'
import type { Projection, Rows } from '../src/kit/consumers/projection.ts'

const USER = eventTypes('user')
const ROLE = eventTypes('role')
const TEAM = eventTypes('team')
const SERVICE_ACCOUNT = eventTypes('serviceAccount')

const ORGANIZATION = eventTypes('organization')

const IDENTITY_TYPES = [
  IDENTITY.tokenRevoked,
  IDENTITY.emailVerified,
  IDENTITY.emailChanged,
  IDENTITY.factorConfirmed,
  IDENTITY.factorRemoved,
  IDENTITY.deleted,
]

/** Data for token checks: users, service accounts, keys, roles, verified addresses, second factors, revoked tokens. */
export const access: Projection = {
  name: ACCESS,
  version: 7,
  tables: [
    ACCESS_USERS,
    ACCESS_SERVICES,
    ACCESS_KEYS,
    ACCESS_ROLES,
    ACCESS_IDENTITIES,
    ACCESS_ORGANIZATIONS,
    REVOCATIONS,
  ],
  prefixes: ['user-', 'serviceAccount-', 'role-', 'team-', 'organization-', 'identity-', SESSION_STREAMS],
  inputs: [
    ...[USER, SERVICE_ACCOUNT, ROLE, TEAM, ORGANIZATION].flatMap((types) => Object.values(types)),
    ...IDENTITY_TYPES,
  ],
  apply: async (event, rows) => {
    if (event.type === IDENTITY.tokenRevoked) applyRevocation(event, rows)
    else if (event.stream.startsWith('identity-')) await applyIdentity(event, rows)
    else if (event.stream.startsWith('organization-')) applyOrganization(event, rows)
    else if (event.stream.startsWith('user-')) await applyUser(event, rows)
    else if (event.stream.startsWith('serviceAccount-')) await applyService(event, rows)
    else if (event.stream.startsWith('role-')) applyRole(event, rows)
    else await applyTeam(event, rows)
  },
}

const applyRevocation = (event: RecordedEvent, rows: Rows): void => {
  const { jti, organizationId, userId, graceMs, expiresAt } = decodeJson<TokenRevoked>(event.data)
  rows.put(REVOCATIONS.name, organizationId, jti, { userId, graceMs } satisfies RevocationRow, Date.parse(expiresAt))
}

/** A changed address is unverified until its owner confirms it. */
const applyIdentity = async ({ type, stream, data }: RecordedEvent, rows: Rows): Promise<void> => {
  const id = idOfStream(stream)
  if (type === IDENTITY.deleted) return rows.delete(ACCESS_IDENTITIES.name, NO_ORGANIZATION, id)
  const before = await rows.get<AccessIdentityRow>(ACCESS_IDENTITIES.name, NO_ORGANIZATION, id)
  const { verifiedEmail, hasSecondFactor } = { ...before, ...identityPart(type, data) }
  const row: AccessIdentityRow = {
    ...(verifiedEmail !== undefined && { verifiedEmail }),
    ...(hasSecondFactor === true && { hasSecondFactor }),
  }
  if (Object.keys(row).length === 0) rows.delete(ACCESS_IDENTITIES.name, NO_ORGANIZATION, id)
  else rows.put(ACCESS_IDENTITIES.name, NO_ORGANIZATION, id, row)
}

const identityPart = (type: string, data: RecordedEvent['data']): AccessIdentityRow => {
  if (type === IDENTITY.emailVerified) return { verifiedEmail: decodeJson<EmailVerified>(data).email }
  if (type === IDENTITY.emailChanged) return { verifiedEmail: undefined }
  return { hasSecondFactor: type === IDENTITY.factorConfirmed }
}

interface SecondFactorSettings {
  requiresSecondFactor?: boolean
  secondFactorFrom?: string
}

const applyOrganization = (event: RecordedEvent, rows: Rows): void => {
  const { organizationId, values } = decodeJson<ResourceData>(event.data)
  const { requiresSecondFactor, secondFactorFrom: from } = (values.settings ?? {}) as SecondFactorSettings
  const row: AccessOrganizationRow = from === undefined ? {} : { fromMs: Date.parse(from) }
  if (requiresSecondFactor === true) rows.put(ACCESS_ORGANIZATIONS.name, organizationId, organizationId, row)
  else rows.delete(ACCESS_ORGANIZATIONS.name, organizationId, organizationId)
}

const applyUser = async (event: RecordedEvent, rows: Rows): Promise<void> => {
  const { organizationId, values } = decodeJson<ResourceData>(event.data)
  const id = idOfStream(event.stream)
  if (event.type === USER.deleted) {
    rows.delete(ACCESS_USERS.name, organizationId, id)
    // Without a user no token counts; an erased one leaves no revocations in the log either.
    const revoked = await rows.findBy(REVOCATIONS.name, organizationId, 'userId', id)
    for (const { id: jti } of revoked) rows.delete(REVOCATIONS.name, organizationId, jti)
    return
  }
  const before = await rows.get<AccessUserRow>(ACCESS_USERS.name, organizationId, id)
  const { identityId, email, status, roleId, hubId: hubIds } = values as unknown as AccessUserRow & { hubId: string[] }
  rows.put(ACCESS_USERS.name, organizationId, id, {
    identityId,
    email,
    status,
    roleId,
    hubIds,
    teamIds: before?.teamIds ?? [],
  } satisfies AccessUserRow)
}

/** Its removed keys are forgotten at once. */
const applyService = async (event: RecordedEvent, rows: Rows): Promise<void> => {
  const { organizationId, values } = decodeJson<ResourceData>(event.data)
  const accountId = idOfStream(event.stream)
  const before = await rows.get<AccessServiceRow>(ACCESS_SERVICES.name, organizationId, accountId)
  for (const hash of [before?.keyHash, before?.previousKeyHash])
    if (hash !== undefined) rows.delete(ACCESS_KEYS.name, NO_ORGANIZATION, hash)
  if (event.type === SERVICE_ACCOUNT.deleted) return rows.delete(ACCESS_SERVICES.name, organizationId, accountId)
  const { hubId: hubIds, ...kept } = values as unknown as AccessServiceRow & { hubId: string[] }
  const { roleId, keyHash, expiresAt, previousKeyHash, previousKeyUntil } = kept
  const row: AccessServiceRow = {
    roleId,
    hubIds,
    keyHash,
    ...(expiresAt !== undefined && { expiresAt }),
    ...(previousKeyHash !== undefined && { previousKeyHash, previousKeyUntil }),
  }
  rows.put(ACCESS_SERVICES.name, organizationId, accountId, row)
  for (const hash of [keyHash, previousKeyHash])
    if (hash !== undefined)
      rows.put(ACCESS_KEYS.name, NO_ORGANIZATION, hash, { organizationId, accountId } satisfies AccessKeyRow)
}

const applyRole = (event: RecordedEvent, rows: Rows): void => {
  const { organizationId, values } = decodeJson<ResourceData>(event.data)
  const id = idOfStream(event.stream)
  if (event.type === ROLE.deleted) return rows.delete(ACCESS_ROLES.name, organizationId, id)
  const { key, permissions, permissionDetails } = values as unknown as AccessRoleRow
  rows.put(ACCESS_ROLES.name, organizationId, id, {
    ...(key !== undefined && { key }),
    permissions,
    permissionDetails,
  } satisfies AccessRoleRow)
}

const applyTeam = async (event: RecordedEvent, rows: Rows): Promise<void> => {
  const { organizationId, values } = decodeJson<ResourceData>(event.data)
  const members = event.type === TEAM.deleted ? [] : (values.userIds as string[])
  await linkRows(
    rows,
    { table: ACCESS_USERS.name, scope: organizationId, field: 'teamIds' },
    idOfStream(event.stream),
    members,
  )
}
