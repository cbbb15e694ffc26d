import { POINTS } from '../src/engines/clickhouse-sql/history-tables.ts'
import type { RebuiltTable } from '../src/engines/clickhouse-sql/rebuild.ts'
import type { HistoryStore } from '../src/engines/history-store.ts'
import type { LocationEntry } from '../src/features/locations/events.ts'
import type { RebuildReport } from '../src/kit/consumers/rebuild-projection.ts'
import { HistoryComparison, type HistoryDifferences } from './history-comparison.ts'
import type { EntryRows, Placed } from './history-consumer.ts'
import { PointBlock } from './location-history-block.ts'

export interface HistoryRebuild {
  history: HistoryStore
  /** Names this rebuilding apart from every other one. */
  mark: string
  /** What was recorded before this time has expired, or soon will; ms since the epoch. */
  since: number
}

export interface HistoryReport extends RebuildReport {
  differing: number
  /** Rows that the log has and the history did not. */
  missing: number
  /** Rows that were not as the log says. */
  different: number
}

const BLOCK_ROWS = 50_000
const BLOCK_ENTRIES = 10_000

/** Inserts every point of these entries into the history again and reports what was missing or different there before. */
export const rebuildLocationHistory = async (
  parts: HistoryRebuild,
  epoch: number,
  entries: AsyncIterable<LocationEntry>,
): Promise<HistoryReport> => {
  const block = new PointBlock(BLOCK_ROWS)
  const points = new HistoryComparison(parts.history, POINTS, parts.since)
  const token = tokens(parts.mark, POINTS)
  const take = async (): Promise<void> => {
    if (block.rows > 0) await points.take(block.encode(), token())
    block.clear()
  }
  await points.begin()
  for await (const entry of entries) {
    if (entry.kind !== 'points') continue
    block.add(entry.batch, epoch, entry.revision)
    if (block.rows >= BLOCK_ROWS) await take()
  }
  await take()
  await points.end()
  return reportOf('location-history', [points.found])
}

/** The same for entries that become rows of these tables. */
export const rebuildHistory = async <Entry>(
  parts: HistoryRebuild,
  projection: string,
  names: readonly RebuiltTable[],
  { rowsOf, blocks }: EntryRows<Entry>,
  entries: AsyncIterable<Placed<Entry>>,
): Promise<HistoryReport> => {
  const tables = new Map(
    names.map((name) => [
      name as string,
      { comparison: new HistoryComparison(parts.history, name, parts.since), token: tokens(parts.mark, name) },
    ]),
  )
  let waiting: Placed<Entry>[] = []
  let rows = 0
  const take = async (): Promise<void> => {
    for (const { table, block } of await blocks(waiting)) {
      const { comparison, token } = tables.get(table) as NonNullable<ReturnType<typeof tables.get>>
      await comparison.take(block, token())
    }
    waiting = []
    rows = 0
  }
  for (const { comparison } of tables.values()) await comparison.begin()
  for await (const placed of entries) {
    rows += rowsOf(placed.entry)
    if (rowsOf(placed.entry) > 0) waiting.push(placed)
    if (rows >= BLOCK_ENTRIES) await take()
  }
  if (waiting.length > 0) await take()
  for (const { comparison } of tables.values()) await comparison.end()
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
