import type { TableStore } from '../../engines/table-store.ts'
import type { MatchingSettings } from '../../features/locations/events.ts'
import type { Row, RowChange, TableDeclaration } from '../../kernel/table.ts'
import { matcherCheckpoint } from '../../features/transitions/events.ts'
import { RUNNING_TRIPS } from '../../features/trips/views.ts'
import { OwnedCheckpoint } from '../../kit/consumers/checkpoint.ts'
import type { RevisionsInForce } from './fence-book.ts'
import type { Fences } from './fences.ts'
import type { PageRow } from './pages.ts'
import { RunningTrips } from './running-trips.ts'
import type { MatcherState } from './state.ts'

/** Rows of the state of every partition; see `MatcherRoot`. */
export const MATCHER_STATE: TableDeclaration = { name: 'matcher_state', version: 2, lives: 'partition' }

/**
 * The one row of a partition that says what counts: everything else is either named here, never changed once written, or a
 * page that says itself up to which entry it goes. So a crash between two commits leaves nothing half done.
 */
export interface MatcherRoot extends Row {
  /** Revision of the last entry of the location stream that is in the state. */
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
  /** Ids of the fences, separated by commas, and their revisions: two values, because a row is made for each 512 fences of each partition. */
  ids: string
  revisions: number[]
}

const ROWS_PER_COMMIT = 400
const ROWS_PER_READ = 64

export class MatcherStore {
  private readonly tables: TableStore
  private readonly partition: number
  private readonly scope: string
  private owned: OwnedCheckpoint | undefined
  /** What is stored of each organization's chunks, by identity. */
  private readonly saved = new Map<string, { fences: Fences; stored: StoredOrganization }>()
  private unneeded: string[] = []
  private readonly running = new RunningTrips()

  constructor(tables: TableStore, partition: number) {
    this.tables = tables
    this.partition = partition
    this.scope = matcherCheckpoint(partition)
  }

  /** Makes this process the owner of what is stored, and answers its root. */
  async take(): Promise<MatcherRoot | undefined> {
    this.owned = await OwnedCheckpoint.take(this.tables, this.scope)
    return this.tables.get<MatcherRoot>(MATCHER_STATE.name, this.scope, 'root')
  }

  /** Calls back with each stored page. */
  async pages(count: number, each: (page: number, row: PageRow) => void): Promise<void> {
    for (let from = 0; from < count; from += ROWS_PER_READ) {
      const ids = Array.from({ length: Math.min(ROWS_PER_READ, count - from) }, (_, i) => this.pageId(from + i))
      const rows = await this.tables.getMany<PageRow>(MATCHER_STATE.name, this.scope, ids)
      rows.forEach((row, i) => {
        if (row !== undefined) each(from + i, row)
      })
    }
  }

  /** The revisions in force for an organization. */
  async revisions(organization: StoredOrganization): Promise<RevisionsInForce> {
    const geofences: RevisionsInForce['geofences'] = []
    for (let from = 0; from < organization.chunks.length; from += ROWS_PER_READ) {
      const rows = await this.tables.getMany<ChunkRow>(
        MATCHER_STATE.name,
        this.scope,
        organization.chunks.slice(from, from + ROWS_PER_READ),
      )
      for (const row of rows) geofences.push(...fencesOf(row))
    }
    return { geofences, groups: organization.groups }
  }

  /** Rows to write, and the description, of the fences in force. */
  describe(fences: readonly Fences[], at: number): { organizations: StoredOrganization[]; changes: RowChange[] } {
    const changes: RowChange[] = []
    const organizations = fences
      .filter(({ through }) => through >= 0)
      .map((version) => this.describeOne(version, at, changes))
    return { organizations, changes }
  }

  /** What is stored of an organization, when it stands in the order of these fences: it need not be written again. */
  remember(fences: Fences, stored: StoredOrganization, { geofences }: RevisionsInForce): void {
    const inForce = fences.chunks.flat()
    const isSame =
      inForce.length === geofences.length && inForce.every((fence, i) => fence?.geofenceId === geofences[i].geofenceId)
    if (isSame && stored.chunks.length === fences.chunks.length)
      this.saved.set(fences.organizationId, { fences, stored })
    else this.unneeded.push(...stored.chunks)
  }

  /** A commit failed: all is written again. */
  forgetDescriptions(): void {
    this.saved.clear()
  }

  /** Stores pages and what is named by the root, then the root with the checkpoint. */
  async commit(root: MatcherRoot, changes: readonly RowChange[], pages: ReadonlyMap<number, PageRow>): Promise<void> {
    const rows = [...changes, ...[...pages].map(([page, row]) => this.change(this.pageId(page), row))]
    for (let from = 0; from < rows.length; from += ROWS_PER_COMMIT)
      await this.owned?.commit(rows.slice(from, from + ROWS_PER_COMMIT))
    const unneeded = this.unneeded.splice(0)
    const last = [this.change('root', root), ...unneeded.map((id) => this.change(id, null))]
    await this.owned?.commit(last, { [this.partition]: root.at })
  }

  private describeOne(fences: Fences, at: number, changes: RowChange[]): StoredOrganization {
    const { organizationId, through } = fences
    const before = this.saved.get(organizationId)
    if (before?.fences === fences) return before.stored
    const chunks = fences.chunks.map((chunk, place) => {
      const kept = before?.fences.chunks[place] === chunk ? before.stored.chunks[place] : undefined
      if (kept !== undefined) return kept
      const id = `fences.${organizationId}.${place}.${at}`
      const inForce = chunk.filter((fence) => fence !== undefined)
      changes.push(
        this.change(id, {
          ids: inForce.map(({ geofenceId }) => geofenceId).join(),
          revisions: inForce.map(({ revision }) => revision),
        }),
      )
      return id
    })
    if (before !== undefined) this.unneeded.push(...before.stored.chunks.filter((id) => !chunks.includes(id)))
    const groups = [...fences.groups].map(([geofenceGroupId, { revision }]) => ({ geofenceGroupId, revision }))
    const stored = { organizationId, through, groups, chunks }
    this.saved.set(organizationId, { fences, stored })
    return stored
  }

  private pageId(page: number): string {
    return `page.${page}`
  }

  /** Rows to write that say how far running trips have come. */
  async runningTrips(state: MatcherState, nowMs: number): Promise<RowChange[]> {
    const rows = await this.running.rowsOf(state, nowMs)
    return [...rows].map(([id, row]) => ({ table: RUNNING_TRIPS.name, scope: this.scope, id, row }))
  }

  private change(id: string, row: Row | null): RowChange {
    return { table: MATCHER_STATE.name, scope: this.scope, id, row }
  }
}

const fencesOf = (row: ChunkRow | undefined): RevisionsInForce['geofences'] =>
  row === undefined || row.ids === ''
    ? []
    : row.ids.split(',').map((geofenceId, i) => ({ geofenceId, revision: row.revisions[i] }))

/** What a partition begins with. */
export const FIRST_SETTINGS: MatchingSettings = { tripStopMs: 5 * 60_000, rollout: '*' }
