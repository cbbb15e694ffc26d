import {
  happenedAt,
  locationStream,
  type FencesChanged,
  type LocationEntry,
  type MatchingSettings,
  type PointBatch,
} from '../../features/locations/events.ts'
import type { Services } from '../../kit/services.ts'
import { breathe, inSlices } from '../../kernel/breath.ts'
import { decideBatch, decideDeletion, type PointCounts, settingsOf } from './decide.ts'
import { type DecisionOutbox, Decisions } from './decisions.ts'
import { decideEdit, decideStop, rebase } from './edits.ts'
import type { FenceBook } from './fence-book.ts'
import { encodePage, installPage, type PageRow } from './pages.ts'
import { type Captured, capturedFences, capturedOrganization, readSnapshot } from './snapshot.ts'
import { MatcherState, pageOf } from './state.ts'
import { FIRST_SETTINGS, MatcherStore, type MatcherRoot } from './store.ts'

export interface PartitionServices extends Pick<Services, 'log' | 'tables' | 'clock'> {
  book: FenceBook
}

export interface LastDecision {
  sourceRevision: number
  ordinal: number
}

/** Points decided before other work gets a turn: in an area that no tracker has visited, one takes some 50 µs. */
const POINTS_PER_SLICE = 256

/** The state of one partition, and the effects of its entries. Takes one entry at a time. */
export class MatcherPartition {
  readonly state = new MatcherState()
  readonly counts: PointCounts = { decided: 0, late: 0 }
  /** Revision of the last applied entry. */
  revision = -1
  private readonly services: PartitionServices
  private readonly partition: number
  private readonly store: MatcherStore
  private settings = FIRST_SETTINGS
  private matcherSettings = settingsOf(FIRST_SETTINGS)
  private savedRevision = -1
  /** Set while an entry is applied over several turns of the event loop; stays set when that fails, so that a half-applied entry is never saved. */
  private applying: Promise<void> | undefined
  /** Pages that were saved later than the root; installed once the entry that they include is reached. */
  private later: { page: number; row: PageRow }[] = []
  /** Trackers of those pages: their decisions up to that entry are made already. */
  private readonly settledTrackers = new Set<string>()
  /** Decisions of entries up to this revision are in the log. */
  private decidedThrough = -1
  private lastDecision: LastDecision = { sourceRevision: -1, ordinal: -1 }
  private outbox: DecisionOutbox | undefined

  constructor(services: PartitionServices, partition: number) {
    this.services = services
    this.partition = partition
    this.store = new MatcherStore(services.tables, partition)
  }

  /** Becomes the owner of the stored state; what is answered restores it, and answers its last revision, -1 for none. */
  async take(): Promise<() => Promise<number>> {
    const [root, first] = await Promise.all([this.store.take(), this.firstLogged()])
    return () => (root === undefined || first > root.at + 1 ? this.loadSnapshot() : this.loadStored(root))
  }

  private async loadStored(root: MatcherRoot): Promise<number> {
    await this.restore(root, (organization) => this.store.revisions(organization))
    await this.store.pages(root.pages, (page, row) => this.takePage(page, row))
    return (this.savedRevision = this.revision)
  }

  /**
   * Where the tables have nothing, or less than the log needs: from the newest snapshot in the log. Answers as `loadStored`.
   * @throws Error when the log has been truncated and there is no snapshot.
   */
  async loadSnapshot(): Promise<number> {
    if (!(await readSnapshot(this.services.log, this.partition, this))) {
      if ((await this.firstLogged()) > 0)
        throw new Error(`the location log of partition ${this.partition} is truncated and the matcher has no snapshot`)
      return -1
    }
    for (let page = 0; page < this.pageCount(); page++) this.state.dirtyPages.add(page)
    return this.revision
  }

  /** Revision of the first entry that was not truncated. */
  private async firstLogged(): Promise<number> {
    return (await this.services.log.read(locationStream(this.partition), 0, 1))[0]?.revision ?? 0
  }

  /** Entries up to this revision are decided in the restored state: applied again, they decide nothing. */
  get settledThrough(): number {
    return this.decidedThrough
  }

  /** Restores the root of stored state; pages follow by `takePage`. */
  async restore(root: MatcherRoot, revisionsOf: MatcherStore['revisions']): Promise<void> {
    this.revision = root.at
    this.decidedThrough = root.at
    this.useSettings(root.settings)
    for (const organization of root.organizations) {
      const revisions = await revisionsOf(organization)
      const fences = await this.services.book.restore(organization.organizationId, organization.through, revisions)
      this.state.organizationIndex(organization.organizationId, fences.retain())
      this.store.remember(fences, organization, revisions)
    }
    this.state.beginRestore(root.pages)
  }

  takePage(page: number, row: PageRow): void {
    if (row.at <= this.revision) {
      installPage(this.state, page, row, this.organizationOf)
      return
    }
    this.later.push({ page, row })
    this.decidedThrough = Math.max(this.decidedThrough, row.at)
    for (const trackerId of row.trackerIds) if (trackerId !== null) this.settledTrackers.add(trackerId)
  }

  private endRestore(): void {
    if (this.later.length === 0) this.state.endRestore()
  }

  /** From here on decisions are appended, except for those in the log already. */
  begin(outbox: DecisionOutbox, lastDecision: LastDecision): void {
    this.endRestore()
    this.outbox = outbox
    this.lastDecision = lastDecision
  }

  /** @throws the error that keeps decisions from being appended; the partition must be loaded again then. */
  apply(entry: LocationEntry): void | Promise<void> {
    if (this.outbox?.failure !== undefined) throw this.outbox.failure
    const decisions = new Decisions(entry.revision)
    let work: void | Promise<void>
    if (entry.kind === 'points') work = this.decidePoints(entry.batch, decisions)
    else if (entry.kind === 'fencesChanged') work = this.edit(entry.change, decisions)
    else if (entry.kind === 'trackerDeleted' && !this.isSettled(entry.deletion.trackerId))
      work = decideDeletion(this.state, entry.deletion, decisions)
    else work = undefined
    if (work === undefined) return this.applied(entry, decisions)
    this.applying = work.then(() => {
      this.applying = undefined
      return this.applied(entry, decisions)
    })
    return this.applying
  }

  /** Whether another `save` has something to store. */
  get isDirty(): boolean {
    return this.applying !== undefined || this.revision !== this.savedRevision || this.store.areTripsBehind
  }

  /** Saves the changes, once the decisions behind them are in the log. */
  async save(): Promise<void> {
    const { state } = this
    while (this.applying !== undefined) await this.applying
    const { organizations, changes } = this.store.describe(state.organizations.map(({ fences }) => fences))
    const root: MatcherRoot = { at: this.revision, settings: this.settings, pages: this.pageCount(), organizations }
    const pages = new Map<number, PageRow>()
    try {
      for (const page of [...state.dirtyPages]) {
        await breathe()
        while (this.applying !== undefined) await this.applying
        state.dirtyPages.delete(page)
        pages.set(page, encodePage(state, page, this.revision))
      }
      await this.outbox?.settled()
      if (this.outbox?.isClosed) return
      const running = await this.store.runningTrips(state, this.services.clock.monotonic())
      await this.store.commit(root, [...changes, ...running], pages)
      this.savedRevision = root.at
    } catch (error) {
      for (const page of pages.keys()) state.dirtyPages.add(page)
      throw error
    }
  }

  /** The whole state as rows, for a snapshot: the fences in force at one entry, and pages that each name the entry they include. */
  async capture(): Promise<Captured> {
    if (this.later.length > 0) throw new Error('a matcher that has not caught up with its own pages has no whole state')
    while (this.applying !== undefined) await this.applying
    const versions = this.state.organizations.map(({ fences }) => fences).filter(({ through }) => through >= 0)
    const root = {
      at: this.revision,
      settings: this.settings,
      pages: this.pageCount(),
      organizations: versions.map(capturedOrganization),
    }
    return { root, fences: versions.map(capturedFences), pages: this.capturePages(root.pages) }
  }

  /** Resolves when all decisions are in the log. */
  async settled(): Promise<void> {
    await this.outbox?.settled()
  }

  /** Releases the fences, once a running edit has ended. */
  async dispose(): Promise<void> {
    this.outbox?.close()
    await this.applying?.catch(() => undefined)
    for (const { fences } of this.state.organizations) fences.release()
    this.state.organizations.length = 0
  }

  private async *capturePages(count: number): AsyncGenerator<{ page: number; row: PageRow }> {
    for (let page = 0; page < count; page++) {
      while (this.applying !== undefined) await this.applying
      yield { page, row: encodePage(this.state, page, this.revision) }
    }
  }

  private applied(entry: LocationEntry, decisions: Decisions): void | Promise<void> {
    this.revision = entry.revision
    if (this.later.length > 0) this.installLater()
    const { sourceRevision, ordinal } = this.lastDecision
    if (
      decisions.list.length === 0 ||
      entry.revision <= this.decidedThrough ||
      entry.revision < sourceRevision ||
      this.outbox === undefined
    )
      return
    const known = entry.revision === sourceRevision ? ordinal + 1 : 0
    this.outbox.add(entry.revision, known, happenedAt(entry), decisions.list.slice(known))
    if (this.outbox.isFull) return this.outbox.emptied()
  }

  private decidePoints(batch: PointBatch, decisions: Decisions): void | Promise<void> {
    return inSlices(batch.count, (from) => {
      const { decided, late, next } = decideBatch(
        this.state,
        batch,
        this.matcherSettings,
        this.organizationOf,
        decisions,
        this.isSettled,
        from,
        POINTS_PER_SLICE,
      )
      this.counts.decided += decided
      this.counts.late += late
      return next
    })
  }

  private async edit(change: FencesChanged, decisions: Decisions): Promise<void> {
    if (change.settings !== undefined) this.applySettings(change.settings, change.at, decisions)
    if (change.geofences.length === 0 && change.groups.length === 0) return
    const organization = this.organizationOf(change.organizationId)
    const { fences } = this.state.organizations[organization]
    // A crash may repeat an announcement.
    if (change.sourcePosition <= fences.through) return
    const step = await this.services.book.advance(fences, change)
    await decideEdit(this.state, organization, step, change.at, decisions, this.isSettled)
    const shared = this.services.book.shared(step.fences)
    if (shared !== step.fences) rebase(this.state, organization, shared)
  }

  private applySettings(settings: MatchingSettings, atMs: number, decisions: Decisions): void {
    const wasIn = this.matcherSettings.inRollout
    this.useSettings(settings)
    const indexes = this.state.organizations.map((_, index) => index)
    const idOf = (index: number): string => this.state.organizations[index].organizationId
    for (const index of indexes.sort((a, b) => (idOf(a) < idOf(b) ? -1 : 1))) {
      if (wasIn(idOf(index)) && !this.matcherSettings.inRollout(idOf(index)))
        decideStop(this.state, index, atMs, decisions, this.isSettled)
    }
  }

  private useSettings(settings: MatchingSettings): void {
    this.settings = settings
    this.matcherSettings = settingsOf(settings)
  }

  private installLater(): void {
    const due = this.later.filter(({ row }) => row.at <= this.revision)
    this.later = this.later.filter(({ row }) => row.at > this.revision)
    for (const { page, row } of due) {
      installPage(this.state, page, row, this.organizationOf)
      for (const trackerId of row.trackerIds) if (trackerId !== null) this.settledTrackers.delete(trackerId)
    }
    this.endRestore()
  }

  private readonly isSettled = (trackerId: string): boolean =>
    this.settledTrackers.size > 0 && this.settledTrackers.has(trackerId)

  private readonly organizationOf = (organizationId: string): number => {
    const index = this.state.organizationIndexes.get(organizationId)
    return index ?? this.state.organizationIndex(organizationId, this.services.book.empty(organizationId).retain())
  }

  private pageCount(): number {
    return this.state.trackerIds.length === 0 ? 0 : pageOf(this.state.trackerIds.length - 1) + 1
  }
}
