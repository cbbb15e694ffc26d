import { PARQUET_COLUMNS, selectPoints, type Place, type PointFilter, type PointOrder, type PointSelection } from '../../engines/history-sql-points.ts'
import type { HistoryStore } from '../../engines/history-store.ts'
import { invalid } from '../../kernel/errors.ts'
import { makeAnswer } from './history-answer-client.ts'
import { decodeCursor } from './history-cursor.ts'
import { FORMATS, parsePointId, rowJson, type PointFormat } from './history-formats.ts'
import { newestFirst } from './history-newest.ts'
import { PointRowsReader } from './point-rows.ts'

/** Whose points a caller may see: `all` of the organization's, or those of these trackers. */
export interface HistoryScope {
  organizationId: string
  trackerIds: 'all' | readonly string[]
}

/** The parameters of `GET /location-histories`, parsed. */
export interface HistoryQuestion {
  /** Asked for; left out: every tracker of the scope. */
  trackerIds?: readonly string[]
  /** ms since the epoch, inclusive. */
  from?: number
  to?: number
  /** West, south, east, north in degrees; west > east crosses the antimeridian. */
  bbox?: readonly [number, number, number, number]
  simplifyMeters?: number
  intervalSeconds?: number
  format: PointFormat
  order?: 'asc' | 'desc'
  limit?: number
  cursor?: string
}

export interface HistoryAnswer {
  contentType: string
  /** Without the dot. */
  fileExtension: string
  /** To be read to its end, or ended by `return`: that ends the query too. */
  body: AsyncIterable<Uint8Array>
}

/** Rows of `json` where no limit is given; the other formats have no default limit. */
export const JSON_LIMIT = 500

/**
 * Answers a question to the points of a scope, as a stream in the format asked for: nothing is held whole, there is no
 * largest limit. Order: `json` newest first unless `order` says otherwise, `geojson` oldest first, `gpx` by tracker and
 * oldest first; `csv`, `ndjson` and `parquet` by tracker and oldest first where neither order, limit nor cursor is
 * given (the order of the disk), else newest first unless `order` says otherwise. `now` is ms since the epoch. Resolves
 * when the first bytes are there, so what fails before fails here.
 * @throws Failure invalid (cursor; simplify with parquet), overloaded, engine_down; too_large where over four million simplified points would have to be sorted.
 */
export const readHistory = async (
  history: HistoryStore, scope: HistoryScope, question: HistoryQuestion, now: number, signal?: AbortSignal,
): Promise<HistoryAnswer> => {
  if (question.format === 'parquet' && question.simplifyMeters !== undefined) throw invalid('/simplify', 'cannot be combined with format=parquet')
  const order = orderOf(question)
  const limit = question.limit ?? (question.format === 'json' ? JSON_LIMIT : undefined)
  const after = question.cursor === undefined || order === 'tracker' ? undefined : decodeCursor(question.cursor, order)
  const filter = filterOf(scope, question)
  const body = question.format === 'parquet'
    ? parquet(history, filter, { order, after, limit }, signal)
    : text(history, filter, { order, after, limit }, { ...question, format: question.format }, now, signal)
  return { ...FORMATS[question.format], body: await begun(body, signal) }
}

/** The row of one point, or undefined where the scope has none. */
export const readPoint = async (history: HistoryStore, scope: HistoryScope, id: string): Promise<{ [member: string]: unknown } | undefined> => {
  const place = parsePointId(id)
  if (place === undefined) return undefined
  const { trackerId, recordedAt } = place
  const filter = filterOf(scope, { trackerIds: [trackerId], from: recordedAt, to: recordedAt })
  if (filter.trackerIds.length === 0) return undefined
  const { sql, parameters } = selectPoints(filter, { order: 'asc', limit: 1 })
  const reader = new PointRowsReader()
  for await (const chunk of history.query(sql, parameters, 'Native')) {
    for (const rows of reader.push(chunk)) return JSON.parse(rowJson(rows, 0)) as { [member: string]: unknown }
  }
  return undefined
}

/** The points of one tracker between two times (inclusive), oldest first: the text of a JSON array of rows. */
export const readTrack = async (
  history: HistoryStore, scope: HistoryScope, trackerId: string, from: number, to: number, signal?: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> => {
  const filter = filterOf(scope, { trackerIds: [trackerId], from, to })
  return begun(makeAnswer(chunksOf(history, filter, { order: 'asc' }, signal), { format: 'array', order: 'asc' }), signal)
}

const orderOf = ({ format, order, limit, cursor }: HistoryQuestion): PointOrder => {
  if (format === 'gpx') return 'tracker'
  if (format === 'geojson') return order ?? 'asc'
  if (format === 'json') return order ?? 'desc'
  return order ?? (limit === undefined && cursor === undefined ? 'tracker' : 'desc')
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** What both the scope and the question mean. Ids that are no UUIDs name nothing. */
export const filterOf = (scope: HistoryScope, question: Omit<HistoryQuestion, 'format'>): PointFilter => {
  const { trackerIds, bbox, from, to, intervalSeconds } = question
  const asked = trackerIds?.map((id) => id.toLowerCase()).filter((id) => UUID.test(id))
  const visible = scope.trackerIds === 'all' ? 'all' : new Set(scope.trackerIds)
  const both = asked === undefined ? scope.trackerIds : visible === 'all' ? asked : asked.filter((id) => visible.has(id))
  return {
    organizationId: scope.organizationId,
    trackerIds: both === 'all' ? 'all' : [...new Set(both)],
    from: whole(from, Math.ceil),
    to: whole(to, Math.floor),
    bboxE7: bbox && [e7(bbox[0]), e7(bbox[1]), e7(bbox[2]), e7(bbox[3])],
    intervalMs: intervalSeconds === undefined ? undefined : Math.max(1, Math.round(intervalSeconds * 1000)),
  }
}

const e7 = (degrees: number): number => Math.round(degrees * 1e7)
const whole = (time: number | undefined, round: (time: number) => number): number | undefined => (time === undefined ? undefined : round(time))

interface Walk {
  order: PointOrder
  after?: Place
  limit?: number
}

const text = (
  history: HistoryStore, filter: PointFilter, walk: Walk, question: HistoryQuestion & { format: Exclude<PointFormat, 'parquet'> },
  now: number, signal?: AbortSignal,
): AsyncGenerator<Uint8Array> => {
  const { format, simplifyMeters } = question
  if (simplifyMeters !== undefined) {
    return makeAnswer(chunksOf(history, filter, { order: 'tracker' }, signal), { format, simplifyMeters, ...walk })
  }
  const oneMore = walk.limit === undefined ? undefined : walk.limit + 1
  const chunks = walk.order === 'desc' && oneMore !== undefined
    ? newestFirst(history, filter, { after: walk.after, limit: oneMore }, now, signal)
    : chunksOf(history, filter, { ...walk, limit: oneMore }, signal)
  return makeAnswer(chunks, { format, order: walk.order, limit: walk.limit })
}

async function* parquet(history: HistoryStore, filter: PointFilter, walk: Walk, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
  const { sql, parameters } = selectPoints(filter, walk, PARQUET_COLUMNS)
  yield* history.query(sql, parameters, 'Parquet', signal)
}

async function* chunksOf(history: HistoryStore, filter: PointFilter, selection: PointSelection, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
  if (filter.trackerIds.length === 0) return
  const { sql, parameters } = selectPoints(filter, selection)
  yield* history.query(sql, parameters, 'Native', signal)
}

/** The same chunks, with the first one already there. The signal ends them also where nobody reads on. */
const begun = async (chunks: AsyncGenerator<Uint8Array>, signal?: AbortSignal): Promise<AsyncIterable<Uint8Array>> => {
  const first = await chunks.next()
  signal?.addEventListener('abort', () => void chunks.return(undefined), { once: true })
  return (async function* () {
    try {
      if (first.done) return
      yield first.value
      yield* chunks
    } finally {
      await chunks.return(undefined)
    }
  })()
}
