import { StringDecoder } from 'node:string_decoder'
import {
  selectTransitions,
  type TransitionFilter,
  type TransitionPlace,
} from '../../engines/clickhouse-sql/decisions.ts'
import type { HistoryReader } from '../../engines/history-store.ts'
import { breathe } from '../../kernel/breath.ts'
import { holdPage, PAGE_BYTES } from '../../kit/http/held-page.ts'
import { HISTORY_FORMATS, JSON_LIMIT, type HistoryAnswer, type HistoryFormat } from '../../kit/http/history-answer.ts'
import { fingerprintOf, openCursor, sealCursor } from '../../kit/http/question-cursor.ts'
import { invalid } from '../../kernel/errors.ts'
import type { PointValue } from './events.ts'
import { formatterOf, type TransitionFormatter } from './history-formats.ts'
import type { TransitionMember, TransitionRow } from './views.ts'

export interface TransitionQuestion extends TransitionFilter {
  format: HistoryFormat
  /** Default newest first; `geojson` and `gpx` oldest first. */
  order?: 'asc' | 'desc'
  limit?: number
  cursor?: string
  /** Requested trackers: a cursor is valid only for the same question, whatever the caller may see now. */
  asked?: readonly string[]
  /** Members of a transition to answer besides `_id`; default: all. */
  members?: ReadonlySet<TransitionMember>
}

interface Stored extends Omit<TransitionRow, 'at' | 'point'> {
  atMs: number
  point: string
  partition: number
  revision: number
  ordinal: number
}

/** Transitions written before yielding. */
const ROWS_AT_ONCE = 128

/**
 * Answers a question about an organization's transitions as a stream, by `at` and equal times of one tracker in the
 * order logged: newest first, `geojson` and `gpx` oldest first, unless `order` says otherwise. `json` has 500 rows and
 * a cursor unless `limit` says otherwise, the other formats have everything. Resolves when the first bytes are ready.
 * @throws Failure invalid for a cursor of another question, overloaded, engine_down.
 */
export const readTransitions = async (
  history: HistoryReader,
  question: TransitionQuestion,
  signal?: AbortSignal,
): Promise<HistoryAnswer> => {
  const { format } = question
  const order = question.order ?? (format === 'geojson' || format === 'gpx' ? 'asc' : 'desc')
  const limit = question.limit ?? (format === 'json' ? JSON_LIMIT : undefined)
  const fingerprint = fingerprintOf([
    order,
    question.asked,
    question.geofenceIds,
    question.geofenceGroupIds,
    question.type,
    question.from,
    question.to,
    ...(question.ids ?? []),
  ])
  const after = question.cursor === undefined ? undefined : placeOf(openCursor(question.cursor, fingerprint))
  const { sql, parameters } = selectTransitions(question, {
    order,
    after,
    limit: limit === undefined ? undefined : limit + 1,
  })
  const chunks = history.query(sql, parameters, 'JSONEachRow', signal)
  const seal = (last: Stored): string =>
    sealCursor(JSON.stringify([last.atMs, last.partition, last.revision, last.ordinal]), fingerprint)
  const written = write(chunks, await formatterOf(format, question.members), { limit, seal })
  return { ...HISTORY_FORMATS[format], ...(await holdPage(written, limit === undefined ? 0 : PAGE_BYTES, signal)) }
}

/** Returns the cursor of the next page, null if there is none. */
async function* write(
  chunks: AsyncIterable<Uint8Array>,
  formatter: TransitionFormatter,
  page: { limit?: number; seal: (last: Stored) => string },
): AsyncGenerator<Uint8Array, string | null> {
  const { limit = Number.POSITIVE_INFINITY, seal } = page
  let count = 0
  let last: Stored | undefined
  let nextCursor: string | null = null
  yield bytesOf(formatter.start())
  for await (const lines of linesOf(chunks)) {
    await breathe()
    const rows = lines.slice(0, limit - count).map((line) => (last = JSON.parse(line) as Stored))
    if (rows.length < lines.length && last !== undefined) nextCursor = seal(last)
    count += rows.length
    const bytes = bytesOf(formatter.rows(rows.map(rowOf)))
    if (bytes.byteLength > 0) yield bytes
  }
  yield bytesOf(formatter.end(nextCursor, page.limit ?? null))
  return nextCursor
}

/** Whole lines in batches; chunks may be cut anywhere. */
async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string[]> {
  const decoder = new StringDecoder()
  let rest = ''
  for await (const chunk of chunks) {
    const lines = (rest + decoder.write(Buffer.from(chunk))).split('\n')
    rest = lines.pop() ?? ''
    for (let from = 0; from < lines.length; from += ROWS_AT_ONCE) yield lines.slice(from, from + ROWS_AT_ONCE)
  }
  if (rest !== '') yield [rest]
}

const bytesOf = (part: string | Uint8Array): Uint8Array => (typeof part === 'string' ? Buffer.from(part) : part)

const rowOf = ({
  atMs,
  point,
  partition: _partition,
  revision: _revision,
  ordinal: _ordinal,
  ...row
}: Stored): TransitionRow => ({
  ...row,
  at: atMs,
  point: JSON.parse(point) as PointValue,
})

const placeOf = (text: string): TransitionPlace => {
  const found = /^\[(\d{1,15}),(\d{1,5}),(\d{1,15}),(\d{1,10})\]$/.exec(text)
  if (found === null) throw invalid('/cursor', 'is not a cursor of this list and these filters')
  const [at, partition, revision, ordinal] = found.slice(1).map(Number)
  return { at, partition, revision, ordinal }
}
