import { FEATURE_COLLECTION } from '../../kit/http/geojson-schema.ts'
import type { Find } from '../../engines/table-store.ts'
import type { Clock } from '../../kernel/clock.ts'
import { boxParameter } from '../../kit/http/bbox-parameter.ts'
import { answered, dataAnswer } from '../../kit/http/page-members.ts'
import { metadataOf, userOf } from '../../kit/http/request-context.ts'
import { type Route, route } from '../../kit/http/route.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import { assertExists } from '../../kit/resource/references.ts'
import { GeofenceBoxes } from './boxes.ts'
import { geofence } from './declaration.ts'
import { GEOFENCE_EXAMPLE } from './geofence-body.ts'
import { GeofenceWriter } from './geofence-writer.ts'
import { geofenceGroup, IN_FORCE } from './group.ts'
import { importGeofences } from './import-geofences.ts'
import type { ShapeChecker } from './shape-checker.ts'
import { GEOFENCE_GROUPS } from './views.ts'

export interface GeofenceServices extends ResourceServices {
  clock: Clock
  shapes: ShapeChecker
}

const IMPORT_BYTES_MAX = 64 * 1024 * 1024
const HOUR_MS = 3_600_000

export const geofenceRoutes = (services: GeofenceServices): Route[] => {
  const boxes = new GeofenceBoxes(services.tables, services.clock)
  return [
    ...geofenceGroup.routes(services),
    ...geofence.routes(services, {
      writes: new GeofenceWriter(services),
      conditions: async ({ bbox, _id }, { organizationId }) => ({
        where: await inBox(boxes, organizationId, bbox as string, _id as string[]),
      }),
    }),
    { ...importRoute(services), rollout: 'geofences', settles: () => IN_FORCE, settleTimeoutMs: HOUR_MS },
  ]
}

/** Geofences within `bbox`, limited to those of `_id` if present. */
const inBox = async (
  boxes: GeofenceBoxes,
  organizationId: string,
  bbox: string | undefined,
  ids: readonly string[] | undefined,
): Promise<Find['where']> => {
  if (bbox === undefined) return undefined
  const there = await boxes.meeting(organizationId, boxParameter(bbox))
  if (there === 'all') return undefined
  const asked = ids?.map((id) => id.toLowerCase())
  return { _id: asked === undefined ? there : there.filter((one) => asked.includes(one)) }
}

const importRoute = (services: GeofenceServices): Route =>
  route<{ geofenceGroupId: string; nameProperty?: string }, Uint8Array>({
    method: 'POST',
    path: '/geofences/import',
    operationId: 'importGeofences',
    summary: 'Import geofences from GeoJSON',
    tag: geofence.declaration.tag,
    access: { permission: geofence.declaration.permissions.edit },
    query: IMPORT_QUERY,
    rawBody: { contentTypes: ['application/json', 'application/geo+json'] },
    // Documentation only: a worker reads the file, feature by feature.
    bodyShown: FEATURE_COLLECTION,
    bodyExample: {
      type: 'FeatureCollection',
      features: [{ type: 'Feature', properties: { name: 'Depot Mitte' }, geometry: GEOFENCE_EXAMPLE.geometry }],
    },
    bodyBytesMax: IMPORT_BYTES_MAX,
    answers: {
      200: dataAnswer('All good features are geofences now, and in force.', IMPORT_RESULT, {
        created: 2,
        rejected: [{ index: 1, code: 'invalid', message: '/geometry/coordinates/0 must be closed' }],
        rejectedTotal: 1,
      }),
    },
    handler: async (request) => {
      const { organizationId } = userOf(request)
      const { nameProperty = 'name' } = request.query
      const geofenceGroupId = request.query.geofenceGroupId.toLowerCase()
      await assertExists(services.tables, GEOFENCE_GROUPS, organizationId, geofenceGroupId, '/geofenceGroupId')
      const { body: bytes, now, ids, signal } = request
      const metadata = metadataOf(request)
      const { wrote, ...data } = await importGeofences(services, services.shapes, {
        bytes,
        nameProperty,
        organizationId,
        geofenceGroupId,
        now,
        ids,
        metadata,
        signal,
      })
      return { body: { data }, wrote }
    },
  })

const IMPORT_RESULT = answered('GeofenceImportResult', {
  created: { type: 'integer' },
  rejectedTotal: { type: 'integer', description: 'Of all features; those after the first 10,000 are counted only.' },
  rejected: {
    type: 'array',
    items: answered('RejectedFeature', {
      index: { type: 'integer', description: 'Of the feature in the file, from 0.' },
      code: { type: 'string', enum: ['invalid', 'quota'] },
      message: { type: 'string' },
    }),
  },
})

const IMPORT_QUERY = {
  type: 'object',
  properties: {
    geofenceGroupId: { type: 'string', format: 'uuid', description: 'The group that they all belong to.' },
    nameProperty: {
      type: 'string',
      minLength: 1,
      maxLength: 200,
      default: 'name',
      description: 'The property of a feature that names its geofence.',
    },
  },
  required: ['geofenceGroupId'],
  additionalProperties: false,
}
