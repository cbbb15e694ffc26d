import { selectTransitions, type TransitionFilter, type TransitionPlace } from '../../engines/history-sql-decisions.ts'
import type { HistoryStore } from '../../engines/history-store.ts'
import { invalid } from '../../kernel/errors.ts'
import type { PointValue } from './events.ts'
import { pointShown, type PointShown } from './views.ts'

export interface TransitionRow {
  _id: string
  trackerId: string
  geofenceId: string
  geofenceGroupId: string
  type: 'entry' | 'leave'
  /** RFC 3339 with milliseconds. */
  at: string
  cause: 'point' | 'geofence' | 'tracker'
  point: PointShown
}

export type TransitionFormat = 'json' | 'ndjson' | 'csv' | 'geojson'

export interface TransitionQuestion extends TransitionFilter {
  format: TransitionFormat
  /** Default newest first; `geojson` oldest first. */
  order?: 'asc' | 'desc'
  limit?: number
  cursor?: string
}

interface Stored extends Omit<TransitionRow, 'at' | 'point'> {
  atMs: number
  point: string
  position: number
  ordinal: number
}

export const TRANSITION_FORMATS: { [format in TransitionFormat]: { contentType: string; fileExtension: string } } = {
  json: { contentType: 'application/json', fileExtension: 'json' },
  ndjson: { contentType: 'application/x-ndjson', fileExtension: 'ndjson' },
  csv: { contentType: 'text/csv; charset=utf-8', fileExtension: 'csv' },
  geojson: { contentType: 'application/geo+json', fileExtension: 'geojson' },
}

const JSON_LIMIT = 500

/**
 * Answers a question to the transitions of an organization as a stream, newest first by `at`, equal times in the order
 * logged. `json` has 500 rows and a cursor unless `limit` says otherwise, the other formats have everything.
 * @throws Failure invalid for a cursor that is none of this question.
 */
export const readTransitions = async (
  history: HistoryStore, question: TransitionQuestion, signal?: AbortSignal,
): Promise<{ contentType: string; fileExtension: string; body: AsyncIterable<Uint8Array> }> => {
  const order = question.order ?? (question.format === 'geojson' ? 'asc' : 'desc')
  const limit = question.limit ?? (question.format === 'json' ? JSON_LIMIT : undefined)
  const after = question.cursor === undefined ? undefined : decodePlace(question.cursor)
  const { sql, parameters } = selectTransitions(question, { order, after, limit: limit === undefined ? undefined : limit + 1 })
  const chunks = history.query(sql, parameters, 'JSONEachRow', signal)[Symbol.asyncIterator]()
  const first = await chunks.next()
  return { ...TRANSITION_FORMATS[question.format], body: write(first, chunks, question.format, limit) }
}

async function* write(
  first: IteratorResult<Uint8Array>, chunks: AsyncIterator<Uint8Array>, format: TransitionFormat, limit = Number.POSITIVE_INFINITY,
): AsyncGenerator<Uint8Array> {
  let written = 0
  let last: Stored | undefined
  let more = false
  try {
    yield encoder.encode(STARTS[format])
    for (let next = first; !next.done; next = await chunks.next()) {
      let text = ''
      for (const line of decoder.decode(next.value).split('\n')) {
        if (line === '') continue
        if (written === limit) {
          more = true
          break
        }
        last = JSON.parse(line) as Stored
        text += TEXTS[format](rowOf(last), written++ > 0 ? ',\n' : '\n')
      }
      if (text !== '') yield encoder.encode(text)
    }
    const cursor = more && last !== undefined ? encode([last.atMs, last.position, last.ordinal]) : null
    if (format === 'json') yield encoder.encode(`],"page":null,"limit":${limit},"nextCursor":${JSON.stringify(cursor)}}`)
    if (format === 'geojson') yield encoder.encode(']}')
  } finally {
    await chunks.return?.()
  }
}

const rowOf = ({ atMs, point, position: _position, ordinal: _ordinal, ...row }: Stored): TransitionRow => {
  return { ...row, at: new Date(atMs).toISOString(), point: pointShown(row.trackerId, JSON.parse(point) as PointValue) }
}

const STARTS: { [format in TransitionFormat]: string } = {
  json: '{"status":true,"data":[',
  ndjson: '',
  csv: '_id,trackerId,geofenceId,geofenceGroupId,type,at,cause,recordedAt,lat,lng\n',
  geojson: '{"type":"FeatureCollection","features":[',
}

const TEXTS: { [format in TransitionFormat]: (row: TransitionRow, separator: string) => string } = {
  json: (row, separator) => separator + JSON.stringify(row),
  ndjson: (row) => `${JSON.stringify(row)}\n`,
  csv: (row) =>
    `${row._id},${row.trackerId},${row.geofenceId},${row.geofenceGroupId},${row.type},${row.at},${row.cause},${row.point.recordedAt},${row.point.lat},${row.point.lng}\n`,
  geojson: ({ _id, point, ...properties }, separator) =>
    separator + JSON.stringify({ type: 'Feature', id: _id, geometry: { type: 'Point', coordinates: [point.lng, point.lat] }, properties: { ...properties, point } }),
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

const encode = (values: (string | number)[]): string => Buffer.from(JSON.stringify(values)).toString('base64url')

const decode = (cursor: string): unknown[] => {
  try {
    const values: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    if (Array.isArray(values)) return values
  } catch {
    throw invalid('/cursor', 'must be a nextCursor of the same question')
  }
  throw invalid('/cursor', 'must be a nextCursor of the same question')
}

const decodePlace = (cursor: string): TransitionPlace => {
  const [at, position, ordinal] = decode(cursor)
  if (![at, position, ordinal].every(Number.isSafeInteger)) throw invalid('/cursor', 'must be a nextCursor of the same question')
  return { at: at as number, position: position as number, ordinal: ordinal as number }
}
