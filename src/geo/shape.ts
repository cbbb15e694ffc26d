import type { LineString, MultiPolygon, Polygon as PolygonGeometry, Position } from 'geojson'
import { type Box, boxAround } from './box.ts'
import { fromE7, toE7 } from './coordinates.ts'
import { makePolygon, type Polygon, type Ring } from './polygon.ts'
import { makeReach, type Reach } from './reach.ts'
import { makeSlabs, type Slabs } from './slabs.ts'

export type CircleInput = { center: { lat: number; lng: number }; radius: number }
export type CorridorInput = { geometry: LineString; width: number }

/** A fence as a client states it: degrees, metres, GeoJSON with longitude first. */
export type ShapeInput = PolygonGeometry | MultiPolygon | CircleInput | CorridorInput

export type Part = Polygon | Reach

/** A fence as it is decided on: the union of its parts, coordinates in E7. */
export type Shape = {
  readonly parts: readonly Part[]
  /** Parts by longitude, where there are many; made on first use. */
  slabs: Slabs | undefined
}

/** Segments of a corridor in one part, so that a long one is found by its stretches. */
const SEGMENTS_PER_PART = 8

/** For an input that `validateShape` accepts. */
export const makeShape = (input: ShapeInput): Shape => ({ parts: partsOf(input), slabs: undefined })

/** The input with every position rounded to the stored 1e-7 degree; further numbers of a position stay. */
export const keptShape = <T extends ShapeInput>(input: T): T => {
  if ('center' in input) return { ...input, center: { lat: kept(input.center.lat), lng: kept(input.center.lng) } }
  if ('geometry' in input)
    return { ...input, geometry: { ...input.geometry, coordinates: input.geometry.coordinates.map(keptPosition) } }
  if (input.type === 'Polygon')
    return { ...input, coordinates: input.coordinates.map((ring) => ring.map(keptPosition)) }
  return {
    ...input,
    coordinates: (input as MultiPolygon).coordinates.map((rings) => rings.map((ring) => ring.map(keptPosition))),
  }
}

/** Positions to longitude and latitude in turn, E7. */
export const ringOf = (positions: readonly Position[]): Ring => {
  const ring = new Array<number>(positions.length * 2)
  for (let i = 0; i < positions.length; i++) {
    ring[i * 2] = toE7(positions[i]![0]!)
    ring[i * 2 + 1] = toE7(positions[i]![1]!)
  }
  return ring
}

/** Number of positions that define its place; the centre of a circle is one. */
export const positionsOf = (input: ShapeInput): number => {
  if ('center' in input) return 1
  if ('geometry' in input) return input.geometry.coordinates.length
  const polygons = input.type === 'Polygon' ? [input.coordinates] : input.coordinates
  return polygons.flat().reduce((sum, ring) => sum + ring.length, 0)
}

export const shapeBox = (input: ShapeInput): Box => boxAround(makeShape(input).parts.flatMap(({ boxes }) => [...boxes]))

/** The slabs of a shape's parts, by their boxes. */
export const partSlabs = (shape: Shape): Slabs => (shape.slabs ??= makePartSlabs(shape.parts))

const partsOf = (input: ShapeInput): Part[] => {
  if ('center' in input) return [makeReach([toE7(input.center.lng), toE7(input.center.lat)], input.radius)]
  if ('geometry' in input) return corridorParts(ringOf(input.geometry.coordinates), input.width / 2)
  const polygons = input.type === 'Polygon' ? [input.coordinates] : input.coordinates
  return polygons.map((rings) => makePolygon(rings.map(ringOf)))
}

const corridorParts = (path: Ring, meters: number): Reach[] => {
  const parts: Reach[] = []
  for (let i = 0; i < path.length / 2 - 1; i += SEGMENTS_PER_PART) {
    parts.push(makeReach(path.slice(i * 2, (i + SEGMENTS_PER_PART + 1) * 2), meters))
  }
  return parts
}

const makePartSlabs = (parts: readonly Part[]): Slabs => {
  const boxes = parts.flatMap((part, id) =>
    part.boxes.length === 4
      ? [[id, part.boxes, 0] as const]
      : [[id, part.boxes, 0] as const, [id, part.boxes, 4] as const],
  )
  return makeSlabs(
    Int32Array.from(boxes, ([id]) => id),
    Float64Array.from(boxes, ([, box, at]) => box[at]!),
    Float64Array.from(boxes, ([, box, at]) => box[at + 2]!),
  )
}

const kept = (degrees: number): number => fromE7(toE7(degrees))

const keptPosition = ([lng, lat, ...rest]: Position): Position => [kept(lng!), kept(lat!), ...rest]
