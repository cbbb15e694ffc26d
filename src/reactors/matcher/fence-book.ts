import type { EventLog } from '../../engines/event-log.ts'
import type { TableStore } from '../../engines/table-store.ts'
import { geofence } from '../../features/geofences/geofence.ts'
import { GROUP_NOUN, geofenceStream, groupStream, type GroupRules } from '../../features/geofences/events.ts'
import { GEOFENCE_DETAILS, GEOFENCES, type GeofenceRow, shapeOfDetails } from '../../features/geofences/views.ts'
import type { FencesChanged } from '../../features/locations/events.ts'
import { FenceIndex } from '../../geo/fence-index.ts'
import type { Shape, ShapeInput } from '../../geo/shape.ts'
import { foldStream } from '../../kit/commands/fold-stream.ts'
import { severalAtOnce } from '../../kit/commands/several-at-once.ts'
import { ABSENT, evolveResource } from '../../kit/resource/decider.ts'
import {
  CHUNK_FENCES,
  edited,
  editedLane,
  EVERY_FIX,
  type FenceChunk,
  type FenceInForce,
  FenceNumbers,
  Fences,
  fencesOfLane,
  type FencesStep,
  type GroupInForce,
  groupInForce,
  Lane,
  prepare,
} from './fences.ts'

/** Revisions of geofences and groups in force, as saved with a checkpoint. */
export interface RevisionsInForce {
  geofences: { geofenceId: string; revision: number }[]
  groups: { geofenceGroupId: string; revision: number }[]
}

interface LoadedFence {
  geofenceId: string
  revision: number
  geofenceGroupId: string
  isActive: boolean
  shape: ShapeInput
  shapeVersion: number
}

type Wanted = RevisionsInForce['geofences'][number]

/** Streams of geofences read together: one by one, an organization of 10,000 would wait for each answer. */
const READS_AT_ONCE = 32
/** Rows of one read: decoded in one go, some 2 ms. */
const ROWS_PER_READ = 128

/** Geofences whose streams need not be read, by id. */
type KnownFences = ReadonlyMap<string, LoadedFence>

/** Version of a geofence after its first event, which also makes its shape. */
const FIRST_VERSION = 1

/** Before any edit. */
const NOTHING_YET = -1

/**
 * All versions of organizations' fences used by partitions of this process. Their content is read from the streams of
 * geofences and groups, at the revisions that the location stream names.
 */
export class FenceBook {
  private readonly log: Pick<EventLog, 'read'>
  private readonly tables: Pick<TableStore, 'getMany'> | undefined
  private readonly inUse = new Map<string, Fences>()
  private readonly restoring = new Map<string, Promise<Fences>>()
  private readonly nothing = new Lane(EVERY_FIX, FenceIndex.empty()).retain()

  /** With tables, geofences that never changed are restored from their rows: a stream of its own for each costs many times as much. */
  constructor(log: Pick<EventLog, 'read'>, tables?: Pick<TableStore, 'getMany'>) {
    this.log = log
    this.tables = tables
  }

  get versions(): number {
    return this.inUse.size
  }

  empty(organizationId: string): Fences {
    const known = this.inUse.get(keyOf(organizationId, NOTHING_YET))
    if (known !== undefined) return known
    return this.register(
      new Fences(
        {
          organizationId,
          through: NOTHING_YET,
          numbers: new FenceNumbers(),
          chunks: [],
          groups: new Map(),
          lanes: [this.nothing],
        },
        this.forget,
      ),
    )
  }

  /** The version after an edit, and the touched geofences; one object for all partitions from the same version. */
  advance(from: Fences, change: FencesChanged): Promise<FencesStep> {
    return from.after(change.sourcePosition, () => this.step(from, change))
  }

  /** The version that a checkpoint names. */
  async restore(organizationId: string, through: number, revisions: RevisionsInForce): Promise<Fences> {
    const key = keyOf(organizationId, through)
    const known = this.inUse.get(key)
    if (known !== undefined) return known
    const change = { organizationId, at: 0, sourcePosition: through, ...revisions }
    const restoring = this.restoring.get(key) ?? this.fromNothing(change)
    this.restoring.set(key, restoring)
    try {
      return await restoring
    } finally {
      this.restoring.delete(key)
    }
  }

  private async fromNothing(change: FencesChanged): Promise<Fences> {
    const nothing = this.empty(change.organizationId).retain()
    try {
      const known = await this.unchanged(change).catch(() => new Map()) // the streams have everything
      return (await this.step(nothing, change, known)).fences
    } finally {
      nothing.release()
    }
  }

  private async step(from: Fences, change: FencesChanged, known?: KnownFences): Promise<FencesStep> {
    const groups = await this.groupsAfter(from, change)
    const moved = fencesOfMovedGroups(from, groups, new Set(change.geofences.map(({ geofenceId }) => geofenceId)))
    const loaded = await this.loadFences([...change.geofences, ...moved], known)
    const chunks = [...from.chunks]
    const touched = new Set<number>()
    const shapes = new Map<number, ShapeInput>()
    for (const { geofenceId, fence } of loaded) {
      const number = from.numbers.of(geofenceId)
      const before = from.fence(number)
      const after = fence === undefined ? undefined : inForce(fence, groups)
      setFence(chunks, number, after, from.chunks)
      if (before?.laneKey === after?.laneKey && before?.shapeVersion === after?.shapeVersion) continue
      touched.add(number)
      if (fence !== undefined && after?.laneKey !== undefined) shapes.set(number, fence.shape)
    }
    const prepared = await prepare(shapes)
    const lanes = await this.lanesAfter(from, groups, chunks, touched, prepared)
    const { organizationId, numbers } = from
    const content = { organizationId, through: change.sourcePosition, numbers, chunks, groups, lanes }
    return { fences: this.register(new Fences(content, this.forget)), touched }
  }

  private async groupsAfter(from: Fences, change: FencesChanged): Promise<Map<string, GroupInForce>> {
    const groups = new Map(from.groups)
    for (const { geofenceGroupId, revision } of change.groups) {
      const rules = await this.loadGroup(geofenceGroupId, revision)
      if (rules === undefined) groups.delete(geofenceGroupId)
      else groups.set(geofenceGroupId, groupInForce(rules, revision))
    }
    return groups
  }

  private async lanesAfter(
    from: Fences,
    groups: ReadonlyMap<string, GroupInForce>,
    chunks: readonly FenceChunk[],
    touched: ReadonlySet<number>,
    shapes: ReadonlyMap<number, Shape>,
  ): Promise<Lane[]> {
    const keys = [...new Set([EVERY_FIX, ...[...groups.values()].map(({ laneKey }) => laneKey)])].sort((a, b) => a - b)
    const lanes: Lane[] = []
    for (const key of keys) {
      const before = from.lane(key) ?? this.nothing
      const remove = [...touched].filter((number) => from.fence(number)?.laneKey === key)
      const add = [...touched]
        .filter((number) => chunks[Math.floor(number / CHUNK_FENCES)][number % CHUNK_FENCES]?.laneKey === key)
        .map((fence) => ({ fence, shape: shapes.get(fence) as Shape }))
      if (remove.length === 0 && add.length === 0)
        lanes.push(before.key === key ? before : new Lane(key, FenceIndex.empty()))
      else if (before === this.nothing) lanes.push(new Lane(key, await edited(FenceIndex.empty(), remove, add)))
      else
        lanes.push(
          (await editedLane(before, remove, add)) ??
            new Lane(key, await edited(FenceIndex.empty(), [], fencesOfLane(chunks, before, shapes))),
        )
    }
    return lanes
  }

  private async loadFences(
    wanted: readonly Wanted[],
    known: KnownFences = new Map(),
  ): Promise<{ geofenceId: string; fence: LoadedFence | undefined }[]> {
    const loaded = wanted.map(({ geofenceId }) => ({ geofenceId, fence: known.get(geofenceId) }))
    const unknown = [...wanted.entries()].filter(([i]) => loaded[i].fence === undefined)
    await severalAtOnce(unknown, READS_AT_ONCE, async ([i, one]) => {
      loaded[i].fence = await this.loadFence(one)
    })
    return loaded
  }

  /** Geofences that are still as they were created, by their rows; those that changed, or have no rows yet, are left out. */
  private async unchanged({ organizationId, geofences }: FencesChanged): Promise<KnownFences> {
    const known = new Map<string, LoadedFence>()
    const { tables } = this
    if (tables === undefined) return known
    const ids = geofences.filter(({ revision }) => revision === 0).map(({ geofenceId }) => geofenceId)
    for (let from = 0; from < ids.length; from += ROWS_PER_READ) {
      const some = ids.slice(from, from + ROWS_PER_READ)
      // Rows after details: a row that still has the first version proves that the details had it before.
      const details = await tables.getMany(GEOFENCE_DETAILS.name, organizationId, some)
      const rows = await tables.getMany<GeofenceRow>(GEOFENCES.name, organizationId, some)
      for (const [i, geofenceId] of some.entries()) {
        const [row, detail] = [rows[i], details[i]]
        if (row?.version !== FIRST_VERSION || detail === undefined) continue
        const { geofenceGroupId, isActive } = row
        const shape = shapeOfDetails(detail)
        known.set(geofenceId, {
          geofenceId,
          revision: 0,
          geofenceGroupId,
          isActive,
          shape,
          shapeVersion: FIRST_VERSION,
        })
      }
    }
    return known
  }

  private async loadFence({ geofenceId, revision }: Wanted): Promise<LoadedFence | undefined> {
    const state = await foldStream(this.log, geofenceStream(geofenceId), revision, geofence.initial, geofence.evolve)
    if (state.status !== 'live' || state.values === undefined) return undefined
    const { geofenceGroupId, isActive, shape } = state.values
    return { geofenceId, revision, geofenceGroupId, isActive, shape, shapeVersion: state.shapeVersion }
  }

  private async loadGroup(geofenceGroupId: string, revision: number): Promise<GroupRules | undefined> {
    const state = await foldStream(this.log, groupStream(geofenceGroupId), revision, ABSENT, evolveResource(GROUP_NOUN))
    return state.status === 'live' ? (state.values as GroupRules) : undefined
  }

  /** The shared object for a version: two partitions may have made it differently; one of them moves to the other's. */
  shared(fences: Fences): Fences {
    return this.inUse.get(keyOf(fences.organizationId, fences.through)) ?? fences
  }

  private register(fences: Fences): Fences {
    const key = keyOf(fences.organizationId, fences.through)
    if (!this.inUse.has(key)) this.inUse.set(key, fences)
    return fences
  }

  private readonly forget = (fences: Fences): void => {
    const key = keyOf(fences.organizationId, fences.through)
    if (this.inUse.get(key) === fences) this.inUse.delete(key)
  }
}

const keyOf = (organizationId: string, through: number): string => `${organizationId}|${through}`

const inForce = (
  { shape: _shape, isActive, ...fence }: LoadedFence,
  groups: ReadonlyMap<string, GroupInForce>,
): FenceInForce => ({
  ...fence,
  laneKey: isActive ? (groups.get(fence.geofenceGroupId)?.laneKey ?? EVERY_FIX) : undefined,
})

/** Geofences that change only because their group has another `maxAccuracy` now. */
const fencesOfMovedGroups = (
  from: Fences,
  groups: ReadonlyMap<string, GroupInForce>,
  others: ReadonlySet<string>,
): { geofenceId: string; revision: number }[] => {
  const isMoved = (groupId: string): boolean =>
    (from.groups.get(groupId)?.laneKey ?? EVERY_FIX) !== (groups.get(groupId)?.laneKey ?? EVERY_FIX)
  const movedGroups = new Set([...groups.keys(), ...from.groups.keys()].filter(isMoved))
  if (movedGroups.size === 0) return []
  return from.chunks
    .flat()
    .filter(
      (fence) => fence !== undefined && movedGroups.has(fence.geofenceGroupId) && !others.has(fence.geofenceId),
    ) as FenceInForce[]
}

const setFence = (
  chunks: FenceChunk[],
  number: number,
  fence: FenceInForce | undefined,
  shared: readonly FenceChunk[],
): void => {
  const chunkIndex = Math.floor(number / CHUNK_FENCES)
  while (chunks.length <= chunkIndex) chunks.push([])
  if (chunks[chunkIndex] === shared[chunkIndex]) chunks[chunkIndex] = [...chunks[chunkIndex]]
  const chunk = chunks[chunkIndex] as (FenceInForce | undefined)[]
  while (chunk.length <= number % CHUNK_FENCES) chunk.push(undefined)
  chunk[number % CHUNK_FENCES] = fence
}
