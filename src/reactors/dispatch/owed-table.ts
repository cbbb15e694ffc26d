import type { Checkpoint, TableStore } from '../../engines/table-store.ts'
import { OwnedCheckpoint } from '../../kit/consumers/checkpoint.ts'
import type { RowChange } from '../../kernel/table.ts'
import { dueKey, keyEnd, orderKey, OWED_RUNS, rowOf, runOf, scopeOf, type Run } from './run.ts'

interface Change {
  /** Absent: the row is deleted. */
  run?: Run
}

const COMMIT_ROWS_MAX = 2_000
/** Positions of the log that may be heard again after a restart: they rise with every point, and alone are worth no commit. */
const HEARD_STEP = 65_536

/** Under which name a partition's dispatcher stores where it stands. */
export const dispatchCheckpoint = (partition: number): string => scopeOf(partition)

/** The rows of one partition's owed runs: collects changes and stores them together, about once a second. */
export class OwedTable {
  private readonly tables: TableStore
  private readonly partition: number
  private owned: OwnedCheckpoint | undefined
  private changes = new Map<string, Change>()
  private storing: Promise<void> = Promise.resolve()
  private storedAt = ''

  constructor(tables: TableStore, partition: number) {
    this.tables = tables
    this.partition = partition
  }

  get changesWaiting(): number {
    return this.changes.size
  }

  /** Makes this process the owner; answers where the partition's dispatcher stands. */
  async take(): Promise<Checkpoint | undefined> {
    this.owned = await OwnedCheckpoint.take(this.tables, dispatchCheckpoint(this.partition))
    return this.owned.at
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

  /** The run was over since rows were read. */
  isDeleted(runId: string): boolean {
    const change = this.changes.get(runId)
    return change !== undefined && change.run === undefined
  }

  async *all(): AsyncIterable<Run> {
    for await (const { row } of this.tables.scan(OWED_RUNS.name, scopeOf(this.partition))) yield runOf(row)
  }

  /** These runs as they are, changes counted; those that are over are left out. */
  async get(runIds: readonly string[]): Promise<Run[]> {
    const asked = runIds.filter((runId) => !this.changes.has(runId))
    const rows = asked.length === 0 ? [] : await this.tables.getMany(OWED_RUNS.name, scopeOf(this.partition), asked)
    const changed = runIds.flatMap((runId) => this.changes.get(runId)?.run ?? [])
    return [...rows.flatMap((row) => (row === undefined ? [] : [runOf(row)])), ...changed]
  }

  /** Runs that keep their order, by sequence, from right after one. */
  inOrder(automationId: string, afterSequence: number, limit: number): Promise<Run[]> {
    return this.range('orderKey', orderKey(automationId, afterSequence + 1), keyEnd(automationId), limit)
  }

  /** Runs that go on alone, by when they are due. */
  alone(automationId: string, limit: number): Promise<Run[]> {
    return this.range('dueKey', dueKey(automationId, 0), keyEnd(automationId), limit)
  }

  /** Stores what changed, then the checkpoint. One store at a time; what a failed one left is stored by the next. */
  store(at: () => Checkpoint): Promise<void> {
    this.storing = this.storing.catch(() => undefined).then(() => this.commit(at()))
    return this.storing
  }

  private async range(field: string, from: string, to: string, limit: number): Promise<Run[]> {
    const { rows } = await this.tables.find(OWED_RUNS.name, scopeOf(this.partition), {
      range: { field, from, to },
      sort: { field, order: 'asc' },
      limit,
    })
    return rows.map(({ row }) => runOf(row))
  }

  private async commit(at: Checkpoint): Promise<void> {
    const taken = this.changes
    const stamp = JSON.stringify({ ...at, automations: Math.floor(at.automations / HEARD_STEP) })
    if (taken.size === 0 && stamp === this.storedAt) return
    this.changes = new Map()
    try {
      const rows = [...taken].map(([runId, change]) => this.rowChange(runId, change))
      while (rows.length > COMMIT_ROWS_MAX) await this.owned?.commit(rows.splice(0, COMMIT_ROWS_MAX))
      await this.owned?.commit(rows, at)
      this.storedAt = stamp
    } catch (error) {
      for (const [runId, change] of taken) if (!this.changes.has(runId)) this.changes.set(runId, change)
      throw error
    }
  }

  private rowChange(runId: string, { run }: Change): RowChange {
    if (run !== undefined) run.stored = true
    return {
      table: OWED_RUNS.name,
      scope: scopeOf(this.partition),
      id: runId,
      row: run === undefined ? null : rowOf(run),
    }
  }
}
