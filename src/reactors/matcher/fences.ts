import type { GroupRules } from '../../features/geofences/events.ts'
import type { FenceIndex } from '../../geo/fence-index.ts'
import { makeShape, type Shape, type ShapeInput } from '../../geo/shape.ts'
import { breathe } from '../../kernel/breath.ts'

/** The part of a group that decides. */
export interface GroupInForce {
  revision: number
  /** Lane of its geofences: `maxAccuracy` in 0.01 m, -1 for none. */
  laneKey: number
  /** Fixes and milliseconds that must agree; absent: a change counts at once. */
  debounce?: { fixes: number; ms: number }
}

/** The part of a geofence that decides. */
export interface FenceInForce {
  geofenceId: string
  revision: number
  geofenceGroupId: string
  /** Its lane; undefined when it is inactive. */
  laneKey: number | undefined
  /** Version of its stream that last changed its shape. */
  shapeVersion: number
}

/** The fences of all groups with one `maxAccuracy`: they judge the fixes that it lets pass. */
export class Lane {
  readonly key: number
  readonly index: FenceIndex
  /** Ids of sets of fences mean the same in all lanes of one family. */
  readonly family: symbol
  private uses = 0
  private isEdited = false

  constructor(key: number, index: FenceIndex, family = Symbol('family of lanes')) {
    this.key = key
    this.index = index
    this.family = family
  }

  /** Claims the right to edit the index, for the first caller only: just the newest version of an index is editable. */
  takeEdit(): boolean {
    const isFirst = !this.isEdited
    this.isEdited = true
    return isFirst
  }

  retain(): this {
    this.uses++
    return this
  }

  release(): void {
    if (--this.uses === 0) this.index.release()
  }
}

/** Numbers the geofences of an organization; the numbers stay the same from version to version. */
export class FenceNumbers {
  private readonly ids: string[] = []
  private readonly numbers = new Map<string, number>()

  of(geofenceId: string): number {
    let number = this.numbers.get(geofenceId)
    if (number === undefined) {
      number = this.ids.push(geofenceId) - 1
      this.numbers.set(geofenceId, number)
    }
    return number
  }

  known(geofenceId: string): number | undefined {
    return this.numbers.get(geofenceId)
  }

  idOf(number: number): string {
    return this.ids[number]
  }
}

export const CHUNK_FENCES = 512
export type FenceChunk = readonly (FenceInForce | undefined)[]

/**
 * The fences and groups of one organization after one of its edits: a version. It never changes, is shared by all
 * partitions of a process that have reached that edit, and is released by the last one that moves to the next.
 */
export class Fences {
  readonly organizationId: string
  /** Position in the log of the last included edit, -1 for none. */
  readonly through: number
  readonly numbers: FenceNumbers
  readonly chunks: readonly FenceChunk[]
  readonly groups: ReadonlyMap<string, GroupInForce>
  /** Sorted by key; the first one judges every fix. */
  readonly lanes: readonly Lane[]
  /** The versions after this one, by position of the edit: kept while in use, for partitions yet to follow. */
  private readonly next = new Map<number, Promise<FencesStep>>()
  private uses = 0
  private readonly onUnused: (fences: Fences) => void

  constructor(content: FencesContent, onUnused: (fences: Fences) => void = () => undefined) {
    this.organizationId = content.organizationId
    this.through = content.through
    this.numbers = content.numbers
    this.chunks = content.chunks
    this.groups = content.groups
    this.lanes = content.lanes
    this.onUnused = onUnused
    for (const lane of this.lanes) lane.retain()
  }

  fence(number: number): FenceInForce | undefined {
    return this.chunks[Math.floor(number / CHUNK_FENCES)]?.[number % CHUNK_FENCES]
  }

  lane(key: number): Lane | undefined {
    return this.lanes.find((lane) => lane.key === key)
  }

  debounceOf(number: number): GroupInForce['debounce'] {
    const fence = this.fence(number)
    return fence === undefined ? undefined : this.groups.get(fence.geofenceGroupId)?.debounce
  }

  retain(): this {
    this.uses++
    return this
  }

  release(): void {
    if (--this.uses > 0) return
    for (const lane of this.lanes) lane.release()
    this.onUnused(this)
    for (const step of this.next.values())
      void step.then(
        ({ fences }) => fences.release(),
        () => undefined,
      )
  }

  /** The version after an edit, made once for all partitions. */
  after(sourcePosition: number, make: () => Promise<FencesStep>): Promise<FencesStep> {
    const known = this.next.get(sourcePosition)
    if (known !== undefined) return known
    const fences = make().then((step) => {
      step.fences.retain()
      return step
    })
    this.next.set(sourcePosition, fences)
    fences.catch(() => this.next.delete(sourcePosition))
    return fences
  }
}

/** The version after an edit, and the numbers of the geofences that decide differently since. */
export interface FencesStep {
  fences: Fences
  touched: ReadonlySet<number>
}

export interface FencesContent {
  organizationId: string
  through: number
  numbers: FenceNumbers
  chunks: readonly FenceChunk[]
  groups: ReadonlyMap<string, GroupInForce>
  lanes: readonly Lane[]
}

/** Key of the lane that judges every fix. */
export const EVERY_FIX = -1

export const groupInForce = ({ maxAccuracy, debounce }: GroupRules, revision: number): GroupInForce => {
  const laneKey = accuracyMaxCmOf(maxAccuracy) ?? EVERY_FIX
  if (debounce?.fixes === undefined && debounce?.seconds === undefined) return { revision, laneKey }
  const ms = debounce.seconds === undefined ? Number.POSITIVE_INFINITY : debounce.seconds * 1000
  return { revision, laneKey, debounce: { fixes: debounce.fixes ?? Number.POSITIVE_INFINITY, ms } }
}

/** The worst accuracy that passes, in 0.01 m as points are kept. */
export const accuracyMaxCmOf = (maxAccuracy: number | undefined): number | undefined =>
  maxAccuracy === undefined ? undefined : Math.min(Math.round(maxAccuracy * 100), 0x7fffffff)

/** Number of sets of fences in a lane's index after which the next edit starts a new index. */
const SETS_MAX = 250_000

/** Prepares shapes for the index, in slices. */
export const prepare = async (inputs: ReadonlyMap<number, ShapeInput>): Promise<Map<number, Shape>> => {
  const shapes = new Map<number, Shape>()
  for (const [number, input] of inputs) {
    await breathe()
    shapes.set(number, makeShape(input))
  }
  return shapes
}

/** The lane after an edit; undefined when another edit of it was begun: only the newest version of an index can be edited. */
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
  chunks.flatMap((chunk, chunkIndex) =>
    chunk.flatMap((fence, i) => {
      const number = chunkIndex * CHUNK_FENCES + i
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
