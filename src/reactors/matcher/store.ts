import type { TableStore } from '../../engines/table-store.ts'
import type { MatchingSettings } from '../../features/locations/events.ts'
import type { Row, RowChange, TableDeclaration } from '../../kernel/table.ts'
import { matcherCheckpoint } from '../../features/transitions/events.ts'
import { RUNNING_TRIPS, type RunningTripsRow, runningTripsId } from '../../features/trips/views.ts'
import { inSlices } from '../../kernel/breath.ts'
import { SpareTurns } from '../../kernel/spare-turns.ts'
import { OwnedCheckpoint } from '../../kit/consumers/checkpoint.ts'
import type { RevisionsInForce } from './fence-book.ts'
import type { Fences } from './fences.ts'
import type { PageRow } from './pages.ts'
import { runningTripAt } from './detect-trips.ts'
import type { MatcherState } from './state.ts'

/** The saved state of every partition; see `MatcherRoot`. */
export const MATCHER_STATE: TableDeclaration = { name: 'matcher_state', version: 2, lives: 'partition' }

/**
 * The one row of a partition that says which others count. Those are either named here and never changed once written, or
 * pages, which each name the last entry that they include. So a crash between two commits leaves nothing half done.
 */
export interface MatcherRoot extends Row {
  /** Revision of the last included entry of the location stream. */
  at: number
  settings: MatchingSettings
  pages: number
  organizations: StoredOrganization[]
}

export interface StoredOrganization {
  organizationId: string
  through: number
  groups: { geofenceGroupId: string; revision: number }[]
  /** Ids of rows with the geofences. */
  chunks: string[]
}

interface ChunkRow extends Row {
  /** Ids of 512 fences, separated by commas: one text is stored faster than an array. */
  ids: string
  revisions: number[]
}

const ROWS_PER_COMMIT = 400
const CHUNKS_PER_READ = 64
/** Decoded in one go: some 2 ms. */
const PAGES_PER_READ = 32
/**
 * Turns of a restore, in ms: what needs nothing old, such as positions of the same partitions, waits for many answers
 * one after the other, and for a turn before each. Of a busy loop it has half.
 */
const RESTORE_TURN = { least: 2, most: 50, times: 1 }

export class MatcherStore {
  private readonly tables: TableStore
  private readonly partition: number
  private readonly scope: string
  private owned: OwnedCheckpoint | undefined
  /** The described version of each organization's fences, and its rows. */
  private readonly saved = new Map<string, { fences: Fences; stored: StoredOrganization }>()
  /** Rows of fences that the next root names and that may not be stored. */
  private readonly unstored = new Map<string, RowChange>()
  /** Rows of fences that the next root no longer names. */
  private unneeded: string[] = []
  private chunksMade = 0
  private readonly running = new RunningTrips()

  constructor(tables: TableStore, partition: number) {
    this.tables = tables
    this.partition = partition
    this.scope = matcherCheckpoint(partition)
  }

  /** Makes this process the owner of the stored state, and answers its root. */
  async take(): Promise<MatcherRoot | undefined> {
    this.owned = await OwnedCheckpoint.take(this.tables, this.scope)
    return this.tables.get<MatcherRoot>(MATCHER_STATE.name, this.scope, 'root')
  }

  /** Calls back with each stored page, while the next ones are being read: more at once would hold up other reads. @throws as `revisions` */
  async pages(count: number, each: (page: number, row: PageRow) => void): Promise<void> {
    const turns = new SpareTurns(RESTORE_TURN)
    let reading = this.somePages(0, count)
    for (let from = 0; from < count; from += PAGES_PER_READ) {
      const rows = await reading
      reading = this.somePages(from + PAGES_PER_READ, count)
      reading.catch(() => undefined) // thrown where it is awaited
      for (const [i, row] of rows.entries()) {
        const pause = turns.next()
        if (pause !== undefined) await pause
        if (row === undefined) return this.lacking(this.pageId(from + i))
        each(from + i, row)
      }
    }
  }

  private async somePages(from: number, count: number): Promise<(PageRow | undefined)[]> {
    if (from >= count) return []
    const to = Math.min(from + PAGES_PER_READ, count)
    const ids = Array.from({ length: to - from }, (_, i) => this.pageId(from + i))
    return this.tables.getMany<PageRow>(MATCHER_STATE.name, this.scope, ids)
  }

  /** The revisions in force for an organization. @throws Error where a row is missing: then the root is taken out first */
  async revisions(organization: StoredOrganization): Promise<RevisionsInForce> {
    const geofences: RevisionsInForce['geofences'] = []
    for (let from = 0; from < organization.chunks.length; from += CHUNKS_PER_READ) {
      const ids = organization.chunks.slice(from, from + CHUNKS_PER_READ)
      const rows = await this.tables.getMany<ChunkRow>(MATCHER_STATE.name, this.scope, ids)
      for (const [i, row] of rows.entries()) {
        if (row === undefined) return this.lacking(ids[i])
        geofences.push(...fencesOf(row))
      }
    }
    return { geofences, groups: organization.groups }
  }

  /** Without geofences or trackers that there were, wrong transitions would be decided: the next try starts from the log. */
  private async lacking(id: string): Promise<never> {
    await this.owned?.commit([this.change('root', null)])
    throw new Error(`the stored state of ${this.scope} lacks ${id}: it is made again from the log`)
  }

  /** The fences in force for the root, and the rows to write for them: after a failed commit, those of the one before too. */
  describe(fences: readonly Fences[]): { organizations: StoredOrganization[]; changes: RowChange[] } {
    const organizations = fences.filter(({ through }) => through >= 0).map((version) => this.describeOne(version))
    return { organizations, changes: [...this.unstored.values()] }
  }

  /** Notes that an organization's fences are stored already, when they are in the same order. */
  remember(fences: Fences, stored: StoredOrganization, { geofences }: RevisionsInForce): void {
    const inForce = fences.chunks.flat()
    const isSame =
      inForce.length === geofences.length && inForce.every((fence, i) => fence?.geofenceId === geofences[i].geofenceId)
    if (isSame && stored.chunks.length === fences.chunks.length)
      this.saved.set(fences.organizationId, { fences, stored })
    else this.unneeded.push(...stored.chunks)
  }

  /** Stores pages and rows named by the root, then the root, and the checkpoint with the last. */
  async commit(root: MatcherRoot, changes: readonly RowChange[], pages: ReadonlyMap<number, PageRow>): Promise<void> {
    const rows = [...changes, ...[...pages].map(([page, row]) => this.change(this.pageId(page), row))]
    const unneeded = [...this.unneeded]
    const all = [...rows, this.change('root', root), ...unneeded.map((id) => this.change(id, null))]
    await this.owned?.commitInParts(all, { [this.partition]: root.at }, ROWS_PER_COMMIT)
    this.unneeded.splice(0, unneeded.length)
    this.unstored.clear()
    this.running.stored()
  }

  private describeOne(fences: Fences): StoredOrganization {
    const { organizationId, through } = fences
    const before = this.saved.get(organizationId)
    if (before?.fences === fences) return before.stored
    const chunks = fences.chunks.map((chunk, chunkIndex) => {
      const kept = before?.fences.chunks[chunkIndex] === chunk ? before.stored.chunks[chunkIndex] : undefined
      if (kept !== undefined) return kept
      const id = `fences.${organizationId}.${this.owned?.fence}.${++this.chunksMade}`
      const inForce = chunk.filter((fence) => fence !== undefined)
      const row = {
        ids: inForce.map(({ geofenceId }) => geofenceId).join(),
        revisions: inForce.map(({ revision }) => revision),
      }
      this.unstored.set(id, this.change(id, row))
      return id
    })
    for (const id of before?.stored.chunks.filter((one) => !chunks.includes(one)) ?? []) {
      this.unstored.delete(id)
      this.unneeded.push(id)
    }
    const groups = [...fences.groups].map(([geofenceGroupId, { revision }]) => ({ geofenceGroupId, revision }))
    const stored = { organizationId, through, groups, chunks }
    this.saved.set(organizationId, { fences, stored })
    return stored
  }

  private pageId(page: number): string {
    return `page.${page}`
  }

  /** Whether running trips have come further than their rows, which then wait for a later save. */
  get areTripsBehind(): boolean {
    return this.running.isBehind
  }

  /** Rows to write with the progress of running trips. */
  async runningTrips(state: MatcherState, nowMs: number): Promise<RowChange[]> {
    const rows = await this.running.rowsOf(state, nowMs)
    return [...rows].map(([id, row]) => ({ table: RUNNING_TRIPS.name, scope: this.scope, id, row }))
  }

  private change(id: string, row: Row | null): RowChange {
    return { table: MATCHER_STATE.name, scope: this.scope, id, row }
  }
}

const fencesOf = (row: ChunkRow): RevisionsInForce['geofences'] =>
  row.ids === '' ? [] : row.ids.split(',').map((geofenceId, i) => ({ geofenceId, revision: row.revisions[i] }))

export const FIRST_SETTINGS: MatchingSettings = { tripStopMs: 5 * 60_000, rollout: '*' }

/** Shortest time between two writes of a partition's running trips. */
const STORE_MS = 10_000
const SLOTS_PER_SLICE = 4_096

/** The rows with the progress of a partition's running trips. */
class RunningTrips {
  /** Whether rows are to be written yet; the omissions of an earlier process are unknown. */
  isBehind = true
  private storedAtMs = Number.NEGATIVE_INFINITY
  /** Buckets that had trips at the last store. */
  private filled: ReadonlySet<string> = new Set()
  private underWay: { atMs: number; filled: ReadonlySet<string> } | undefined

  /** Rows by bucket, including buckets that became empty; none when rows were stored less than `STORE_MS` ago. */
  async rowsOf(state: MatcherState, nowMs: number): Promise<ReadonlyMap<string, RunningTripsRow>> {
    const rows = new Map<string, RunningTripsRow>()
    this.isBehind = true
    this.underWay = undefined
    if (nowMs - this.storedAtMs < STORE_MS) return rows
    await inSlices(state.trackerIds.length, (from) => {
      const to = Math.min(state.trackerIds.length, from + SLOTS_PER_SLICE)
      for (let slot = from; slot < to; slot++) {
        const trackerId = state.trackerIds[slot]
        const trip = trackerId === undefined ? undefined : runningTripAt(state, slot)
        if (trackerId === undefined || trip === undefined) continue
        const bucket = runningTripsId(trackerId)
        const row = rows.get(bucket) ?? { trips: {} }
        row.trips[trackerId] = trip
        rows.set(bucket, row)
      }
      return to
    })
    this.underWay = { atMs: nowMs, filled: new Set(rows.keys()) }
    for (const bucket of this.filled) if (!rows.has(bucket)) rows.set(bucket, { trips: {} })
    return rows
  }

  /** The last answer is stored; until then it has to be written again. */
  stored(): void {
    if (this.underWay === undefined) return
    this.storedAtMs = this.underWay.atMs
    this.filled = this.underWay.filled
    this.underWay = undefined
    this.isBehind = false
  }
}
