import type { JsonObject } from '../../kernel/json.ts'
import type { Row } from '../../kernel/table.ts'
import type { WriteOrigin, Written } from '../../kit/resource/writes.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import type { IdSource, Wrote } from '../../kit/http/route.ts'
import { allWrote } from '../../kit/commands/wrote.ts'
import type { IdentityContext } from './context.ts'
import { changeOwners } from './owners.ts'
import { PREDEFINED_ROLES } from './predefined-roles.ts'
import type { UserRow } from './user.ts'

export interface Founding {
  name: string
  /** Bodies of its first hubs. */
  hubs: readonly JsonObject[]
  owner: { identityId: string; userId: string; name: string; email: string }
  settings?: JsonObject
  /** Roles beside the predefined ones. */
  roles?: readonly { name: string; permissions: readonly string[] }[]
}

/** Ids that a founding will use; taken before anything is written, so that a repeated request takes the same ones. */
export interface FoundingIds {
  hubIds: string[]
  roleIds: string[]
  customRoleIds: string[]
}

export const foundingIds = (ids: IdSource, hubs: number, customRoles = 0): FoundingIds => ({
  hubIds: Array.from({ length: hubs }, () => ids.next()),
  roleIds: PREDEFINED_ROLES.map(() => ids.next()),
  customRoleIds: Array.from({ length: customRoles }, () => ids.next()),
})

export interface Founded {
  organization: Row
  owner: UserRow
  wrote: Wrote | undefined
}

/**
 * Makes an organization with its hubs, the four predefined roles and its owner. `origin.organizationId` is its id.
 * Under the same ids it goes on where an earlier try ended.
 */
export const foundOrganization = async (
  context: IdentityContext,
  origin: WriteOrigin,
  founding: Founding,
  { hubIds, roleIds, customRoleIds }: FoundingIds,
): Promise<Founded> => {
  const { organizationId: _id } = origin
  const { name: organizationName, settings } = founding
  const organization = await context.organizations.create(origin, {
    _id,
    name: organizationName,
    ...(settings && { settings }),
  })
  const hubs: Written[] = []
  for (const [i, hub] of founding.hubs.entries())
    hubs.push(await context.hubs.create(origin, { ...hub, _id: hubIds[i] }))
  const roles: Written[] = []
  for (const [i, { key, name, permissions }] of PREDEFINED_ROLES.entries()) {
    roles.push(await context.roles.create(origin, { _id: roleIds[i], name, permissions: [...permissions] }, { key }))
  }
  for (const [i, { name, permissions }] of (founding.roles ?? []).entries()) {
    roles.push(await context.roles.create(origin, { _id: customRoleIds[i], name, permissions: [...permissions] }))
  }
  const { identityId, userId, name, email } = founding.owner
  const roleId = roleIds[PREDEFINED_ROLES.findIndex(({ key }) => key === 'owner')]
  const owner = await context.users.create(origin, { _id: userId, name, email, roleId, hubId: hubIds }, { identityId })
  const command = { type: 'add', userId, at: formatTime(origin.now) } as const
  await changeOwners(context.services.log, origin.organizationId, command, {
    ids: origin.ids,
    metadata: origin.metadata,
  })
  const wrote = allWrote(
    organization.wrote,
    ...hubs.map((hub) => hub.wrote),
    ...roles.map((role) => role.wrote),
    owner.wrote,
  )
  return { organization: organization.row, owner: { ...owner.row, teamIds: [] } as unknown as UserRow, wrote }
}
