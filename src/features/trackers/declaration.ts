import { bool, id, oneOf, optional, text, withDefault } from '../../kernel/schema.ts'
import { seesHubs, type UserCaller } from '../../kernel/caller.ts'
import { invalid } from '../../kernel/errors.ts'
import type { Row } from '../../kernel/table.ts'
import { hubsOf } from '../../kit/http/list-query.ts'
import { assertExists, NAMES_NOTHING } from '../../kit/resource/references.ts'
import type { ResourceDeclaration, WriteContext } from '../../kit/resource/declaration.ts'
import { INGEST_KEYS_TABLE, TRACKERS_TABLE } from './views.ts'

export const EXTERNAL_ID_LENGTH_MAX = 200

const externalId = optional(text({ max: EXTERNAL_ID_LENGTH_MAX }))

/** What clients see of a tracker; its `externalId` comes with the create and stays. */
export const trackerDeclaration: ResourceDeclaration = {
  noun: 'tracker',
  plural: TRACKERS_TABLE,
  tag: 'Trackers',
  fields: {
    name: text({ max: 200 }),
    kind: withDefault(oneOf('phone', 'vehicle', 'device'), 'device'),
    userId: optional(id()),
    vehicleId: optional(id()),
    hubId: optional(id()),
    teamId: optional(id()),
  },
  readOnly: {
    externalId,
    lastSeenAt: optional({
      schema: { type: 'string', format: 'date-time', description: 'The earlier of the last point and its logging.' },
    }),
    status: optional(oneOf('online', 'stale', 'offline')),
  },
  permissions: { view: 'view/tracker', edit: 'edit/tracker' },
  hubField: 'hubIds',
  version: 2,
  indexes: {
    equality: ['name', 'kind', 'userId', 'vehicleId', 'externalId', 'hubId', 'teamId'],
    range: ['name'],
    text: ['name', 'externalId'],
  },
  example: { name: 'Bus 12', kind: 'vehicle', hubId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6c' },
  checks: (write) => checkTracker(write),
  present: (row) => without(row, ['keyHash', 'hubIds']),
}

/** The same with what the service keeps for itself: for its events. Visibility is checked by the routes, on the row. */
export const storedTracker: ResourceDeclaration = {
  ...trackerDeclaration,
  readOnly: { externalId, keyHash: optional(text({ max: 100 })) },
  hubField: undefined,
}

/** The body of a create takes the `externalId` too. */
export const createdTracker: ResourceDeclaration = {
  ...trackerDeclaration,
  fields: { ...trackerDeclaration.fields, externalId },
}

export const ingestKeyDeclaration: ResourceDeclaration = {
  noun: 'ingestKey',
  plural: INGEST_KEYS_TABLE,
  tag: 'Trackers',
  paths: { one: '/ingest-key', many: '/ingest-keys' },
  fields: { name: text({ max: 200 }), autoCreate: withDefault(bool(), false), hubId: optional(id()) },
  permissions: { view: 'edit/tracker', edit: 'edit/tracker' },
  version: 2,
  indexes: { equality: ['name', 'autoCreate', 'hubId'], range: ['name'], text: ['name'] },
  example: { name: 'Depot gateway', autoCreate: true },
  checks: async ({ services, caller, organizationId, values }) => {
    if (typeof values.hubId !== 'string') return
    await assertExists(services.tables, 'hubs', organizationId, values.hubId, '/hubId')
    if (caller !== undefined && caller.hubIds !== 'all' && !caller.hubIds.includes(values.hubId))
      throw invalid('/hubId', 'must be one of your hubs')
  },
  present: (row) => without(row, ['keyHash']),
}

/** @throws Failure invalid for a hub, team, user or vehicle that the organization does not have, or that the caller may not use. */
const checkTracker = async ({
  services: { tables },
  caller,
  organizationId,
  values,
  before,
}: WriteContext): Promise<void> => {
  const named = async (field: string, table: string): Promise<Row | undefined> => {
    const id = values[field]
    return typeof id === 'string' && id !== before?.[field]
      ? assertSeen(caller, await assertExists(tables, table, organizationId, id, `/${field}`), `/${field}`, table)
      : undefined
  }
  await named('hubId', 'hubs')
  const team = await named('teamId', 'teams')
  if (team !== undefined && values.hubId !== undefined && team.hubId !== values.hubId)
    throw invalid('/teamId', 'is a team of another hub')
  const user = await named('userId', 'users')
  await named('vehicleId', 'vehicles')
  if (caller === undefined || caller.hubIds === 'all' || (before !== undefined && before.hubId === values.hubId)) return
  if (values.hubId !== undefined) assertOwn(caller, [values.hubId as string], 'must be one of your hubs')
  else if (values.kind !== 'phone' || user !== undefined)
    assertOwn(caller, (user?.hubId ?? []) as string[], 'is required: you see only what belongs to your hubs')
}

/** What belongs to hubs that the caller does not have is not there for the caller. */
const assertSeen = (caller: UserCaller | undefined, row: Row, path: string, table: string): Row => {
  if (caller !== undefined && HUB_TABLES.includes(table) && !seesHubs(caller, hubsOf(row, 'hubId')))
    throw invalid(path, NAMES_NOTHING)
  return row
}

const HUB_TABLES: readonly string[] = ['teams', 'vehicles']

const assertOwn = (caller: UserCaller, hubIds: readonly string[], message: string): void => {
  if (!seesHubs(caller, hubIds)) throw invalid('/hubId', message)
}

const without = (row: Row, members: readonly string[]): Row =>
  Object.fromEntries(Object.entries(row).filter(([member]) => !members.includes(member)))
