import { pagesOf } from '../../../engines/table-store.ts'
import { Failure } from '../../../kernel/errors.ts'
import type { JsonObject } from '../../../kernel/json.ts'
import type { Row } from '../../../kernel/table.ts'
import { LIMIT_MAX } from '../../../kit/http/list-query.ts'
import { pick } from '../../../kit/resource/pick.ts'
import { type FlowRow, FLOWS } from '../../flows/views.ts'
import type { IdentityContext } from '../context.ts'
import { openMemberships } from '../identity.ts'
import type { IdentityState, Membership } from '../identity-state.ts'
import type { Founding } from './found-organization.ts'
import type { UserRow } from '../users/user.ts'
import { HUBS_TABLE, ORGANIZATIONS_TABLE, ROLES_TABLE, USERS_TABLE } from '../views.ts'

/** They share the first event of a new organization. */
const COPIED_HUBS_MAX = 1_000

export interface HubFields {
  hubName?: string
  hubLat?: number
  hubLng?: number
}

/**
 * Initial content of a new organization: the hub in the request, and copies from the caller's oldest membership as
 * owner (for hubs: the oldest whose organization has some).
 * @throws Failure invalid if hub fields are missing and there is nothing to copy from, quota for too many hubs.
 */
export const beginning = async (
  context: IdentityContext,
  person: Pick<IdentityState, 'memberships' | 'opensOnly'>,
  fields: HubFields,
  isCopy: boolean,
): Promise<Pick<Founding, 'hubs' | 'settings' | 'roles' | 'flows'>> => {
  const sent = sentHub(fields)
  const owned = await ownedMemberships(context, openMemberships(person))
  const hubs = await copiedHubs(context, owned, isCopy, sent === undefined)
  if (sent === undefined && hubs.length === 0) throw missing(['hubName', 'hubLat', 'hubLng'])
  const all = sent === undefined ? hubs : [...hubs, sent]
  const source = owned[0]
  if (!isCopy || source === undefined) return { hubs: all }
  const organization = await context.services.tables.get(
    ORGANIZATIONS_TABLE,
    source.organizationId,
    source.organizationId,
  )
  return {
    hubs: all,
    settings: organization?.settings as JsonObject | undefined,
    roles: await customRoles(context, source.organizationId),
    flows: await allFlows(context, source.organizationId),
  }
}

const sentHub = ({ hubName, hubLat, hubLng }: HubFields): JsonObject | undefined => {
  const fields = { hubName, hubLat, hubLng }
  const lacking = Object.entries(fields).filter(([, value]) => value === undefined)
  if (lacking.length === 3) return undefined
  if (lacking.length > 0) throw missing(lacking.map(([name]) => name))
  return { name: hubName, lat: hubLat, lng: hubLng } as JsonObject
}

const missing = (names: readonly string[]): Failure =>
  new Failure('invalid', {
    message: `${names[0] === 'hubName' ? 'The hub name' : `/${names[0]}`} is required.`,
    errors: names.map((name) => ({ path: `/${name}`, message: 'is required' })),
  })

const ownedMemberships = async (
  { services: { tables } }: IdentityContext,
  memberships: readonly Membership[],
): Promise<Membership[]> => {
  const owned: Membership[] = []
  for (const membership of memberships) {
    const member = await tables.get<UserRow>(USERS_TABLE, membership.organizationId, membership.userId)
    if (member?.status !== 'active') continue
    const role = await tables.get(ROLES_TABLE, membership.organizationId, member.roleId)
    if (role?.key === 'owner') owned.push(membership)
  }
  return owned
}

/** With the flag all hubs, since owners see all; else its first hub if none was sent. @throws Failure quota */
const copiedHubs = async (
  { services: { tables } }: IdentityContext,
  owned: readonly Membership[],
  isCopy: boolean,
  isNeeded: boolean,
): Promise<JsonObject[]> => {
  if (!isCopy && !isNeeded) return []
  const question = {
    sort: { field: 'createdAt', order: 'asc' },
    limit: isCopy ? LIMIT_MAX : 1,
  } as const
  for (const { organizationId } of owned) {
    const hubs: JsonObject[] = []
    for await (const rows of pagesOf(tables, HUBS_TABLE, organizationId, question)) {
      hubs.push(...rows.map(({ row }) => hubBody(row)))
      if (!isCopy && hubs.length > 0) return hubs
      if (hubs.length > COPIED_HUBS_MAX) throw tooManyHubs()
    }
    if (hubs.length > 0) return hubs
  }
  return []
}

const tooManyHubs = (): Failure =>
  new Failure('quota', {
    message: `An organization with more than ${COPIED_HUBS_MAX} hubs cannot be copied.`,
    extra: { limit: COPIED_HUBS_MAX },
  })

const hubBody = (row: Row): JsonObject => pick(row as JsonObject, ['name', 'address', 'lat', 'lng'])

const allFlows = async (
  { services: { tables } }: IdentityContext,
  organizationId: string,
): Promise<NonNullable<Founding['flows']>> => {
  const flows: { flowId: string; version: number; key?: string }[] = []
  for await (const { row } of tables.scan<FlowRow>(FLOWS, organizationId))
    flows.push({ flowId: row._id, version: row.version, ...(row.key !== undefined && { key: row.key }) })
  return flows
}

/** Only their system permissions: data types belong to one organization. */
const customRoles = async (
  { services: { tables } }: IdentityContext,
  organizationId: string,
): Promise<NonNullable<Founding['roles']>> => {
  const roles: { name: string; permissions: string[] }[] = []
  for await (const { row } of tables.scan<Row & { name: string; permissions: string[] }>(ROLES_TABLE, organizationId))
    if (row.key === undefined) roles.push({ name: row.name, permissions: row.permissions })
  return roles
}
