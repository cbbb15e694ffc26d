import type { TableStore } from '../../../engines/table-store.ts'
import { hasAllHubs, seesHubs, type PermissionDetail, type UserCaller } from '../../../kernel/caller.ts'
import { Failure, invalid } from '../../../kernel/errors.ts'
import { isRecipient } from '../../../kernel/recipient.ts'
import type { Row } from '../../../kernel/table.ts'
import { assertExists, NAMES_NOTHING } from '../../../kit/resource/references.ts'
import type { RoleKey } from './predefined-roles.ts'
import { ROLES_TABLE, TEAMS_TABLE } from '../views.ts'

type Tables = Pick<TableStore, 'get'>

export type RoleRow = Row & {
  _id: string
  name: string
  key?: RoleKey
  permissions: string[]
  permissionDetails?: PermissionDetail[]
}

/** State of a user after a write, as rules need it. */
export interface Access {
  role: RoleRow
  hubIds: readonly string[]
}

/** @throws Failure invalid for a role unknown to the organization. */
export const roleOf = (tables: Tables, organizationId: string, roleId: string): Promise<RoleRow> =>
  assertExists<RoleRow>(tables, ROLES_TABLE, organizationId, roleId, '/roleId')

/** @throws Failure invalid for an address that mail cannot be sent to */
export const assertRecipient = (email: string): void => {
  if (!isRecipient(email)) throw invalid('/email', 'must be a public e-mail address: mail is sent to it')
}

/** Callers can only give, change or remove rights that they hold themselves. @throws Failure forbidden */
export const assertHolds = (
  caller: UserCaller,
  role: Pick<RoleRow, 'name' | 'permissions' | 'permissionDetails'>,
): void => {
  const missing = role.permissions.filter((permission) => !caller.permissions.has(permission))
  const wider = caller.permissionDetails.filter(
    (own) => role.permissions.includes(own.permissionName) && showsMore(role, own),
  )
  const lacking = [...new Set([...missing, ...wider.map(({ permissionName }) => permissionName)])]
  if (lacking.length === 0) return
  throw new Failure('forbidden', {
    message: `The role ${role.name} holds permissions that you lack.`,
    extra: { permissions: lacking },
  })
}

/** Whether the role shows a field that this entry of the caller's role hides. */
const showsMore = ({ permissionDetails = [] }: Pick<RoleRow, 'permissionDetails'>, own: PermissionDetail): boolean => {
  const entries = permissionDetails.filter(
    ({ permissionName, dataTypeId }) => permissionName === own.permissionName && dataTypeId === own.dataTypeId,
  )
  return own.hiddenFields.some((field) => !entries.some(({ hiddenFields }) => hiddenFields.includes(field)))
}

/** Teams must exist, have one of the user's hubs and, if new, be visible. @throws Failure invalid with the path */
export const assertTeams = async (
  tables: Tables,
  caller: UserCaller,
  teamIds: readonly string[],
  before: readonly string[],
  { role, hubIds }: Access,
): Promise<void> => {
  for (const [i, teamId] of teamIds.entries()) {
    const path = `/teamIds/${i}`
    const team = await assertExists<Row & { hubId: string; name: string }>(
      tables,
      TEAMS_TABLE,
      caller.organizationId,
      teamId,
      path,
    )
    if (!before.includes(teamId) && !seesHubs(caller, [team.hubId])) throw invalid(path, NAMES_NOTHING)
    if (!hasAllHubs(role) && !hubIds.includes(team.hubId))
      throw invalid(path, `is a team of a hub that the user does not have (${team.name})`)
  }
}

/**
 * Status after a write. Invited users stay so until they accept, whatever is written, and nobody becomes invited again.
 * @throws Failure invalid
 */
export const nextStatus = (status: string, before: string): string => {
  if (status === 'invited' && before !== 'invited') throw invalid('/status', 'must be active or disabled')
  return before === 'invited' ? before : status
}

/** Editors may only change users all of whose hubs they have themselves. @throws Failure forbidden */
export const assertReach = (caller: UserCaller, hubIds: readonly string[], whom = 'user'): void => {
  const { hubIds: own } = caller
  if (own === 'all' || hubIds.every((hubId) => own.includes(hubId))) return
  throw new Failure('forbidden', { message: `This ${whom} has hubs that you do not have.` })
}

/** A service account that expires cannot create keys that outlast it. @throws Failure forbidden */
export const assertEnds = ({ endsAt }: UserCaller, expiresAt: string | undefined): void => {
  if (endsAt === undefined || (expiresAt !== undefined && Date.parse(expiresAt) <= endsAt)) return
  throw new Failure('forbidden', { message: 'This service account would outlast your own.' })
}

/** Only owners make owners, or change an owner's credentials, role, status, existence. @throws Failure forbidden */
export const assertOwner = (caller: UserCaller, role: Pick<RoleRow, 'key'>): void => {
  if (role.key !== 'owner' || caller.roleKey === 'owner') return
  throw new Failure('forbidden', { message: 'Only an owner can do this to an owner, or make somebody one.' })
}

/** Callers can remove members only from teams that they see. @throws Failure invalid */
export const assertSeesTeams = async (
  tables: Tables,
  caller: UserCaller,
  teamIds: readonly string[],
): Promise<void> => {
  for (const teamId of teamIds) {
    const team = await tables.get<Row & { hubId: string }>(TEAMS_TABLE, caller.organizationId, teamId)
    if (team !== undefined && !seesHubs(caller, [team.hubId]))
      throw invalid('/teamIds', 'must keep the teams of hubs that you do not have')
  }
}
