import { type EventLog, eventsBackwards } from '../../engines/event-log.ts'
import { StaleCommit } from '../../engines/table-store.ts'
import type { LocationEntry } from '../../features/locations/events.ts'
import { DECIDED, type Decided, PARTITION_TAKEN, transitionStream } from '../../features/transitions/events.ts'
import { RUNNING_TRIPS } from '../../features/trips/views.ts'
import { idSource } from '../../kit/commands/ids.ts'
import { takeStream } from '../../kit/consumers/owned-stream.ts'
import type { PartitionConsumer } from '../../kit/consumers/partition-consumer.ts'
import type { Services } from '../../kit/services.ts'
import { decodeJson, encodeJson, type NewEvent } from '../../kernel/event.ts'
import { FenceBook } from './fence-book.ts'
import { DecisionOutbox, type OnDecided } from './decisions.ts'
import { type LastDecision, MatcherPartition } from './partition.ts'
import { newestSnapshot, writeSnapshot } from './snapshot.ts'
import { MATCHER_STATE } from './store.ts'

export interface MatcherOptions {
  onDecided?: OnDecided
  onFailure?: (partition: number, error: unknown) => void
}

interface Running {
  matcher: MatcherPartition
  outbox: DecisionOutbox
  saving: Promise<void> | undefined
  snapshotting: Promise<void> | undefined
  cancelTimer: (() => void) | undefined
}

/** Time from the end of one save of a partition's state to the start of the next. */
const SAVE_INTERVAL_MS = 2_500
/** Events of the first read from the end, which nearly always has a decision. */
const TAIL_EVENTS = 2

/**
 * Matches points against geofences and detects trips: follows `locations-<partition>` and is the only writer of
 * `transitions-<partition>`. State is kept in memory and saved with the checkpoint every `SAVE_INTERVAL_MS`; after a
 * crash it decides again from there and appends the decisions that the log lacks.
 */
export class GeofenceMatcher implements PartitionConsumer<LocationEntry> {
  readonly name = 'matcher'
  readonly isSlow = true
  onLost: PartitionConsumer<LocationEntry>['onLost']
  private readonly services: Pick<Services, 'log' | 'tables' | 'clock'>
  private readonly options: MatcherOptions
  private readonly book: FenceBook
  private readonly running = new Map<number, Running>()
  private lastSave: Promise<void> = Promise.resolve()
  private lastRestore: Promise<unknown> = Promise.resolve()

  constructor(services: Pick<Services, 'log' | 'tables' | 'clock'>, options: MatcherOptions = {}) {
    this.services = services
    this.options = options
    this.book = new FenceBook(services.log, services.tables)
  }

  async load(partition: number): Promise<number> {
    await this.drop(partition)
    const { log, tables, clock } = this.services
    const taking = takeDecisions(log, partition, clock.now())
    taking.catch(() => undefined) // awaited once the state is there
    await Promise.all([MATCHER_STATE, RUNNING_TRIPS].map((table) => tables.declare(table)))
    const matcher = new MatcherPartition({ log, tables, clock, book: this.book }, partition)
    try {
      const loaded = await this.inTurn(await matcher.take())
      const { revision, last } = await taking
      const onDecided = this.options.onDecided ?? (() => undefined)
      const onFailure = (error: unknown): void => {
        this.options.onFailure?.(partition, error)
        if (outbox.failure !== undefined) this.onLost?.(partition)
      }
      const outbox = new DecisionOutbox({ log, clock, partition, revision, onDecided, onFailure })
      matcher.begin(outbox, last)
      const running: Running = {
        matcher,
        outbox,
        saving: undefined,
        snapshotting: undefined,
        cancelTimer: undefined,
      }
      this.running.set(partition, running)
      if (loaded >= 0) this.saveLater(partition, running)
      return loaded
    } catch (error) {
      await matcher.dispose()
      throw error
    }
  }

  handle(entry: LocationEntry, partition: number): void | Promise<void> {
    const running = this.running.get(partition)
    if (running === undefined) throw new Error(`partition ${partition} is not loaded`)
    const applying = running.matcher.apply(entry)
    this.saveLater(partition, running)
    if (entry.kind === 'snapshotAsked') this.snapshotInBackground(partition, running, entry.revision)
    return applying
  }

  /**
   * Entries that the stored state lacks were truncated after it was compared with the log: a snapshot has them.
   * @throws Error always, so that the partition is loaded again
   */
  skipped(partition: number): never {
    throw new Error(`the location log of partition ${partition} was truncated behind the state that was loaded`)
  }

  /** Revision of the last entry whose decisions are all in the log. */
  storedThrough(partition: number): number {
    const running = this.running.get(partition)
    if (running === undefined) return -1
    const { firstWaiting } = running.outbox
    return firstWaiting === undefined ? running.matcher.revision : Math.min(running.matcher.revision, firstWaiting - 1)
  }

  async leave(partition: number): Promise<void> {
    try {
      if (this.running.get(partition)?.matcher.isDirty === true) await this.save(partition)
    } catch (error) {
      this.options.onFailure?.(partition, error)
    }
    await this.drop(partition)
  }

  /** Number of points decided on and of late ones, over all partitions since the start. */
  counts(): { decided: number; late: number; trackers: number } {
    const sum = { decided: 0, late: 0, trackers: 0 }
    for (const { matcher } of this.running.values()) {
      sum.decided += matcher.counts.decided
      sum.late += matcher.counts.late
      sum.trackers += matcher.state.slots.size
    }
    return sum
  }

  /** Number of kept versions of fences, one for each state of edits that a partition is at. */
  get fenceVersions(): number {
    return this.book.versions
  }

  /** Saves the changes, now. */
  async save(partition: number): Promise<void> {
    const running = this.running.get(partition)
    if (running === undefined) return
    await running.saving
    await this.saveNow(partition, running)
  }

  /** Writes a snapshot of a partition to the log; answers the revision of the location stream up to which it goes. */
  async snapshot(partition: number): Promise<number> {
    const running = this.running.get(partition)
    if (running === undefined) throw new Error(`partition ${partition} is not loaded`)
    return writeSnapshot(this.services.log, partition, running.matcher, this.services.clock.now())
  }

  /** Saves everything and forgets all partitions. */
  async close(): Promise<void> {
    for (const partition of [...this.running.keys()]) await this.leave(partition)
  }

  /** Forgets a partition without saving it. */
  async drop(partition: number): Promise<void> {
    const running = this.running.get(partition)
    if (running === undefined) return
    this.running.delete(partition)
    running.cancelTimer?.()
    running.outbox.close()
    await running.saving?.catch(() => undefined)
    await running.snapshotting
    await running.matcher.dispose()
  }

  /** The state of a partition, for snapshots and figures. */
  partition(partition: number): MatcherPartition | undefined {
    return this.running.get(partition)?.matcher
  }

  /** One partition after the other: each goes on as soon as it can, and others of this process are not held up. */
  private inTurn(restore: () => Promise<number>): Promise<number> {
    const restored = this.lastRestore.then(restore)
    this.lastRestore = restored.catch(() => undefined) // the caller gets the rejection
    return restored
  }

  /** Plans the next save, unless one is planned or running. */
  private saveLater(partition: number, running: Running): void {
    if (running.saving !== undefined) return
    running.cancelTimer ??= this.services.clock.after(SAVE_INTERVAL_MS, () => {
      running.cancelTimer = undefined
      if (running.saving !== undefined || !running.matcher.isDirty) return
      this.saveNow(partition, running).catch((error: unknown) => {
        this.options.onFailure?.(partition, error)
        if (error instanceof StaleCommit) this.onLost?.(partition)
      })
    })
  }

  /** Writes the snapshot requested at that revision, unless one goes as far: a restart requests it again. */
  private snapshotInBackground(partition: number, running: Running, revision: number): void {
    const { log } = this.services
    const write = async (): Promise<void> => {
      if ((await newestSnapshot(log, partition)) < revision) await this.snapshot(partition)
    }
    const onFailure = (error: unknown): void => this.options.onFailure?.(partition, error)
    running.snapshotting = (running.snapshotting ?? Promise.resolve()).then(write).catch(onFailure)
  }

  /** Partitions are saved one after the other: together they would block everything else. */
  private saveNow(partition: number, running: Running): Promise<void> {
    running.saving = this.lastSave
      .then(() => running.matcher.save())
      .finally(() => {
        running.saving = undefined
        if (this.running.get(partition) === running && running.matcher.isDirty) this.saveLater(partition, running)
      })
    this.lastSave = running.saving.catch(() => undefined)
    return running.saving
  }
}

const takenEvent = (now: number): NewEvent => ({
  id: idSource(now).next(),
  type: PARTITION_TAKEN,
  data: encodeJson({ at: now }),
  isJson: true,
  metadata: { actor: 'reactor:match-geofences' },
})

/** Makes this process the only one that appends decisions; answers the revision, and the last decision before it. */
const takeDecisions = async (
  log: EventLog,
  partition: number,
  now: number,
): Promise<{ revision: number; last: LastDecision }> => {
  const revision = await takeStream(log, transitionStream(partition), takenEvent(now))
  return { revision, last: await lastDecision(log, partition) }
}

/** The last decision in the stream, -1 for none. */
const lastDecision = async (log: EventLog, partition: number): Promise<LastDecision> => {
  for await (const { type, data } of eventsBackwards(log, transitionStream(partition), 'end', TAIL_EVENTS)) {
    if (type !== DECIDED) continue
    const { sourceRevision, ordinal, decisions } = decodeJson<Decided>(data)
    return { sourceRevision, ordinal: ordinal + decisions.length - 1 }
  }
  return { sourceRevision: -1, ordinal: -1 }
}
