import {
  selectNewestTime,
  selectPoints,
  type PointCursor,
  type PointFilter,
} from '../../../engines/clickhouse-sql/points.ts'
import type { HistoryReader } from '../../../engines/history-store.ts'
import { NativeReader } from '../../../engines/clickhouse-sql/native-reader.ts'

const DAY_MS = 86_400_000
/** Spans in which the newest point is searched; then everything. */
const SEARCH_MS = [DAY_MS, 8 * DAY_MS, 64 * DAY_MS]
/** Spans before the newest point in which the page is searched; then everything. */
const WINDOWS_MS = Array.from({ length: 8 }, (_, step) => 60_000 * 8 ** step)
/** Larger pages are read in one query over everything. */
const PAGE_MAX = 10_000

/**
 * The newest points, newest first. The table is sorted by tracker, so finding the newest of an organization would sort
 * all its points: instead, queries cover ever longer spans before the newest point, each of which reads little.
 */
export async function* newestFirst(
  history: HistoryReader,
  filter: PointFilter,
  page: { after?: PointCursor; limit: number },
  now: number,
  signal?: AbortSignal,
): AsyncGenerator<Uint8Array> {
  if (filter.trackerIds.length === 0) return
  const end = page.limit > PAGE_MAX ? undefined : await newestTime(history, filter, page.after, now)
  for (const windowMs of WINDOWS_MS) {
    if (end === undefined) break
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

/** Time of the page's newest point, or undefined if there is none in range. */
const newestTime = async (
  history: HistoryReader,
  filter: PointFilter,
  after: PointCursor | undefined,
  now: number,
): Promise<number | undefined> => {
  const to = Math.min(
    filter.to ?? Number.POSITIVE_INFINITY,
    after?.recordedAt ?? Number.POSITIVE_INFINITY,
    now + DAY_MS,
  )
  if (after !== undefined) return to
  for (const searchMs of SEARCH_MS) {
    const from = Math.max(filter.from ?? 0, to - DAY_MS - searchMs)
    const { sql, parameters } = selectNewestTime({ ...filter, from, to, intervalMs: undefined })
    const [{ points, newest }] = await history.rows<{ points: number; newest: number }>(sql, parameters)
    if (points > 0) return newest
    if (from === (filter.from ?? 0)) return undefined
  }
  return undefined
}

/** Aligned to steps: a step cut by the start of a span would have another first point. */
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
