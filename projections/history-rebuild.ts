import type { RebuiltTable } from '../src/engines/clickhouse-sql/rebuild.ts'
import type { HistoryStore } from '../src/engines/history-store.ts'
import type { RebuildReport } from '../src/kit/consumers/rebuild-projection.ts'
import { HistoryComparison, type HistoryDifferences } from './history-comparison.ts'
import type { Placed, RowBuffer } from './history-consumer.ts'

export interface HistoryRebuild {
  history: HistoryStore
  /** Distinguishes this rebuild from every other one. */
  mark: string
  /** Data recorded before this time has expired, or soon will; ms since the epoch. */
  since: number
  /** Erases from the history the rows erased while it was rebuilt, or before. */
  eraseAgain(): Promise<void>
}

export interface HistoryReport extends RebuildReport {
  differing: number
  /** Rows that the log has and the history did not. */
  missing: number
  /** Rows that differed from the log. */
  different: number
}

/**
 * Inserts the rows of these entries into their tables again and reports the rows that were missing or different there
 * before. Erased rows stay out: those of entries by `buffer`, those erased meanwhile at the end.
 */
export const rebuildHistory = async <Entry>(
  parts: HistoryRebuild,
  projection: string,
  names: readonly RebuiltTable[],
  buffer: RowBuffer<Entry>,
  entries: AsyncIterable<Placed<Entry>>,
): Promise<HistoryReport> => {
  const tables = new Map(
    names.map((name) => [
      name as string,
      { comparison: new HistoryComparison(parts.history, name, parts.since), token: tokens(parts.mark, name) },
    ]),
  )
  const take = async (): Promise<void> => {
    for (const { table, block } of await buffer.blocks()) {
      const { comparison, token } = tables.get(table) as NonNullable<ReturnType<typeof tables.get>>
      await comparison.take(block, token())
    }
    buffer.clear()
  }
  for (const { comparison } of tables.values()) await comparison.begin()
  for await (const { entry, partition } of entries) {
    buffer.add(entry, partition)
    if (buffer.isFull) await take()
  }
  await take()
  for (const { comparison } of tables.values()) await comparison.end()
  await parts.eraseAgain()
  return reportOf(
    projection,
    [...tables.values()].map(({ comparison }) => comparison.found),
  )
}

const tokens = (mark: string, table: RebuiltTable): (() => string) => {
  let part = 0
  return () => `rebuild:${mark}:${table}:${part++}`
}

const reportOf = (projection: string, found: readonly HistoryDifferences[]): HistoryReport => {
  const sum = (name: 'rows' | 'missing' | 'different'): number => found.reduce((total, one) => total + one[name], 0)
  const [missing, different] = [sum('missing'), sum('different')]
  return {
    projection,
    rows: sum('rows'),
    differing: missing + different,
    missing,
    different,
    differences: found.flatMap(({ differences }) => differences).slice(0, 100),
  }
}
