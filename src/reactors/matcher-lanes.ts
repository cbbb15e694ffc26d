import type { FenceIndex } from '../geo/fence-index.ts'
import { makeShape, type Shape, type ShapeInput } from '../geo/shape.ts'
import { CHUNK_FENCES, type FenceChunk, Lane } from './matcher-fences.ts'

/** Positions that are prepared before others get their turn: some milliseconds. */
const POSITIONS_PER_SLICE = 4_000
/** Ids of sets that a lane's index may have given out before an edit begins anew. */
const SETS_MAX = 250_000

/** Makes shapes ready to be asked, in slices. */
export const prepare = async (inputs: ReadonlyMap<number, ShapeInput>): Promise<Map<number, Shape>> => {
  const shapes = new Map<number, Shape>()
  let positions = 0
  for (const [number, input] of inputs) {
    shapes.set(number, makeShape(input))
    positions += 20 + positionsOf(input)
    if (positions < POSITIONS_PER_SLICE) continue
    positions = 0
    await giveWay()
  }
  return shapes
}

const positionsOf = (input: ShapeInput): number => {
  if ('center' in input) return 1
  if ('geometry' in input) return input.geometry.coordinates.length
  return (input.type === 'Polygon' ? [input.coordinates] : input.coordinates).flat().reduce((sum, ring) => sum + ring.length, 0)
}

/** The lane after an edit; undefined where another edit has gone on from it, or does: an index grows only at its newest version. */
export const editedLane = async (before: Lane, remove: readonly number[], add: readonly { fence: number; shape: Shape }[]): Promise<Lane | undefined> => {
  if (!before.takeEdit()) return undefined
  const index = await edited(before.index, remove, add)
  if (index.setsTotal <= SETS_MAX) return new Lane(before.key, index, before.family)
  const compacted = index.compacted()
  index.release()
  return new Lane(before.key, compacted)
}

/** All fences of a lane, from the edit or from the version before it. */
export const fencesOfLane = (chunks: readonly FenceChunk[], { key, index }: Lane, shapes: ReadonlyMap<number, Shape>): { fence: number; shape: Shape }[] =>
  chunks.flatMap((chunk, place) =>
    chunk.flatMap((fence, i) => {
      const number = place * CHUNK_FENCES + i
      const shape = fence?.laneKey === key ? (shapes.get(number) ?? index.shape(number)) : undefined
      return shape === undefined ? [] : [{ fence: number, shape }]
    }),
  )

/** The index after an edit, in slices. */
export const edited = async (index: FenceIndex, remove: readonly number[], add: readonly { fence: number; shape: Shape }[]): Promise<FenceIndex> => {
  const slices = index.withSlices({ remove, add })
  for (;;) {
    const slice = slices.next()
    if (slice.done) return slice.value
    await giveWay()
  }
}

/** Lets others have their turn. */
export const giveWay = (): Promise<void> => new Promise((resume) => setImmediate(resume))
