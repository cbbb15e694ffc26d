import type { GroupRules } from '../../features/geofences/events.ts'
import type { FenceIndex } from '../../geo/fence-index.ts'

/** What of a group decides. */
export interface GroupInForce {
  revision: number
  /** 0.01 m; -1 for none. */
  laneKey: number
  /** Fixes and milliseconds that must agree; absent: a change counts at once. */
  debounce?: { fixes: number; ms: number }
}

/** What of a geofence decides, by its number. */
export interface FenceInForce {
  geofenceId: string
  revision: number
  geofenceGroupId: string
  /** Active and in this lane; undefined when it counts for nothing. */
  laneKey: number | undefined
  /** Version of its stream that last changed its shape. */
  shapeVersion: number
}

/** The fences that judge the fixes which one `maxAccuracy` lets pass. */
export class Lane {
  readonly key: number
  readonly index: FenceIndex
  /** Ids of sets mean the same in lanes of one family. */
  readonly family: symbol
  private uses = 0
  private isEdited = false

  constructor(key: number, index: FenceIndex, family = Symbol('family of lanes')) {
    this.key = key
    this.index = index
    this.family = family
  }

  /** Whether the index may be edited: once, since only its newest version can be. */
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

/** Numbers for the geofences of an organization, the same in all versions that follow from one another. */
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
 * The fences and groups of one organization from one place of its edits on. Never changed once made; shared by all
 * partitions of a process that stand there, and released by the last one that moves on.
 */
export class Fences {
  readonly organizationId: string
  /** Position in the log of the last edit that counts here, -1 for none. */
  readonly through: number
  readonly numbers: FenceNumbers
  readonly chunks: readonly FenceChunk[]
  readonly groups: ReadonlyMap<string, GroupInForce>
  /** Rising by key; the first one judges every fix. */
  readonly lanes: readonly Lane[]
  /** What follows, by the edit's position: kept as long as this one is in use, for partitions that still stand here. */
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

/** What an edit makes of a version, and the numbers of the geofences that count differently since. */
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
