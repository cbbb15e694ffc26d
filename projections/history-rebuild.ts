import { POINTS, TRANSITIONS, TRIPS } from '../src/engines/clickhouse-sql/history-tables.ts'
import type { RebuiltTable } from '../src/engines/clickhouse-sql/rebuild.ts'
import type { HistoryStore } from '../src/engines/history-store.ts'
import type { LocationEntry } from '../src/features/locations/events.ts'
import type { RebuildReport } from '../src/kit/consumers/rebuild-projection.ts'
import type { DecidedAt } from './decisions-history.ts'
import { decisionBlocks, type DecidedEntry } from './decisions-history.ts'
import { HistoryComparison, type HistoryDifferences } from './history-comparison.ts'
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
const BLOCK_DECISIONS = 10_000

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

/** The same for what the streams of transitions decided: transitions and trips. */
export const rebuildDecisionsHistory = async (
  parts: HistoryRebuild,
  epoch: number,
  entries: AsyncIterable<DecidedEntry & { partition: number }>,
): Promise<HistoryReport> => {
  const transitions = new HistoryComparison(parts.history, TRANSITIONS, parts.since)
  const trips = new HistoryComparison(parts.history, TRIPS, parts.since)
  const [transitionsToken, tripsToken] = [tokens(parts.mark, TRANSITIONS), tokens(parts.mark, TRIPS)]
  let waiting: DecidedAt[] = []
  let decisions = 0
  const take = async (): Promise<void> => {
    for (const { table, block } of decisionBlocks(waiting, epoch))
      await (table === TRIPS ? trips : transitions).take(block, table === TRIPS ? tripsToken() : transitionsToken())
    waiting = []
    decisions = 0
  }
  await transitions.begin()
  await trips.begin()
  for await (const { partition, revision, decided } of entries) {
    if (decided === undefined) continue
    waiting.push({ partition, revision, decided })
    decisions += decided.decisions.length
    if (decisions >= BLOCK_DECISIONS) await take()
  }
  await take()
  await transitions.end()
  await trips.end()
  return reportOf('transitions', [transitions.found, trips.found])
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
