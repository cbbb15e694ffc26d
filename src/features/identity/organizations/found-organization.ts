import type { JsonObject } from '../../../kernel/json.ts'
import type { Row } from '../../../kernel/table.ts'
import { rowOf } from '../../../kit/commands/declared-event.ts'
import type { StepOrigin } from '../../../kit/commands/process.ts'
import type { IdSource, Wrote } from '../../../kit/http/route.ts'
import type { IdentityContext } from '../context.ts'
import { PREDEFINED_ROLES } from '../users/predefined-roles.ts'
import { FOUND_ORGANIZATION, type FoundOrganizationData } from '../processes.ts'
import type { UserRow } from '../users/user.ts'

export interface Founding {
  name: string
  /** Bodies of its first hubs. */
  hubs: readonly JsonObject[]
  settings?: JsonObject
  /** Roles besides the predefined ones. */
  roles?: readonly { name: string; permissions: readonly string[] }[]
  flows?: readonly { flowId: string; version: number; key?: string }[]
  owner: { identityId: string; userId: string; name: string; email: string }
  signUp?: FoundOrganizationData['signUp']
}

export interface Founded {
  organization: Row
  owner: UserRow
  wrote: Wrote | undefined
}

/**
 * Creates an organization with its hubs, the four predefined roles and its owner. `origin.organizationId` is its id.
 * @throws Failure key_in_use for the e-mail of a sign-up, not_available if sign-up is closed by now, quota.
 */
export const foundOrganization = async (
  context: IdentityContext,
  origin: StepOrigin,
  userId: string,
  founding: () => Promise<Founding>,
): Promise<Founded> => {
  const { organizationId } = origin
  const organizationsMax = context.config.organizationsPerUser
  const wrote = await context.services.processes.run(FOUND_ORGANIZATION, organizationId, origin, async () => {
    // A repeated request does not copy the present state.
    const { state } = await context.users.load(userId)
    return state.status === 'absent' ? withIds(origin.ids, await founding(), organizationsMax) : undefined
  })
  const organization = await rowIn(context.organizations, organizationId)
  const owner = { ...(await rowIn(context.users, userId)), teamIds: [] } as unknown as UserRow
  return { organization, owner, wrote }
}

/** All ids that it will use: a resumed process uses the same ones. */
const withIds = (
  ids: IdSource,
  { hubs, roles = [], flows = [], owner, ...founding }: Founding,
  organizationsMax: number,
): FoundOrganizationData => {
  const hubsWithId = hubs.map((hub) => ({ ...hub, _id: ids.next() }))
  const predefined = PREDEFINED_ROLES.map((role) => ({ ...role, _id: ids.next() }))
  const [{ _id: roleId }] = predefined
  const custom = roles.map((role) => ({ ...role, _id: ids.next() }))
  return {
    ...founding,
    hubs: hubsWithId,
    roles: [...predefined, ...custom],
    flows: flows.map((flow) => ({ ...flow, _id: ids.next() })),
    owner: { ...owner, roleId },
    organizationsMax,
  }
}

const rowIn = async (writer: IdentityContext['users'], id: string): Promise<Row> => {
  const { state, version } = await writer.load(id)
  return rowOf(id, version, state)
}
