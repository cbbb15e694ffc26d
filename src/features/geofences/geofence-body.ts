import { invalid } from '../../kernel/errors.ts'
import type { JsonObject, JsonSchema } from '../../kernel/json.ts'
import { anyObject, bool, type Fields, newName, optional, reference, withDefault } from '../../kernel/schema.ts'
import type { ShapeInput } from '../../geo/shape.ts'
import { mergePatch } from '../../kit/resource/merge-patch.ts'
import type { GeofenceValues } from './events.ts'
import { GEOFENCE_GROUPS, shapeMembers } from './views.ts'

export const NAME_MAX = 200
const ATTRIBUTES_BYTES_MAX = 64 * 1024
/** Nesting depth of arrays and objects: attributes are for names and numbers, geometries have four. */
const DEPTH_MAX = 32

/** Deeper levels of a geometry are checked by the worker, which has a deadline. */
const GEOMETRY: JsonSchema = {
  type: 'object',
  description: 'Polygon, MultiPolygon, or a LineString together with `width` (RFC 7946, longitude first).',
  properties: {
    type: { type: 'string', enum: ['Polygon', 'MultiPolygon', 'LineString'] },
    coordinates: { type: 'array' },
    bbox: { type: 'array', description: 'Accepted and ignored: it follows from the coordinates.' },
  },
  required: ['type', 'coordinates'],
  additionalProperties: false,
}

const CENTER: JsonSchema = {
  type: 'object',
  properties: { lat: { type: 'number' }, lng: { type: 'number' } },
  required: ['lat', 'lng'],
  additionalProperties: false,
  description: 'Of a circle, together with `radius`.',
}

export const GEOFENCE_FIELDS: Fields = {
  name: newName({ max: NAME_MAX }),
  geofenceGroupId: reference(GEOFENCE_GROUPS),
  geometry: optional({ schema: GEOMETRY }),
  center: optional({ schema: CENTER }),
  radius: optional({
    schema: { type: 'number', description: 'Metres, over 0 and at most 20,015,115: half way round the earth.' },
  }),
  width: optional({
    schema: { type: 'number', description: 'Of a corridor, metres over all: over 0 and at most 1,000,000.' },
  }),
  isActive: withDefault(bool(), true),
  attributes: optional({ schema: { ...anyObject().schema, description: 'Any content, up to 64 KiB as JSON.' } }),
}

const DEGREES_EXAMPLE = {
  type: 'Polygon',
  coordinates: [
    [
      [13.37, 52.5],
      [13.42, 52.5],
      [13.42, 52.53],
      [13.37, 52.53],
      [13.37, 52.5],
    ],
  ],
}

export const GEOFENCE_EXAMPLE: JsonObject = {
  name: 'Depot Mitte',
  geofenceGroupId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a',
  geometry: DEGREES_EXAMPLE,
  isActive: true,
  attributes: { gate: 4 },
}

/** Values of a whole body, the shape as sent. @throws Failure invalid */
export const valuesOf = (body: JsonObject): GeofenceValues => {
  assertShallow('', body)
  const values: GeofenceValues = {
    name: body.name as string,
    geofenceGroupId: (body.geofenceGroupId as string).toLowerCase(),
    isActive: (body.isActive as boolean | undefined) ?? true,
    shape: shapeOf(body),
  }
  if (body.attributes === undefined) return values
  assertAttributes(body.attributes as JsonObject)
  return { ...values, attributes: body.attributes as JsonObject }
}

/** The body of a geofence after a merge patch. A new kind of shape drops the members of the old one. */
export const patched = (before: GeofenceValues, patch: JsonObject): JsonObject => {
  const { shape, attributes, ...rest } = before
  const members = shapeMembers(shape)
  const isCircle = (patch.center ?? patch.radius ?? null) !== null
  const isDrawn = (patch.geometry ?? null) !== null
  const kept = { ...members }
  if (isDrawn && 'center' in members) for (const name of ['center', 'radius']) delete kept[name]
  if (isCircle && 'geometry' in members) for (const name of ['geometry', 'width']) delete kept[name]
  const kind = (patch.geometry as JsonObject | undefined)?.type
  if (isDrawn && kind !== undefined && kind !== 'LineString') delete kept.width
  assertShallow('', patch)
  return mergePatch(
    { ...rest, ...kept, ...(attributes === undefined ? {} : { attributes }) } as unknown as JsonObject,
    patch,
  )
}

/** The shape in a body; only its outline is checked. @throws Failure invalid */
export const shapeOf = ({ geometry, center, radius, width }: JsonObject): ShapeInput => {
  if (center !== undefined || radius !== undefined) {
    if (geometry !== undefined) throw invalid('/geometry', 'must not be sent together with a circle')
    if (width !== undefined) throw invalid('/width', 'belongs to a LineString')
    if (center === undefined) throw invalid('/center', 'is required together with radius')
    if (radius === undefined) throw invalid('/radius', 'is required together with center')
    return { center, radius } as unknown as ShapeInput
  }
  if (geometry === undefined) throw invalid('/geometry', 'is required, or center and radius')
  const { type, coordinates } = geometry as JsonObject
  if (type === 'LineString') {
    if (width === undefined) throw invalid('/width', 'is required together with a LineString')
    return { geometry: { type, coordinates }, width } as unknown as ShapeInput
  }
  if (width !== undefined) throw invalid('/width', 'belongs to a LineString')
  return { type, coordinates } as unknown as ShapeInput
}

/** @throws Failure invalid if the attributes are too large or too deep. */
export const assertAttributes = (attributes: JsonObject): void => {
  assertShallow('/attributes', attributes)
  if (Buffer.byteLength(JSON.stringify(attributes)) > ATTRIBUTES_BYTES_MAX)
    throw invalid('/attributes', 'must not be over 64 KiB as JSON')
}

/** @throws Failure invalid for a value nested too deeply for recursive functions. */
export const assertShallow = (path: string, value: unknown): void => {
  let level: object[] = isNested(value) ? [value] : []
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > DEPTH_MAX) throw invalid(path, `must not be nested deeper than ${DEPTH_MAX}`)
    const below: object[] = []
    for (const parent of level) for (const member of Object.values(parent)) if (isNested(member)) below.push(member)
    level = below
  }
}

const isNested = (value: unknown): value is object => typeof value === 'object' && value !== null
