import type { Checkpoint } from '../../engines/table-store.ts'
import {
  ATTEMPTS_MADE,
  RUN_REOPENED,
  RUNS_OWED,
  RUNS_SKIPPED,
  runIdOf,
  type AttemptMade,
  type AttemptsMade,
  type RunReopened,
  type RunsOwed,
  type RunsSkipped,
} from '../../features/automations/events.ts'
import type { Fact } from '../../kernel/event.ts'
import {
  type Backlog,
  countOf,
  hasRoom,
  newBacklog,
  RUNS_IN_MEMORY_MAX,
  RUNS_LOW,
  wantsAlone,
  wantsInOrder,
} from './backlog.ts'
import type { OwedRows, Run } from './owed-rows.ts'
import type { SteadyTime } from './retry-schedule.ts'

/** State of a run before its first attempt. */
const FRESH = { attempts: 0, dueAt: 0, delayMs: 0, alone: false }

/** Progress of a partition, as its checkpoint keeps it. */
interface Progress {
  /** Revision in `automation-runs-<partition>`. */
  runs: number
  /** Revision in `transitions-<partition>`. */
  source: number
  /** Sequence of the next run. */
  sequence: number
  /** Position up to which the events of automations were read. */
  automations: number
  /** Position up to which events of tasks and records are owed. */
  log: number
}

/**
 * Owed and unpaid runs of one partition: the fold of its stream. Every event sets, none adds, so replaying the tail of
 * the stream changes nothing. The oldest runs of each automation are in memory; every run is a row in the table once it
 * was stored, and runs in the table only are read back in order.
 */
export class PendingRuns {
  readonly partition: number
  /** Runs that a source event owed before all of it was owed. */
  readonly partial = new Set<string>()
  /** The same for an event of a task or record. */
  readonly partialLog = new Set<string>()
  /** Position of that event; undefined where none was cut short. */
  cutAt: number | undefined
  cutLogAt: number | undefined
  readonly rows: OwedRows
  private readonly at: Progress = { runs: -1, source: -1, sequence: 1, automations: -1, log: -1 }
  /** `at` when no source event was partly owed. */
  private storable: Progress = { ...this.at }
  private readonly backlogs = new Map<string, Backlog>()
  /** Before, a run in the stream may have its row already, ahead of the checkpoint. */
  private isRecalled = false
  private readonly time: SteadyTime

  constructor(partition: number, rows: OwedRows, time: SteadyTime) {
    this.partition = partition
    this.rows = rows
    this.time = time
  }

  get progress(): Readonly<Progress> {
    return this.at
  }

  get(automationId: string): Backlog | undefined {
    return this.backlogs.get(automationId)
  }

  all(): Backlog[] {
    return [...this.backlogs.values()]
  }

  count(automationId: string): number {
    const backlog = this.backlogs.get(automationId)
    return backlog === undefined ? 0 : countOf(backlog)
  }

  /** Sets the progress of the partition, from a checkpoint. */
  standAt(progress: Checkpoint | Partial<Progress>): void {
    Object.assign(this.at, progress)
    this.noteStorable()
  }

  /** Everything up to this source event is owed. */
  sourceDone(revision: number): void {
    this.at.source = revision
    if (revision >= (this.cutAt ?? revision)) {
      this.partial.clear()
      this.cutAt = undefined
    }
    this.noteStorable()
  }

  /** Events of tasks and records up to this position are owed. */
  heardLog(position: number): void {
    this.at.log = position
    if (position >= (this.cutLogAt ?? position)) {
      this.partialLog.clear()
      this.cutLogAt = undefined
    }
    this.noteStorable()
  }

  heardAutomations(position: number): void {
    this.at.automations = position
    this.noteStorable()
  }

  /** Counts the rows of the table and takes the first of each automation into memory, and nothing else. */
  async recall(): Promise<void> {
    this.backlogs.clear()
    for await (const run of this.rows.all()) {
      const dueAt = this.time.atMostIn(run.delayMs, run.dueAt)
      if (dueAt < run.dueAt) this.rows.put({ ...run, dueAt })
      const backlog = this.backlogOf(run)
      if (run.alone) backlog.aloneStored++
      else backlog.inOrderStored++
    }
    this.isRecalled = true
    for (const backlog of this.backlogs.values()) await this.refill(backlog)
  }

  /** Applies an event of the stream to the runs that are in memory. */
  apply({ type, data }: Fact, revision: number): void {
    if (type === RUNS_OWED) this.owed(data as RunsOwed)
    else if (type === ATTEMPTS_MADE) for (const attempt of (data as AttemptsMade).attempts) this.attempted(attempt)
    else if (type === RUNS_SKIPPED)
      for (const { runId } of (data as RunsSkipped).runs) this.ended(runId, (data as RunsSkipped).automationId)
    else if (type === RUN_REOPENED) this.reopened(data as RunReopened)
    this.at.runs = revision
    this.noteStorable()
  }

  /** Takes these runs into memory, out of their order: to end them, or for a repeated event. */
  async fetch(runIds: readonly string[], automationId: string): Promise<void> {
    const order = this.backlogs.get(automationId)?.order
    const missing = runIds.filter((runId) => order?.has(runId) !== true)
    for (const run of await this.rows.get(missing)) {
      const backlog = this.backlogOf(run)
      if (backlog.order.has(run.runId)) continue
      if (run.alone) backlog.aloneStored = Math.max(0, backlog.aloneStored - 1)
      else backlog.inOrderStored = Math.max(0, backlog.inOrderStored - 1)
      backlog.order.add(run)
    }
  }

  /** Reads runs back from the table where memory has room for them; resolves true when it did. */
  async refill(backlog: Backlog): Promise<boolean> {
    if (backlog.reading || !hasRoom(backlog)) return false
    backlog.reading = true
    try {
      // Runs that come while rows are stored and read may be missing: they stay counted, and are read the next time.
      const { inOrderStored, aloneStored } = backlog
      await this.store()
      if (wantsInOrder(backlog)) await this.refillInOrder(backlog, inOrderStored)
      if (wantsAlone(backlog)) await this.refillAlone(backlog, aloneStored)
      return true
    } finally {
      backlog.reading = false
    }
  }

  store(): Promise<void> {
    return this.rows.store(() => ({ ...this.storable }))
  }

  private noteStorable(): void {
    if (this.partial.size + this.partialLog.size === 0) this.storable = { ...this.at }
  }

  private backlogOf(run: Run): Backlog {
    let backlog = this.backlogs.get(run.automationId)
    if (backlog === undefined)
      this.backlogs.set(run.automationId, (backlog = newBacklog(run.automationId, run.trigger.organizationId)))
    return backlog
  }

  private owed({ source, sourceAt, complete, owedAt, firstSequence, owed }: RunsOwed): void {
    const partial = source === 'log' ? this.partialLog : this.partial
    let sequence = firstSequence
    for (const { trigger, runs } of owed) {
      for (const { automationId, reason } of runs) {
        const runId = runIdOf(trigger, automationId)
        if (!complete) partial.add(runId)
        const run = { runId, automationId, sequence: sequence++, trigger, owedAt, ...FRESH, stored: !this.isRecalled }
        if (reason === undefined) this.admit(run)
      }
    }
    this.at.sequence = Math.max(this.at.sequence, sequence)
    if (complete && source === 'log') this.heardLog(sourceAt)
    else if (complete) this.sourceDone(sourceAt)
    else if (source === 'log') this.cutLogAt = sourceAt
    else this.cutAt = sourceAt
  }

  /** Takes a new run into memory, unless older ones of its automation fill it or wait in the table. */
  private admit(run: Run): void {
    const backlog = this.backlogOf(run)
    if (backlog.order.has(run.runId)) return
    this.rows.put(run)
    if (run.alone) {
      backlog.order.add(run)
      this.spillAlone(backlog)
    } else if (backlog.inOrderStored > 0 || backlog.order.inOrder >= RUNS_IN_MEMORY_MAX) backlog.inOrderStored++
    else {
      backlog.lastSequence = run.sequence
      backlog.order.add(run)
    }
  }

  private attempted(attempt: AttemptMade): void {
    if (attempt.status !== 'pending') return this.ended(attempt.runId, attempt.automationId)
    const backlog = this.backlogs.get(attempt.automationId)
    const { failures, at, dueAt = at, delayMs = 0 } = attempt
    const standing = { attempts: failures, dueAt: this.time.dueAt(dueAt, delayMs), delayMs }
    const run = backlog?.order.again(attempt.runId, standing)
    if (backlog === undefined || run === undefined) return
    this.rows.put(run)
    if (run.alone) this.spillAlone(backlog)
  }

  private ended(runId: string, automationId: string): void {
    const backlog = this.backlogs.get(automationId)
    const run = backlog?.order.end(runId)
    if (backlog === undefined || run === undefined) return
    this.rows.delete(run)
    if (countOf(backlog) === 0 && !backlog.reading) this.backlogs.delete(automationId)
  }

  private reopened({ runId, automationId, sequence, failures: attempts, trigger, owedAt }: RunReopened): void {
    const dueNow = { dueAt: this.time.now(), delayMs: 0 }
    this.admit({ runId, automationId, sequence, trigger, owedAt, attempts, ...dueNow, alone: true, stored: true })
  }

  /** Keeps in memory only the runs that are due first. */
  private spillAlone(backlog: Backlog): void {
    const before = backlog.order.alone
    const over =
      before > RUNS_IN_MEMORY_MAX
        ? backlog.order.dropAlone(RUNS_LOW)
        : backlog.order.dropAloneFrom(backlog.aloneStoredDueAt)
    backlog.aloneStored += before - backlog.order.alone
    if (over !== undefined) backlog.aloneStoredDueAt = Math.min(backlog.aloneStoredDueAt, over)
  }

  private async refillInOrder(backlog: Backlog, counted: number): Promise<void> {
    const { runs, last } = await this.rows.inOrder(backlog.automationId, backlog.lastSequence, RUNS_IN_MEMORY_MAX)
    for (const run of runs) {
      backlog.lastSequence = Math.max(backlog.lastSequence, run.sequence)
      backlog.order.add(run)
    }
    const left = last ? 0 : Math.max(1, counted - runs.length)
    backlog.inOrderStored = left + Math.max(0, backlog.inOrderStored - counted)
  }

  private async refillAlone(backlog: Backlog, counted: number): Promise<void> {
    const { runs, last } = await this.rows.alone(backlog.automationId, 2 * RUNS_IN_MEMORY_MAX)
    const missing = runs.filter(({ runId }) => !backlog.order.has(runId))
    const taken = missing.slice(0, RUNS_IN_MEMORY_MAX - backlog.order.alone)
    for (const run of taken) backlog.order.add(run)
    const spilled = Math.max(0, backlog.aloneStored - counted)
    const spilledDueAt = spilled > 0 ? backlog.aloneStoredDueAt : Number.POSITIVE_INFINITY
    const isAll = last && taken.length === missing.length
    const nextDueAt = isAll ? undefined : (missing[taken.length] ?? runs.at(-1))?.dueAt
    backlog.aloneStored = (isAll ? 0 : Math.max(1, counted - taken.length)) + spilled
    backlog.aloneStoredDueAt = Math.min(spilledDueAt, nextDueAt ?? Number.POSITIVE_INFINITY)
  }
}
