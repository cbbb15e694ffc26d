import type { Checkpoint, TableStore } from '../../engines/table-store.ts'
import type { RunTrigger } from '../../features/automations/events.ts'
import type { Row, RowChange, TableDeclaration } from '../../kernel/table.ts'
import { OwnedCheckpoint } from '../../kit/consumers/checkpoint.ts'

/** An owed and unpaid run. */
export interface Run {
  runId: string
  automationId: string
  sequence: number
  trigger: RunTrigger
  /** Time at which it was owed, ms since the epoch. */
  owedAt: number
  /** Failed attempts so far. */
  attempts: number
  /** Due time of the next attempt, in steady time; 0 for at once. */
  dueAt: number
  delayMs: number
  /** Later runs no longer wait for this one. */
  alone: boolean
  /** Its row is in the table, or on its way there. */
  stored: boolean
}

/** State that survives a restart: one row for each owed and unpaid run, in the scope of its partition. */
export const OWED_RUNS: TableDeclaration = {
  name: 'dispatch-run',
  version: 2,
  lives: 'partition',
  range: ['orderKey', 'dueKey'],
}

/** Name of the consumer that writes the rows of a partition, and their scope. */
export const dispatcherOf = (partition: number): string => `dispatcher-${partition}`

const COMMIT_ROWS_MAX = 2_000
/** Stores that may be skipped when only the position up to which automations were read has moved. */
const STORES_SKIPPED_MAX = 60

interface Change {
  /** Absent: the row is deleted. */
  run?: Run
}

type Changes = ReadonlyMap<string, Change>

/** The rows of one partition's owed runs: collects changes and stores them together, every few seconds. */
export class OwedRows {
  private readonly tables: TableStore
  private readonly scope: string
  private owned: OwnedCheckpoint | undefined
  private changes = new Map<string, Change>()
  /** Changes on their way to the table. */
  private leaving: Changes = new Map()
  private storing: Promise<void> = Promise.resolve()
  private skipped = 0

  constructor(tables: TableStore, partition: number) {
    this.tables = tables
    this.scope = dispatcherOf(partition)
  }

  get changesWaiting(): number {
    return this.changes.size
  }

  /** Makes this process the owner; answers the checkpoint of the partition's dispatcher. */
  async take(): Promise<Checkpoint | undefined> {
    this.owned = await OwnedCheckpoint.take(this.tables, this.scope)
    return this.owned.reached
  }

  checkpoint(): Checkpoint | undefined {
    return this.owned?.at
  }

  put(run: Run): void {
    this.changes.set(run.runId, { run })
  }

  delete(run: Run): void {
    if (run.stored) this.changes.set(run.runId, {})
    else this.changes.delete(run.runId)
  }

  async *all(): AsyncIterable<Run> {
    for await (const { row } of this.tables.scan(OWED_RUNS.name, this.scope)) yield runOf(row)
  }

  /** The present state of these runs, with unstored changes; ended ones are left out. */
  async get(runIds: readonly string[]): Promise<Run[]> {
    const asked = runIds.filter((runId) => this.changeOf(runId) === undefined)
    const rows = asked.length === 0 ? [] : await this.tables.getMany(OWED_RUNS.name, this.scope, asked)
    const changed = runIds.flatMap((runId) => this.changeOf(runId)?.run ?? [])
    return [...rows.flatMap((row) => (row === undefined ? [] : [runOf(row)])), ...changed]
  }

  /** Runs that keep their order, by sequence, from right after one. `last`: the table has no more of them. */
  async inOrder(automationId: string, afterSequence: number, limit: number): Promise<{ runs: Run[]; last: boolean }> {
    const from = keyOf(automationId, afterSequence + 1)
    const runs = await this.range('orderKey', from, keyEnd(automationId), limit)
    return { runs: this.current(runs, (run) => !run.alone), last: runs.length < limit }
  }

  /** Runs that go on alone, by due time. */
  async alone(automationId: string, limit: number): Promise<{ runs: Run[]; last: boolean }> {
    const runs = await this.range('dueKey', keyOf(automationId, 0), keyEnd(automationId), limit)
    return { runs: this.current(runs, (run) => run.alone), last: runs.length < limit }
  }

  /** Stores the changes, then the checkpoint. One store at a time; the next one stores the rest of a failed one. */
  store(at: () => Checkpoint): Promise<void> {
    this.storing = this.storing.catch(() => undefined).then(() => this.commit(at()))
    return this.storing
  }

  private changeOf(runId: string): Change | undefined {
    return this.changes.get(runId) ?? this.leaving.get(runId)
  }

  /** The rows read, with the present state of their runs. */
  private current(read: readonly Run[], isWanted: (run: Run) => boolean): Run[] {
    return read.flatMap((row) => {
      const change = this.changeOf(row.runId)
      const run = change === undefined ? row : change.run
      return run !== undefined && isWanted(run) ? [run] : []
    })
  }

  private async range(field: string, from: string, to: string, limit: number): Promise<Run[]> {
    const { rows } = await this.tables.find(OWED_RUNS.name, this.scope, {
      range: { field, from, to },
      sort: { field, order: 'asc' },
      limit,
    })
    return rows.map(({ row }) => runOf(row))
  }

  private async commit(at: Checkpoint): Promise<void> {
    const leaving = this.changes
    if (leaving.size === 0 && this.isHeardAlone(at) && this.skipped++ < STORES_SKIPPED_MAX) return
    this.skipped = 0
    this.changes = new Map()
    this.leaving = leaving
    try {
      const rows = [...leaving].map(([runId, change]) => this.rowChange(runId, change))
      await this.owned?.commitInParts(rows, at, COMMIT_ROWS_MAX)
    } catch (error) {
      for (const [runId, change] of leaving) if (!this.changes.has(runId)) this.changes.set(runId, change)
      throw error
    } finally {
      this.leaving = new Map()
    }
  }

  /** Nothing moved but, perhaps, the positions up to which the log was read, which move with every point. */
  private isHeardAlone(at: Checkpoint): boolean {
    const stored = this.owned?.at
    return (
      stored !== undefined &&
      Object.keys(at).every((name) => name === 'automations' || name === 'log' || at[name] === stored[name])
    )
  }

  private rowChange(runId: string, { run }: Change): RowChange {
    if (run !== undefined) run.stored = true
    return { table: OWED_RUNS.name, scope: this.scope, id: runId, row: run === undefined ? null : rowOf(run) }
  }
}

const rowOf = ({ stored: _stored, ...run }: Run): Row =>
  run.alone
    ? { dueKey: keyOf(run.automationId, run.dueAt), ...run }
    : { orderKey: keyOf(run.automationId, run.sequence), ...run }

const runOf = (row: Row): Run => ({
  runId: row.runId as string,
  automationId: row.automationId as string,
  sequence: row.sequence as number,
  trigger: row.trigger as RunTrigger,
  owedAt: row.owedAt as number,
  attempts: row.attempts as number,
  dueAt: row.dueAt as number,
  delayMs: row.delayMs as number,
  alone: row.alone as boolean,
  stored: true,
})

/** Numbers are padded to the digits of 2^53, so that keys sort as they do. */
const keyOf = (automationId: string, number: number): string => `${automationId}:${String(number).padStart(16, '0')}`
/** Sorts after every key of the automation. */
const keyEnd = (automationId: string): string => `${automationId};`
