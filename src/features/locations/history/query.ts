import {
  selectPoints,
  type PointCursor,
  type PointFilter,
  type PointOrder,
  type PointSelection,
} from '../../../engines/clickhouse-sql/points.ts'
import type { Box } from '../../../geo/box.ts'
import type { HistoryReader } from '../../../engines/history-store.ts'
import { holdPage, PAGE_BYTES } from '../../../kit/http/held-page.ts'
import {
  HISTORY_FORMATS,
  JSON_LIMIT,
  type HistoryAnswer,
  type HistoryFormat,
} from '../../../kit/http/history-answer.ts'
import { fingerprintOf } from '../../../kit/http/question-cursor.ts'
import { type LookUpNames, makeAnswer } from './answer-client.ts'
import { newestFirst } from './newest.ts'
import { placeOf } from './point-cursor.ts'
import { parsePointId, type PointMember, rowJson } from './point-json.ts'
import { PointRowsReader } from './point-rows.ts'

/** Points visible to a caller: `all` of the organization's, or those of these trackers. */
export interface HistoryScope {
  organizationId: string
  trackerIds: 'all' | readonly string[]
  /** For formats that show names of trackers; without it none has a name. */
  lookUpNames?: LookUpNames
}

/** The parameters of `GET /location-histories`, parsed. */
export interface HistoryQuestion {
  /** Requested trackers; default: every tracker of the scope. */
  trackerIds?: readonly string[]
  /** Only these points, by `_id`; invalid ids match nothing. */
  ids?: readonly string[]
  /** ms since the epoch, inclusive. */
  from?: number
  to?: number
  bbox?: Box
  simplifyMeters?: number
  intervalSeconds?: number
  format: HistoryFormat
  /** Output of `geojson`: a point for each row (the default), or a line for each piece of a track. */
  geometry?: 'points' | 'lines'
  order?: 'asc' | 'desc'
  limit?: number
  cursor?: string
  /** Rest of the question, not in the members above: a cursor is valid for the same question alone. */
  asked?: unknown
  /** Members of a row to answer besides `_id`; default: all. `gpx` and lines have their own. */
  members?: ReadonlySet<PointMember>
}

/**
 * Answers a question about a scope's points, as a stream in the requested format: only a small page is held in full,
 * and limits are unbounded. Order: `json` newest first unless `order` says otherwise, `geojson` oldest first, `gpx` and
 * lines by tracker and oldest first (a page: the oldest points, unless `order` says otherwise); `csv`, `ndjson` and
 * `parquet` by tracker and oldest first without order, limit and cursor (the order on disk), else newest first unless
 * `order` says otherwise. `now` is ms since the epoch. Resolves with the first bytes, so earlier failures reject it.
 * @throws Failure invalid (cursor), overloaded, engine_down; too_large if over four million points would have to be
 * held.
 */
export const readHistory = async (
  history: HistoryReader,
  scope: HistoryScope,
  question: HistoryQuestion,
  now: number,
  signal?: AbortSignal,
): Promise<HistoryAnswer> => {
  const limit = question.limit ?? (question.format === 'json' ? JSON_LIMIT : undefined)
  const { order, byTracker } = orderOf(question)
  const fingerprint = fingerprintOf([order === 'tracker' ? 'asc' : order, ...askedOf(question)])
  const after = question.cursor === undefined ? undefined : placeOf(question.cursor, fingerprint)
  const chunks = answerOf(history, scope, question, { order, byTracker, after, limit, fingerprint }, now, signal)
  return {
    ...HISTORY_FORMATS[question.format],
    ...(await holdPage(chunks, limit === undefined ? 0 : PAGE_BYTES, signal)),
  }
}

/** The row of one point, or undefined if it is not in the scope. */
export const readPoint = async (
  history: HistoryReader,
  scope: HistoryScope,
  id: string,
): Promise<{ [member: string]: unknown } | undefined> => {
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
  history: HistoryReader,
  scope: HistoryScope,
  trackerId: string,
  from: number,
  to: number,
  signal?: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> => {
  const filter = filterOf(scope, { trackerIds: [trackerId], from, to })
  return (
    await holdPage(
      makeAnswer(chunksOf(history, filter, { order: 'asc' }, signal), { format: 'array', order: 'asc' }),
      0,
      signal,
    )
  ).body
}

/** Everything that determines the points of a walk. */
const askedOf = ({ from, to, bbox, simplifyMeters, intervalSeconds, asked }: HistoryQuestion): unknown[] => [
  from,
  to,
  bbox,
  simplifyMeters,
  intervalSeconds,
  asked,
]

const isTracks = ({ format, geometry }: HistoryQuestion): boolean =>
  format === 'gpx' || (format === 'geojson' && geometry === 'lines')

const orderOf = (question: HistoryQuestion): { order: PointOrder; byTracker?: boolean } => {
  const { format, order, limit, cursor } = question
  if (isTracks(question))
    return limit === undefined && (cursor === undefined || order !== 'desc')
      ? { order: 'tracker' }
      : { order: order ?? 'asc', byTracker: true }
  if (format === 'geojson') return { order: order ?? 'asc' }
  if (format === 'json') return { order: order ?? 'desc' }
  return { order: order ?? (limit === undefined && cursor === undefined ? 'tracker' : 'desc') }
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** Intersection of scope and question. Ids that are no UUIDs match nothing. */
export const filterOf = (scope: HistoryScope, question: Omit<HistoryQuestion, 'format'>): PointFilter => {
  const { bbox, from, to, intervalSeconds } = question
  const places = question.ids?.flatMap((id) => parsePointId(id) ?? [])
  const ofPlaces = places && new Set(places.map(({ trackerId }) => trackerId))
  const named = question.trackerIds?.map((id) => id.toLowerCase()).filter((id) => UUID.test(id))
  const asked = ofPlaces === undefined ? named : (named ?? [...ofPlaces]).filter((id) => ofPlaces.has(id))
  const visible = scope.trackerIds === 'all' ? 'all' : new Set(scope.trackerIds)
  const both =
    asked === undefined ? scope.trackerIds : visible === 'all' ? asked : asked.filter((id) => visible.has(id))
  return {
    organizationId: scope.organizationId,
    trackerIds: both === 'all' ? 'all' : [...new Set(both)],
    places,
    from: whole(from, Math.ceil),
    to: whole(to, Math.floor),
    bboxE7: bbox && [bbox.west, bbox.south, bbox.east, bbox.north],
    intervalMs: intervalSeconds === undefined ? undefined : Math.max(1, Math.round(intervalSeconds * 1000)),
  }
}

const whole = (time: number | undefined, round: (time: number) => number): number | undefined =>
  time === undefined ? undefined : round(time)

interface Walk {
  order: PointOrder
  byTracker?: boolean
  after?: PointCursor
  limit?: number
  fingerprint: string
}

const answerOf = (
  history: HistoryReader,
  scope: HistoryScope,
  question: HistoryQuestion,
  walk: Walk,
  now: number,
  signal?: AbortSignal,
): AsyncGenerator<Uint8Array, string | null> => {
  const { simplifyMeters } = question
  const { lookUpNames } = scope
  const filter = filterOf(scope, question)
  const spec = isTracks(question)
    ? { ...walk, format: question.format === 'gpx' ? ('gpx' as const) : ('lines' as const) }
    : { ...walk, format: question.format, members: question.members }
  // Simplification depends on the whole track: it is simplified first, then paged.
  if (simplifyMeters !== undefined) {
    const held =
      walk.order === 'tracker' && walk.after !== undefined ? { ...spec, order: 'asc' as const, byTracker: true } : spec
    return makeAnswer(chunksOf(history, filter, { order: 'tracker' }, signal), { ...held, simplifyMeters }, lookUpNames)
  }
  const oneMore = walk.limit === undefined ? undefined : walk.limit + 1
  const chunks =
    walk.order === 'desc' && oneMore !== undefined
      ? newestFirst(history, filter, { after: walk.after, limit: oneMore }, now, signal)
      : chunksOf(history, filter, { ...walk, limit: oneMore }, signal)
  return makeAnswer(chunks, { ...spec, after: undefined }, lookUpNames)
}

async function* chunksOf(
  history: HistoryReader,
  filter: PointFilter,
  selection: PointSelection,
  signal?: AbortSignal,
): AsyncGenerator<Uint8Array> {
  if (filter.trackerIds.length === 0) return
  const { sql, parameters } = selectPoints(filter, selection)
  yield* history.query(sql, parameters, 'Native', signal)
}
