import {
  countPoints,
  selectForBacktest,
  selectNewest,
  selectNewestSince,
  type Statement,
} from '../../../engines/clickhouse-sql/points.ts'
import { readUuid } from '../../../engines/clickhouse-sql/native-block.ts'
import { NativeReader } from '../../../engines/clickhouse-sql/native-reader.ts'
import type { HistoryStore } from '../../../engines/history-store.ts'
import { filterOf, type HistoryQuestion, type HistoryScope } from './query.ts'
import { PointRowsReader, pointRowsOf, type PointRows } from './point-rows.ts'

/** Newest point of each tracker that was not ahead of the clock, and its place in the log. */
export interface NewestPoints {
  rows: PointRows
  organizationIds: string[]
  /** Epoch and revision of the batch in which each one was logged. */
  epochs: number[]
  revisions: number[]
}

/** Newest point not ahead of the clock of every tracker in every organization, to rebuild the latest positions. */
export const newestPoints = (history: HistoryStore, signal?: AbortSignal): AsyncGenerator<NewestPoints> =>
  readNewest(history, selectNewest(), signal)

/** The same for one tracker, of points logged after a place of the log: one recreated after its deletion. */
export const newestPointSince = (
  history: HistoryStore,
  tracker: { organizationId: string; trackerId: string; epoch: number; revision: number },
  signal?: AbortSignal,
): AsyncGenerator<NewestPoints> => readNewest(history, selectNewestSince(tracker), signal)

async function* readNewest(
  history: HistoryStore,
  { sql, parameters }: Statement,
  signal?: AbortSignal,
): AsyncGenerator<NewestPoints> {
  const reader = new NativeReader()
  for await (const chunk of history.query(sql, parameters, 'Native', signal)) {
    for (const block of reader.push(chunk)) {
      if (block.rows === 0) continue
      const organizations = block.columns.get('organizationId') as Uint8Array
      const versions = new BigUint64Array((block.columns.get('version') as Uint8Array).slice().buffer as ArrayBuffer)
      yield {
        rows: pointRowsOf(block),
        organizationIds: Array.from({ length: block.rows }, (_, row) => readUuid(organizations, row * 16)),
        epochs: Array.from(versions, (version) => 32_767 - Number((version >> 48n) & 32_767n)),
        revisions: Array.from(versions, (version) => 2 ** 48 - 1 - Number(version & 0xffff_ffff_ffffn)),
      }
    }
  }
  reader.end()
}

/**
 * The points that a back-test decides on, by tracker and time: those between the bounds (inclusive) that were not ahead
 * of the clock, and before them each tracker's last one before `from` that satisfies the limit of accuracy.
 */
export async function* backtestPoints(
  history: HistoryStore,
  scope: HistoryScope,
  question: { trackerIds?: readonly string[]; from: number; to: number; accuracyMaxCm?: number },
  signal?: AbortSignal,
): AsyncGenerator<PointRows> {
  const filter = filterOf(scope, question)
  if (filter.trackerIds.length === 0) return
  const { sql, parameters } = selectForBacktest({
    ...filter,
    from: question.from,
    to: question.to,
    accuracyMaxCm: question.accuracyMaxCm,
  })
  const reader = new PointRowsReader()
  for await (const chunk of history.query(sql, parameters, 'Native', signal)) yield* reader.push(chunk)
  reader.end()
}

/** Estimated number of points that a question reads, including repeats not merged yet. */
export const estimatePoints = async (
  history: HistoryStore,
  scope: HistoryScope,
  question: Omit<HistoryQuestion, 'format'>,
): Promise<number> => {
  const filter = filterOf(scope, question)
  if (filter.trackerIds.length === 0) return 0
  const { sql, parameters } = countPoints(filter)
  const [{ points }] = await history.rows<{ points: number }>(sql, parameters)
  return points
}
