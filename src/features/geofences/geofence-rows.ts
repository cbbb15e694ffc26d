import {
  GEOFENCE_CHANGED,
  GEOFENCE_CREATED,
  GEOFENCE_DELETED,
  GEOFENCE_PREFIX,
  type GeofenceChanged,
  type GeofenceCreated,
  type GeofenceDeleted,
} from './events.ts'
import {
  BOX_DELETED_MS,
  boxRow,
  DETAIL_MEMBERS,
  detailsOf,
  GEOFENCE_BOXES,
  GEOFENCE_DETAILS,
  GEOFENCES,
  type GeofenceRow,
  shapeMembers,
} from './views.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import { idOfStream } from '../../kit/commands/declared-event.ts'
import type { Rows } from '../../kit/consumers/projection.ts'
import { dataOf, type RecordedEvent } from '../../kernel/event.ts'
import type { Row } from '../../kernel/table.ts'
import type { RowSource } from '../../kit/resource/rows.ts'

/** Large members are in a second table, bounding boxes in a third. */
export const geofenceRows: RowSource = {
  tables: [GEOFENCES, GEOFENCE_DETAILS, GEOFENCE_BOXES],
  prefixes: [GEOFENCE_PREFIX],
  inputs: [GEOFENCE_CREATED, GEOFENCE_CHANGED, GEOFENCE_DELETED],
  apply: async (event, rows) => {
    const id = idOfStream(event.stream)
    if (event.type === GEOFENCE_CREATED) create(event, id, rows)
    else if (event.type === GEOFENCE_CHANGED) await change(event, id, rows)
    else remove(event, id, rows)
  },
}

const create = (event: RecordedEvent, id: string, rows: Rows): void => {
  const { organizationId, at, name, geofenceGroupId, isActive, ...rest } = dataOf<GeofenceCreated>(event)
  const createdAt = formatTime(at)
  const row: GeofenceRow = {
    _id: id,
    organizationId,
    version: event.revision + 1,
    createdAt,
    updatedAt: createdAt,
    name,
    geofenceGroupId,
    isActive,
  }
  rows.put(GEOFENCES.name, organizationId, id, row)
  rows.put(GEOFENCE_DETAILS.name, organizationId, id, detailsOf(rest))
  rows.put(GEOFENCE_BOXES.name, organizationId, id, boxRow(rest.shape, event.position))
}

const change = async (event: RecordedEvent, id: string, rows: Rows): Promise<void> => {
  const { organizationId, at, changes } = dataOf<GeofenceChanged>(event)
  const row = await rows.get<GeofenceRow>(GEOFENCES.name, organizationId, id)
  if (row === undefined) return
  const { shape, attributes, ...rest } = changes
  rows.put(GEOFENCES.name, organizationId, id, {
    ...row,
    ...rest,
    version: event.revision + 1,
    updatedAt: formatTime(at),
  })
  if (shape === undefined && attributes === undefined) return
  const details: Row = { ...(await rows.get(GEOFENCE_DETAILS.name, organizationId, id)) }
  if (shape !== undefined) {
    for (const member of DETAIL_MEMBERS) if (member !== 'attributes') delete details[member]
    Object.assign(details, shapeMembers(shape))
    rows.put(GEOFENCE_BOXES.name, organizationId, id, boxRow(shape, event.position))
  }
  if (attributes === null) delete details.attributes
  else if (attributes !== undefined) details.attributes = attributes
  rows.put(GEOFENCE_DETAILS.name, organizationId, id, details)
}

const remove = (event: RecordedEvent, id: string, rows: Rows): void => {
  const { organizationId, at } = dataOf<GeofenceDeleted>(event)
  rows.delete(GEOFENCES.name, organizationId, id)
  rows.delete(GEOFENCE_DETAILS.name, organizationId, id)
  rows.put(GEOFENCE_BOXES.name, organizationId, id, { position: event.position }, at + BOX_DELETED_MS)
}
