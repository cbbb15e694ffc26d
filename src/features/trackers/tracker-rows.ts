import { decodeJson, type RecordedEvent } from '../../kernel/event.ts'
import { NO_ORGANIZATION, type Row } from '../../kernel/table.ts'
import { eventTypes, idOfStream, rowOf, type ResourceData } from '../../kit/commands/declared-event.ts'
import type { Rows } from '../../kit/consumers/projection.ts'
import { rowSource, tableOf, type RowSource } from '../../kit/resource/rows.ts'
import { ingestKeyDeclaration, trackerDeclaration } from './declaration.ts'
import {
  INGEST_KEY,
  INGEST_KEY_STREAMS,
  TRACKER,
  TRACKER_STREAMS,
  type IngestKeyData,
  type TrackerData,
} from './events.ts'
import { DEVICE_KEYS, TRACKERS_TABLE, type DeviceKeyRow, type TrackerRow } from './views.ts'

const USER = eventTypes('user')

/** Keeps trackers and device keys: a part of the projection `directory`, after the part that keeps users. */
export const trackerRows: RowSource = {
  tables: [tableOf(trackerDeclaration), DEVICE_KEYS],
  prefixes: [TRACKER_STREAMS, 'user-'],
  inputs: [...Object.values(TRACKER), ...Object.values(USER)],
  apply: async (event, rows) => {
    if (event.stream.startsWith(TRACKER_STREAMS)) await applyTracker(event, rows)
    else await applyUser(event, rows)
  },
}

const ingestKeyTable = rowSource(ingestKeyDeclaration)

/** Keeps ingest keys and their credentials. */
export const ingestKeyRows: RowSource = {
  ...ingestKeyTable,
  prefixes: [INGEST_KEY_STREAMS],
  apply: async (event, rows) => {
    await ingestKeyTable.apply(event, rows)
    const id = idOfStream(event.stream)
    const { organizationId, values } = decodeJson<IngestKeyData>(event.data)
    if (event.type === INGEST_KEY.deleted) return rows.delete(DEVICE_KEYS.name, NO_ORGANIZATION, id)
    const { keyHash, autoCreate, hubId } = values
    rows.put(DEVICE_KEYS.name, NO_ORGANIZATION, id, {
      kind: 'ingestKey',
      organizationId,
      keyHash,
      autoCreate,
      ...(hubId !== undefined && { hubId }),
    } satisfies DeviceKeyRow)
  },
}

const applyTracker = async (event: RecordedEvent, rows: Rows): Promise<void> => {
  const id = idOfStream(event.stream)
  const data = decodeJson<TrackerData>(event.data)
  const { organizationId, values } = data
  if (event.type === TRACKER.deleted) {
    rows.delete(TRACKERS_TABLE, organizationId, id)
    return rows.delete(DEVICE_KEYS.name, NO_ORGANIZATION, id)
  }
  const row = rowOf(id, event.revision + 1, { ...(data as unknown as ResourceData), updatedAt: data.at }) as TrackerRow
  rows.put(TRACKERS_TABLE, organizationId, id, { ...row, hubIds: await hubsOf(rows, row) })
  if (values.keyHash !== undefined)
    rows.put(DEVICE_KEYS.name, NO_ORGANIZATION, id, {
      kind: 'tracker',
      organizationId,
      keyHash: values.keyHash,
    } satisfies DeviceKeyRow)
  else if (event.type !== TRACKER.created) rows.delete(DEVICE_KEYS.name, NO_ORGANIZATION, id)
}

/** A user's phone belongs to all hubs of the user. */
const applyUser = async (event: RecordedEvent, rows: Rows): Promise<void> => {
  const { organizationId, values } = decodeJson<ResourceData>(event.data)
  const hubIds = event.type === USER.deleted ? [] : ((values.hubId ?? []) as string[])
  for (const { id, row } of await rows.findBy<TrackerRow>(
    TRACKERS_TABLE,
    organizationId,
    'userId',
    idOfStream(event.stream),
  )) {
    if (row.kind === 'phone') rows.put(TRACKERS_TABLE, organizationId, id, { ...row, hubIds: union(row.hubId, hubIds) })
  }
}

const hubsOf = async (rows: Rows, { organizationId, kind, userId, hubId }: TrackerRow): Promise<string[]> => {
  if (kind !== 'phone' || userId === undefined) return union(hubId, [])
  const user = await rows.get<Row & { hubId?: string[] }>('users', organizationId, userId)
  return union(hubId, user?.hubId ?? [])
}

const union = (hubId: string | undefined, others: readonly string[]): string[] => [
  ...new Set([...(hubId === undefined ? [] : [hubId]), ...others]),
]
