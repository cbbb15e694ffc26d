import {
  besideOf,
  countDifferences,
  createBeside,
  type DifferenceCounts,
  dropBeside,
  emptyBeside,
  insertBeside,
  listDifferences,
  type RebuiltTable,
} from '../src/engines/clickhouse-sql/rebuild.ts'
import { POINTS } from '../src/engines/clickhouse-sql/history-tables.ts'
import { markBeside } from '../src/engines/clickhouse-sql/point-steps.ts'
import { layoutOf } from '../src/engines/clickhouse-sql/layout.ts'
import type { HistoryStore } from '../src/engines/history-store.ts'
import type { Difference } from '../src/kit/consumers/rebuild-projection.ts'

/** Result of comparing a table of the history with the log. */
export interface HistoryDifferences {
  /** Number of rows according to the log. */
  rows: number
  missing: number
  different: number
  /** The first hundred. */
  differences: Difference[]
}

const DIFFERENCES_MAX = 100
/**
 * Bytes of a part: 600,000 points. A comparison reads the keys of the whole table, whatever the size of the part, and
 * keeps the part in memory.
 */
const PART_BYTES_MAX = 48 << 20

/**
 * Compares a table of the history with rows rebuilt from the log, part by part, and inserts the parts that differ again:
 * missing rows are there afterwards, and rows changed under their version are as in the log. Nothing is dropped.
 */
export class HistoryComparison {
  readonly found: HistoryDifferences = { rows: 0, missing: 0, different: 0, differences: [] }
  private readonly history: HistoryStore
  private readonly table: RebuiltTable
  /** Rows from before this time (ms since the epoch) have expired, or soon will: they are not compared. */
  private readonly since: number
  private readonly partBytesMax: number
  /** Bytes that were taken and not compared. */
  private bytes = 0

  constructor(history: HistoryStore, table: RebuiltTable, since: number, partBytesMax = PART_BYTES_MAX) {
    this.history = history
    this.table = table
    this.since = since
    this.partBytesMax = partBytesMax
  }

  async begin(): Promise<void> {
    const { history, table } = this
    const layout = await layoutOf(history)
    for (const sql of [...dropBeside(table, layout), ...createBeside(table, layout)]) await history.command(sql)
  }

  /** Takes one block; `token` must differ from every one before. */
  async take(block: Uint8Array, token: string): Promise<void> {
    this.bytes += block.byteLength // before the block is given away
    await this.history.insert(besideOf(this.table), block, token)
    if (this.bytes >= this.partBytesMax) await this.compare()
  }

  async end(): Promise<void> {
    if (this.bytes > 0) await this.compare()
    for (const sql of dropBeside(this.table, this.history)) await this.history.command(sql)
  }

  private async compare(): Promise<void> {
    const { history, table, since, found } = this
    const counted = countDifferences(table, since)
    const [{ rows, missing, different, older }] = await history.rows<DifferenceCounts>(counted.sql, counted.parameters)
    found.rows += rows
    found.missing += missing
    found.different += different
    if (missing + different > 0) await this.list()
    if (missing + different + older > 0) {
      if (table === POINTS) await history.command(markBeside())
      await history.command(insertBeside(table))
    }
    await history.command(emptyBeside(table, history))
    this.bytes = 0
  }

  private async list(): Promise<void> {
    const { differences } = this.found
    if (differences.length >= DIFFERENCES_MAX) return
    const { sql, parameters } = listDifferences(this.table, this.since, DIFFERENCES_MAX - differences.length)
    const rows = await this.history.rows<{ scope: string; id: string; isMissing: number }>(sql, parameters)
    for (const { scope, id, isMissing } of rows)
      differences.push({ table: this.table, scope, id, live: isMissing ? 'missing' : 'different' })
  }
}
