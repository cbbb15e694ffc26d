import { identity } from '../../src/features/identity/identity.ts'
import type { Membership } from '../../src/features/identity/identity-state.ts'
import { owners } from '../../src/features/identity/owners.ts'
import type { UserRow } from '../../src/features/identity/users/user.ts'
import { NO_ORGANIZATION, type Row } from '../../src/kernel/table.ts'
import { loadState } from '../../src/kit/commands/load-state.ts'
import { normalizeKey } from '../../src/kit/commands/unique-claim.ts'
import type { openIdentity } from '../support/open-identity.ts'
import { until } from '../support/service.ts'

type World = Pick<Awaited<ReturnType<typeof openIdentity>>, 'log' | 'tables'>

const allOf = async <R extends Row>(
  { tables }: World,
  table: string,
): Promise<{ scope: string; id: string; row: R }[]> => {
  const rows: { scope: string; id: string; row: R }[] = []
  for await (const row of tables.scanAll<R>(table)) rows.push(row)
  return rows
}

const REFERENCES = [
  ['vehicles', 'userId', 'users'],
  ['trackers', 'userId', 'users'],
  ['trackers', 'vehicleId', 'vehicles'],
  ['trackers', 'teamId', 'teams'],
] as const

/** Ids of every identity that the log knows. */
const identityIds = async ({ log }: World): Promise<Set<string>> => {
  const ids = new Set<string>()
  const end = new AbortController()
  for await (const { events, caughtUp } of log.follow({ prefixes: ['identity-'] }, undefined, end.signal)) {
    for (const { stream } of events) if (!stream.startsWith('identity-by-')) ids.add(stream.slice('identity-'.length))
    if (caughtUp) break
  }
  end.abort()
  return ids
}

/**
 * What is half: streams and rows of organizations, users, roles, teams and identities that contradict each other, in
 * words. Everything here is asked of the log and the tables alone, not of the code that wrote them.
 */
const halves = async (world: World): Promise<string[]> => {
  const found: string[] = []
  const users = await allOf<UserRow>(world, 'users')
  const roles = await allOf<Row & { key?: string; name: string }>(world, 'roles')
  const userAt = new Map(users.map(({ row }) => [row._id, row]))
  const keyOf = new Map(roles.map(({ id, row }) => [id, row.key]))

  const memberOf = new Map<string, Membership & { email: string }>()
  const emails = new Set<string>()
  for (const identityId of await identityIds(world)) {
    const { state } = await loadState(world.log, `identity-${identityId}`, identity)
    if (!state.exists) continue
    if (emails.has(normalizeKey(state.email))) found.push(`two identities have ${state.email}`)
    emails.add(normalizeKey(state.email))
    for (const membership of state.memberships) {
      memberOf.set(membership.userId, { ...membership, email: state.email })
      if (userAt.get(membership.userId)?.identityId !== identityId)
        found.push(`${state.email} is a member by user ${membership.userId}, who is not there`)
    }
  }
  for (const { row } of users) {
    const membership = memberOf.get(row._id)
    if (membership?.organizationId !== row.organizationId) found.push(`user ${row.email} is nobody's membership`)
    if (membership !== undefined && membership.email !== row.email)
      found.push(`user ${row.email} has another e-mail than their identity, ${membership.email}`)
  }
  for (const { scope, row } of await allOf<Row & { userIds: string[]; name: string }>(world, 'teams'))
    for (const userId of row.userIds)
      if (userAt.get(userId)?.organizationId !== scope) found.push(`team ${row.name} has a member who is not there`)

  for (const { row } of users) if (!keyOf.has(row.roleId)) found.push(`user ${row.email} has a role that is not there`)
  for (const [table, field, target] of REFERENCES) {
    const ids = new Set((await allOf(world, target)).map(({ id }) => id))
    for (const { id, row } of await allOf(world, table))
      if (row[field] !== undefined && !ids.has(String(row[field]))) found.push(`${table} ${id} names no ${target}`)
  }

  const names = new Set<string>()
  for (const { scope, row } of roles) {
    if (names.has(`${scope} ${normalizeKey(row.name)}`)) found.push(`two roles are named ${row.name}`)
    names.add(`${scope} ${normalizeKey(row.name)}`)
  }
  for (const { id, row } of await allOf(world, 'organizations')) {
    const active = users.filter(
      ({ scope, row: { status, roleId } }) => scope === id && status === 'active' && keyOf.get(roleId) === 'owner',
    )
    const { state } = await loadState(world.log, `owners-${id}`, owners)
    const are = active.map(({ row: { _id } }) => _id).sort()
    if (are.length === 0) found.push(`organization ${row.name} has no owner`)
    if (String([...state].sort()) !== String(are))
      found.push(`organization ${row.name} counts other owners than it has`)
    const keys = roles.filter(({ scope }) => scope === id).flatMap(({ row: { key } }) => key ?? [])
    if (keys.length !== 4) found.push(`organization ${row.name} has ${keys.length} predefined roles`)
    if ((await allOf(world, 'hubs')).every(({ scope }) => scope !== id))
      found.push(`organization ${row.name} has no hub`)
  }
  const organizations = new Set((await allOf(world, 'organizations')).map(({ id }) => id))
  for (const table of ['users', 'roles', 'hubs', 'teams'])
    for (const { scope } of await allOf(world, table))
      if (!organizations.has(scope)) found.push(`${table} of an organization that is not there`)
  for (const { id, row } of await allOf(world, 'open-processes'))
    if (row !== undefined) found.push(`the process about ${id} is open (scope ${NO_ORGANIZATION})`)
  return found
}

/** What is half once the read models have followed. */
export const halvesOf = async (world: World): Promise<string[]> => {
  let found: string[] = []
  await until('nothing to be half', async () => (found = await halves(world)).length === 0, 60_000).catch(
    () => undefined,
  )
  return found
}
