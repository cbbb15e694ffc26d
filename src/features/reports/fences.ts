import RBush from 'rbush'
import { pagesOf, type TableStore } from '../../engines/table-store.ts'
import { type Box, plainBoxes } from '../../geo/box.ts'
import { shapeContains } from '../../geo/contains.ts'
import { toE7 } from '../../geo/coordinates.ts'
import { makeShape, positionsOf, type Shape, shapeBox, type ShapeInput } from '../../geo/shape.ts'
import { breathe } from '../../kernel/breath.ts'
import { invalid } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { GEOFENCE_DETAILS, GEOFENCES, type GeofenceRow } from '../geofences/views.ts'

/** Ids of the geofences in force that contain a place, in degrees. */
export type PlacesOf = (lng: number, lat: number) => Promise<string[]>

/** Finds geofences whose boxes meet a box. */
export interface Boxes {
  meeting(organizationId: string, box: Box): Promise<'all' | string[]>
}

type Tables = Pick<TableStore, 'find' | 'getMany'>

/** Shapes cached per report. */
const SHAPES_MAX = 200
const PAGE_ROWS = 500
const LIMITS_MAX = 10_000
const POSITIONS_MAX = 1_000_000

/** Finds the geofences of places; the most recent shapes are cached. */
export const placesOf = (tables: Tables, boxes: Boxes, organizationId: string): PlacesOf => {
  const shapes = new Map<string, Shape | undefined>()
  return async (lng, lat) => {
    const [x, y] = [toE7(lng), toE7(lat)]
    const there = await boxes.meeting(organizationId, { west: x, east: x, south: y, north: y })
    const ids = there === 'all' ? await allIds(tables, organizationId) : there
    const lacking = ids.filter((id) => !shapes.has(id))
    for (const [id, shape] of await shapesOf(tables, organizationId, lacking)) shapes.set(id, shape)
    const inside = ids.filter((id) => {
      const shape = shapes.get(id)
      return shape !== undefined && shapeContains(shape, x, y)
    })
    for (const id of shapes.keys()) if (shapes.size > SHAPES_MAX) shapes.delete(id)
    return inside.sort()
  }
}

const allIds = async (tables: Tables, organizationId: string): Promise<string[]> => {
  const ids: string[] = []
  for await (const page of pagesOf(tables, GEOFENCES.name, organizationId, {
    where: { isActive: true },
    limit: PAGE_ROWS,
  }))
    ids.push(...page.map(({ id }) => id))
  return ids
}

/** Undefined for geofences that are not in force. */
const shapesOf = async (
  tables: Tables,
  organizationId: string,
  ids: readonly string[],
): Promise<[string, Shape | undefined][]> => {
  if (ids.length === 0) return []
  const rows = await tables.getMany<GeofenceRow>(GEOFENCES.name, organizationId, ids)
  const details = await tables.getMany(GEOFENCE_DETAILS.name, organizationId, ids)
  return ids.map((id, i) => {
    const detail = details[i]
    return [id, rows[i]?.isActive === true && detail !== undefined ? makeShape(inputOf(detail)) : undefined]
  })
}

const inputOf = (details: object): ShapeInput => {
  const { geometry, width } = details as JsonObject
  const isCorridor = width !== undefined
  return (geometry === undefined || isCorridor ? details : geometry) as unknown as ShapeInput
}

export interface Limit {
  /** m/s. */
  limit: number
  geofenceId?: string
}

/** Speed limit at a place in 1e-7 degree; undefined if there is none. */
export type LimitAt = (lngE7: number, latE7: number) => Limit | undefined

interface Item {
  minX: number
  minY: number
  maxX: number
  maxY: number
  shape: Shape
  limit: Required<Limit>
}

/** Limits of a group's geofences, in km/h; the lowest wins. @throws Failure invalid for a group with too many. */
export const limitsOf = async (
  tables: Tables,
  organizationId: string,
  groupIds: readonly string[],
): Promise<LimitAt> => {
  const items: Item[] = []
  let positions = 0
  const question = { where: { geofenceGroupId: groupIds, isActive: true }, limit: PAGE_ROWS }
  for await (const page of pagesOf(tables, GEOFENCES.name, organizationId, question)) {
    const ids = page.map(({ id }) => id)
    for (const [i, details] of (await tables.getMany(GEOFENCE_DETAILS.name, organizationId, ids)).entries()) {
      await breathe()
      const speedLimit = (details?.attributes as JsonObject | undefined)?.speedLimit
      if (details === undefined || typeof speedLimit !== 'number' || speedLimit <= 0) continue
      const input = inputOf(details)
      positions += positionsOf(input)
      items.push(...itemsOf(input, { geofenceId: ids[i], limit: speedLimit / 3.6 }))
    }
    if (items.length > LIMITS_MAX || positions > POSITIONS_MAX)
      throw invalid('/geofenceGroupId', 'has too many geofences with a speed limit for one report')
  }
  const tree = new RBush<Item>().load(items)
  return (x, y) => {
    let lowest: Required<Limit> | undefined
    for (const { shape, limit } of tree.search({ minX: x, maxX: x, minY: y, maxY: y }))
      if ((lowest === undefined || isLower(limit, lowest)) && shapeContains(shape, x, y)) lowest = limit
    return lowest
  }
}

const isLower = (one: Required<Limit>, other: Required<Limit>): boolean =>
  one.limit < other.limit || (one.limit === other.limit && one.geofenceId < other.geofenceId)

const itemsOf = (input: ShapeInput, limit: Required<Limit>): Item[] => {
  const shape = makeShape(input)
  const plain = plainBoxes(shapeBox(input))
  const items: Item[] = []
  for (let at = 0; at < plain.length; at += 4)
    items.push({ minX: plain[at], minY: plain[at + 1], maxX: plain[at + 2], maxY: plain[at + 3], shape, limit })
  return items
}
