import type { FenceIndex } from '../../geo/fence-index.ts'
import { makeShape, type Shape, type ShapeInput } from '../../geo/shape.ts'
import { breathe } from '../../kernel/breath.ts'
import { CHUNK_FENCES, type FenceChunk, Lane } from './fences.ts'

/** Ids of sets that a lane's index may have given out before an edit begins anew. */
const SETS_MAX = 250_000

/** Makes shapes ready to be asked, in slices. */
export const prepare = async (inputs: ReadonlyMap<number, ShapeInput>): Promise<Map<number, Shape>> => {
  const shapes = new Map<number, Shape>()
  for (const [number, input] of inputs) {
    await breathe()
    shapes.set(number, makeShape(input))
  }
  return shapes
}

/** The lane after an edit; undefined where another edit has gone on from it, or does: an index grows only at its newest version. */
export const editedLane = async (
  before: Lane,
  remove: readonly number[],
  add: readonly { fence: number; shape: Shape }[],
): Promise<Lane | undefined> => {
  if (!before.takeEdit()) return undefined
  const index = await edited(before.index, remove, add)
  if (index.setsTotal <= SETS_MAX) return new Lane(before.key, index, before.family)
  const compacted = index.compacted()
  index.release()
  return new Lane(before.key, compacted)
}

/** All fences of a lane, from the edit or from the version before it. */
export const fencesOfLane = (
  chunks: readonly FenceChunk[],
  { key, index }: Lane,
  shapes: ReadonlyMap<number, Shape>,
): { fence: number; shape: Shape }[] =>
  chunks.flatMap((chunk, place) =>
    chunk.flatMap((fence, i) => {
      const number = place * CHUNK_FENCES + i
      const shape = fence?.laneKey === key ? (shapes.get(number) ?? index.shape(number)) : undefined
      return shape === undefined ? [] : [{ fence: number, shape }]
    }),
  )

/** The index after an edit, in slices. */
export const edited = async (
  index: FenceIndex,
  remove: readonly number[],
  add: readonly { fence: number; shape: Shape }[],
): Promise<FenceIndex> => {
  const slices = index.withSlices({ remove, add })
  for (;;) {
    const slice = slices.next()
    if (slice.done) return slice.value
    await breathe()
  }
}
