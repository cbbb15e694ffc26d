import type { TableStore } from '../../engines/table-store.ts'
import type { Box } from '../../geo/box.ts'
import { shapeBox, type ShapeInput } from '../../geo/shape.ts'
import type { JsonObject } from '../../kernel/json.ts'
import type { Row, TableDeclaration } from '../../kernel/table.ts'
import type { GeofenceValues } from './events.ts'

/** Rows of geofences without large members, so that lists are quick. */
export const GEOFENCES: TableDeclaration = {
  name: 'geofences',
  version: 1,
  equality: ['_id', 'geofenceGroupId', 'isActive', 'name'],
  range: ['name', 'createdAt', 'updatedAt'],
  text: ['name'],
}

/** Quota name of an organization's positions: the sum over its geofences. */
export const POSITIONS = 'geofencePositions'

/** Geometry and attributes of each geofence. */
export const GEOFENCE_DETAILS: TableDeclaration = { name: 'geofence_details', version: 1 }

/**
 * Bounding box of each geofence, for views of a part of the map: API processes keep them in memory and follow changes
 * by `position`. A deleted one leaves a row without a box until all of them have noticed.
 */
export const GEOFENCE_BOXES: TableDeclaration = { name: 'geofence_boxes', version: 1, range: ['position'] }
export const BOX_DELETED_MS = 24 * 3_600_000

export interface GeofenceBoxRow extends Row {
  /** Position of the event that last changed it. */
  position: number
  /** Absent: deleted. */
  box?: Box
}

export const boxRow = (shape: ShapeInput, position: number): GeofenceBoxRow => ({ position, box: shapeBox(shape) })

export const GEOFENCE_GROUPS = 'geofenceGroups'

export interface GeofenceRow extends Row {
  _id: string
  organizationId: string
  version: number
  createdAt: string
  updatedAt: string
  name: string
  geofenceGroupId: string
  isActive: boolean
}

/** Members of a geofence that rows of `geofences` lack. */
export const DETAIL_MEMBERS = ['geometry', 'center', 'radius', 'width', 'attributes'] as const

export const shapeMembers = (shape: ShapeInput): JsonObject =>
  ('type' in shape ? { geometry: shape } : shape) as unknown as JsonObject

export const shapeOfDetails = ({ geometry, center, radius, width }: Row): ShapeInput => {
  if (center !== undefined) return { center, radius } as unknown as ShapeInput
  return (width === undefined ? geometry : { geometry, width }) as unknown as ShapeInput
}

export const detailsOf = ({ shape, attributes }: Pick<GeofenceValues, 'shape' | 'attributes'>): JsonObject => ({
  ...shapeMembers(shape),
  ...(attributes === undefined ? {} : { attributes }),
})

/** Adds details to rows; rows that have them already, or were deleted meanwhile, stay as they are. */
export const withDetails = async (
  tables: Pick<TableStore, 'getMany'>,
  organizationId: string,
  rows: readonly Row[],
): Promise<Row[]> => {
  const details = await tables.getMany(
    GEOFENCE_DETAILS.name,
    organizationId,
    rows.map(({ _id }) => _id as string),
  )
  return rows.map((row, i) => ('geometry' in row || 'center' in row ? row : { ...row, ...details[i] }))
}
