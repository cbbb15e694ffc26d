import { invalid } from '../../kernel/errors.ts'
import { bool, key, list, newName, oneOf, optional, reference, text, withDefault } from '../../kernel/schema.ts'
import { seesHubs, type UserCaller } from '../../kernel/caller.ts'
import type { JsonObject } from '../../kernel/json.ts'
import type { Row } from '../../kernel/table.ts'
import { idFrom, isDerived } from '../../kit/commands/ids.ts'
import type { ToldOnce, WriteContext } from '../../kit/resource/declaration.ts'
import { defineResource } from '../../kit/resource/resource.ts'
import { makeDeviceKey } from './device-key.ts'
import { ingestKeyRows, trackerRows } from './tracker-rows.ts'
import { EXTERNAL_ID_LENGTH_MAX, INGEST_KEYS_TABLE, TRACKERS_TABLE } from './views.ts'

/** Id of the tracker with that name in an organization: it never changes. */
export const trackerIdOf = (organizationId: string, externalId: string): string =>
  idFrom('tracker', organizationId, externalId)

export const phoneTrackerIdOf = (userId: string): string => idFrom('phone', userId)

/** A credential that is shown once, and its stored hash. */
const keyAs = (member: string): ToldOnce => ({
  member,
  example: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a.<secret>',
  make: (id, { keyring }, seed) => {
    const { key, keyHash } = makeDeviceKey(keyring, id, seed)
    return { told: key, kept: { keyHash } }
  },
})

const keyHash = optional(text({ max: 100 }))

/** Source of points: a device with its own key, a vehicle's tracker of a fleet, or a user's phone. */
export const tracker = defineResource(
  {
    noun: 'tracker',
    plural: TRACKERS_TABLE,
    tag: 'Trackers',
    fields: {
      name: newName({ max: 200 }),
      kind: withDefault(oneOf('phone', 'vehicle', 'device'), 'device'),
      userId: optional(reference('users')),
      vehicleId: optional(reference('vehicles')),
      hubId: optional(reference('hubs')),
      teamId: optional(reference('teams')),
      externalId: optional(key({ max: EXTERNAL_ID_LENGTH_MAX })),
      tags: optional(list(text({ max: 50 }), { max: 50, unique: true })),
    },
    fixed: ['externalId'],
    idFrom: { field: 'externalId', idOf: trackerIdOf },
    readOnly: {
      lastSeenAt: optional({
        schema: { type: 'string', format: 'date-time', description: 'The earlier of the last point and its logging.' },
      }),
      status: optional(oneOf('online', 'stale', 'offline')),
      rejected: optional({
        schema: {
          type: 'object',
          description: 'Points that its device sent and that can never be stored; absent where there are none.',
          additionalProperties: false,
          required: ['count', 'lastAt', 'lastCode'],
          properties: {
            count: { type: 'integer' },
            lastAt: { type: 'string', format: 'date-time' },
            lastCode: { type: 'string', description: 'Why the last of them was refused.' },
          },
        },
      }),
    },
    list: {
      computed: ['status'],
      filters: {
        hubId: {
          schema: { type: 'string', format: 'uuid', description: 'Phones of users who have the hub belong to it too.' },
          several: true,
          where: (hubIds) => ({ hubIds: hubIds as string[] }),
        },
      },
    },
    internal: { keyHash, isNamedAfterUser: optional(bool()) },
    secrets: {
      told: {
        ...keyAs('deviceKey'),
        rotation: {
          path: 'rotate-key',
          operationId: 'rotateTrackerKey',
          summary: "Replace a tracker's device key; the one before ends at once",
        },
      },
    },
    permissions: { view: 'view/tracker', edit: 'edit/tracker' },
    hubField: 'hubIds',
    table: {
      version: 5,
      indexes: {
        equality: ['name', 'kind', 'userId', 'vehicleId', 'externalId', 'hubId', 'teamId', 'ownerId', 'tags'],
        range: ['name'],
        text: ['name', 'externalId', 'tags'],
      },
      derived: ({ kind, userId }): JsonObject =>
        kind === 'phone' && typeof userId === 'string' ? { ownerId: userId } : {},
    },
    example: {
      name: 'Bus 12',
      kind: 'vehicle',
      hubId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6c',
      externalId: 'bus-12',
      tags: ['night'],
    },
    rules: { checks: (write) => checkTracker(write) },
  },
  trackerRows,
)

/** Key with which a gateway sends the points of a fleet. It is created, listed and deleted, never changed. */
export const ingestKey = defineResource(
  {
    noun: 'ingestKey',
    plural: INGEST_KEYS_TABLE,
    tag: 'Trackers',
    paths: { one: '/ingest-key', many: '/ingest-keys' },
    verbs: ['list', 'create', 'delete'],
    fields: {
      name: newName({ max: 200 }),
      autoCreate: withDefault(bool(), false),
      hubId: optional(reference('hubs')),
    },
    internal: { keyHash },
    secrets: { told: keyAs('key') },
    permissions: { view: 'edit/tracker', edit: 'edit/tracker' },
    hubField: 'hubId',
    table: { version: 2, indexes: { equality: ['name', 'autoCreate', 'hubId'], range: ['name'], text: ['name'] } },
    example: { name: 'Depot gateway', autoCreate: true },
  },
  ingestKeyRows,
)

/** @throws Failure invalid for a derived id, a team of another hub, another phone, or a hub that the caller lacks. */
const checkTracker = async (write: WriteContext): Promise<void> => {
  const { services, caller, organizationId, id, values, before } = write
  const { tables } = services
  if (caller === undefined) return
  const { hubId, teamId, userId, kind } = values
  // With an id derived from another user, it would be taken for that user's phone.
  if (before === undefined && values.externalId === undefined && isDerived(id))
    throw invalid('/_id', 'must not be a UUID of version 5: the service makes those')
  const isPhone = kind === 'phone' || before?.kind === 'phone'
  for (const field of before !== undefined && isPhone ? ['kind', 'userId', 'hubId'] : [])
    if (values[field] !== before?.[field]) throw invalid(`/${field}`, 'of a phone cannot be changed')
  const isMoved = teamId !== before?.teamId || hubId !== before?.hubId
  if (teamId !== undefined && hubId !== undefined && isMoved) {
    const team = await tables.get('teams', organizationId, teamId as string)
    if (team?.hubId !== hubId) throw invalid('/teamId', 'is a team of another hub')
  }
  if (before !== undefined && before.hubId === undefined) return
  if (kind === 'phone' && userId !== undefined) await checkPhoneOfUser(write, caller)
  else if (caller.hubIds !== 'all' && hubId === undefined) throw invalid('/hubId', HUB_NEEDED)
}

/** A user's phone belongs to the hubs of its user, whatever hub is written. */
const checkPhoneOfUser = async (
  { services: { tables }, organizationId, values, before }: WriteContext,
  caller: UserCaller,
): Promise<void> => {
  if (before !== undefined) return
  const user = await tables.get<Row & { hubId: string[] }>('users', organizationId, values.userId as string)
  const hubIds = user?.hubId ?? []
  if (values.hubId !== undefined && !hubIds.includes(values.hubId as string))
    throw invalid('/hubId', 'is not a hub of the user whose phone it is')
  if (seesHubs(caller, hubIds)) return
  throw values.hubId === undefined ? invalid('/hubId', HUB_NEEDED) : invalid('/userId', 'is a user of other hubs')
}

const HUB_NEEDED = 'is required: you see only what belongs to your hubs'
