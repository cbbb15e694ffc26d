import { decodeJson, type RecordedEvent } from '../../kernel/event.ts'
import { NO_ORGANIZATION } from '../../kernel/table.ts'
import { eventTypes, idOfStream, type ResourceData } from '../../kit/commands/declared-event.ts'
import type { Rows } from '../../kit/consumers/projection.ts'
import type { RowSource } from '../../kit/resource/rows.ts'
import { INGEST_KEY, TRACKER, TRACKER_STREAMS, type IngestKeyData, type TrackerData } from './events.ts'
import {
  DEVICE_KEYS,
  GATEWAY_KEYS,
  TRACKER_USERS,
  isNamedAfterUser,
  TRACKERS_TABLE,
  USER_PHONES,
  type DeviceKeyRow,
  type TrackerRow,
  type TrackerUserRow,
  type UserPhoneRow,
} from './views.ts'

const USER = eventTypes('user')

/** Trackers with the hubs whose users see them, and their keys. Hubs of users are stored too, for their phones. */
export const trackerRows = (plain: RowSource): RowSource => ({
  tables: [...plain.tables, TRACKER_USERS, USER_PHONES, DEVICE_KEYS],
  prefixes: [...plain.prefixes, 'user-'],
  inputs: [...plain.inputs, ...Object.values(USER)],
  apply: async (event, rows) => {
    if (!event.stream.startsWith(TRACKER_STREAMS)) return applyUser(event, rows)
    await plain.apply(event, rows)
    const id = idOfStream(event.stream)
    const { organizationId, values } = decodeJson<TrackerData>(event.data)
    await keepPhone(rows, event.type, organizationId, id, values)
    if (event.type === TRACKER.deleted) return rows.delete(DEVICE_KEYS.name, NO_ORGANIZATION, id)
    const row = await rows.get<TrackerRow>(TRACKERS_TABLE, organizationId, id)
    if (row !== undefined) {
      const { userId } = values
      const user =
        userId === undefined ? undefined : await rows.get<TrackerUserRow>(TRACKER_USERS.name, organizationId, userId)
      rows.put(TRACKERS_TABLE, organizationId, id, withUser(row, user))
    }
    if (values.keyHash !== undefined)
      rows.put(DEVICE_KEYS.name, NO_ORGANIZATION, id, {
        kind: 'tracker',
        organizationId,
        keyHash: values.keyHash,
      } satisfies DeviceKeyRow)
    else if (event.type !== TRACKER.created) rows.delete(DEVICE_KEYS.name, NO_ORGANIZATION, id)
  },
})

/** The phone's owner is known until it is erased: the deletion event has no values. */
const keepPhone = async (
  rows: Rows,
  type: string,
  organizationId: string,
  trackerId: string,
  { kind, userId }: Partial<TrackerData['values']>,
): Promise<void> => {
  const { name } = USER_PHONES
  if (type === TRACKER.deleted && kind === undefined) {
    for (const { id } of await rows.findBy(name, organizationId, 'trackerId', trackerId))
      rows.delete(name, organizationId, id)
  } else if (kind === 'phone' && userId !== undefined)
    rows.put(name, organizationId, `${userId}.${trackerId}`, { userId, trackerId } satisfies UserPhoneRow)
}

export const ingestKeyRows = (plain: RowSource): RowSource => ({
  ...plain,
  tables: [...plain.tables, GATEWAY_KEYS],
  apply: async (event, rows) => {
    await plain.apply(event, rows)
    const id = idOfStream(event.stream)
    const { organizationId, values } = decodeJson<IngestKeyData>(event.data)
    if (event.type === INGEST_KEY.deleted) return rows.delete(GATEWAY_KEYS.name, NO_ORGANIZATION, id)
    const { keyHash, autoCreate, hubId } = values
    rows.put(GATEWAY_KEYS.name, NO_ORGANIZATION, id, {
      kind: 'ingestKey',
      organizationId,
      keyHash,
      autoCreate,
      ...(hubId !== undefined && { hubId }),
    } satisfies DeviceKeyRow)
  },
})

/** A tracker with values derived from its user: a phone has only the user's hubs, and the user's name until renamed. */
const withUser = (row: TrackerRow, user: TrackerUserRow | undefined): TrackerRow => {
  const { userHubIds: _before, ...own } = row
  const { kind, userId, hubId } = row
  const isPhone = kind === 'phone' && userId !== undefined
  return {
    ...own,
    hubIds: isPhone ? (user?.hubIds ?? []) : hubId === undefined ? [] : [hubId],
    ...(user !== undefined && { userHubIds: user.hubIds }),
    ...(user?.name !== undefined && isNamedAfterUser(row) && { name: user.name }),
  } as TrackerRow
}

const applyUser = async (event: RecordedEvent, rows: Rows): Promise<void> => {
  const { organizationId, values } = decodeJson<ResourceData>(event.data)
  const userId = idOfStream(event.stream)
  const isGone = event.type === USER.deleted
  const user: TrackerUserRow = isGone
    ? { hubIds: [] }
    : { hubIds: (values.hubId ?? []) as string[], ...(typeof values.name === 'string' && { name: values.name }) }
  if (isGone) rows.delete(TRACKER_USERS.name, organizationId, userId)
  else rows.put(TRACKER_USERS.name, organizationId, userId, user)
  for (const { id, row } of await rows.findBy<TrackerRow>(TRACKERS_TABLE, organizationId, 'userId', userId))
    rows.put(TRACKERS_TABLE, organizationId, id, withUser(row, user))
}
