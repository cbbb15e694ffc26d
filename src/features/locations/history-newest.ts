import { selectPoints, type Place, type PointFilter } from '../../engines/history-sql-points.ts'
import type { HistoryStore } from '../../engines/history-store.ts'
import { NativeReader } from '../../engines/native-reader.ts'

const HOUR_MS = 3_600_000
/** How far back is looked, one after the other, until there are enough points. */
const WINDOWS_MS = [HOUR_MS, 24 * HOUR_MS, 7 * 24 * HOUR_MS, 31 * 24 * HOUR_MS, 366 * 24 * HOUR_MS]
/** A larger page is read over everything at once. */
const PAGE_MAX = 10_000

/**
 * The newest points, newest first. The table is sorted by tracker, so the newest of an organization would be found by
 * sorting all that it has: instead ever longer spans before the end are asked, each of which reads little.
 */
export async function* newestFirst(
  history: HistoryStore, filter: PointFilter, page: { after?: Place; limit: number }, now: number, signal?: AbortSignal,
): AsyncGenerator<Uint8Array> {
  if (filter.trackerIds.length === 0) return
  const end = Math.min(filter.to ?? Number.POSITIVE_INFINITY, page.after?.recordedAt ?? Number.POSITIVE_INFINITY, now + 24 * HOUR_MS)
  for (const windowMs of page.limit > PAGE_MAX ? [] : WINDOWS_MS) {
    const from = startOf(end - windowMs, filter.intervalMs)
    if (from <= (filter.from ?? 0)) break
    const { sql, parameters } = selectPoints({ ...filter, from }, { order: 'desc', ...page })
    const chunks = await collect(history.query(sql, parameters, 'Native', signal))
    if (rowsOf(chunks) < page.limit) continue
    yield* chunks
    return
  }
  const { sql, parameters } = selectPoints(filter, { order: 'desc', ...page })
  yield* history.query(sql, parameters, 'Native', signal)
}

/** A step that is cut by the start of a span would have another first point. */
const startOf = (time: number, intervalMs = 1): number => Math.floor(time / intervalMs) * intervalMs

const collect = async (chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array[]> => {
  const all: Uint8Array[] = []
  for await (const chunk of chunks) all.push(chunk)
  return all
}

const rowsOf = (chunks: readonly Uint8Array[]): number => {
  const reader = new NativeReader()
  let rows = 0
  for (const chunk of chunks) for (const block of reader.push(chunk)) rows += block.rows
  return rows
}
