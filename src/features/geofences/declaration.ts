import { BBOX_PARAMETER } from '../../kit/http/bbox-parameter.ts'
import { defineResource } from '../../kit/resource/resource.ts'
import { GEOFENCE_EXAMPLE, GEOFENCE_FIELDS } from './geofence-body.ts'
import { geofenceRows } from './geofence-rows.ts'
import { IN_FORCE } from './group.ts'
import { DETAIL_MEMBERS, GEOFENCES, withDetails } from './views.ts'

/** Room for a geometry of 20,000 positions as clients write it, and attributes. */
const BODY_BYTES_MAX = 2 * 1024 * 1024

const BBOX = {
  ...BBOX_PARAMETER,
  description: `Geofences whose bounding box meets this one: ${BBOX_PARAMETER.description}`,
}

/** An area that trackers enter and leave. Its writes are in geofence-writer.ts. */
export const geofence = defineResource(
  {
    noun: 'geofence',
    plural: GEOFENCES.name,
    tag: 'Geofences',
    fields: GEOFENCE_FIELDS,
    permissions: { view: 'view/geofence', edit: 'edit/geofence' },
    rollout: 'geofences',
    settles: () => IN_FORCE,
    table: { indexes: { equality: ['geofenceGroupId', 'isActive', 'name'], range: ['name'], text: ['name'] } },
    list: {
      // More than an index lookup: see `geofenceRoutes`.
      filters: { bbox: { schema: BBOX, where: () => ({}) } },
    },
    body: { bytesMax: BODY_BYTES_MAX },
    example: GEOFENCE_EXAMPLE,
    present: (rows, { services, caller, wants }) =>
      DETAIL_MEMBERS.some(wants) ? withDetails(services.tables, caller.organizationId, rows) : [...rows],
  },
  () => geofenceRows,
)
