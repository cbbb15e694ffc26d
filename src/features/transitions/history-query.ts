import {
  selectTransitions,
  type TransitionFilter,
  type TransitionPlace,
} from '../../engines/clickhouse-sql/decisions.ts'
import type { HistoryReader } from '../../engines/history-store.ts'
import { holdPage, PAGE_BYTES } from '../../kit/http/held-page.ts'
import { HISTORY_FORMATS, JSON_LIMIT, type HistoryAnswer, type HistoryFormat } from '../../kit/http/history-answer.ts'
import { fingerprintOf, openCursor } from '../../kit/http/question-cursor.ts'
import { type RowAt, rowsOf, writtenRows } from '../../kit/http/written-rows.ts'
import { invalid } from '../../kernel/errors.ts'
import type { PointValue } from './events.ts'
import { formatterOf } from './history-formats.ts'
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
  // One more row shows whether a page follows.
  const statement = selectTransitions(question, { order, after, limit: limit === undefined ? undefined : limit + 1 })
  const formatter = await formatterOf(format, question.members)
  const written = writtenRows(found(history, statement, signal), formatter, { limit, fingerprint })
  return { ...HISTORY_FORMATS[format], ...(await holdPage(written, limit === undefined ? 0 : PAGE_BYTES, signal)) }
}

async function* found(...asked: Parameters<typeof rowsOf>): AsyncGenerator<RowAt<TransitionRow>[]> {
  for await (const rows of rowsOf<Stored>(...asked))
    yield rows.map(({ atMs, partition, revision, ordinal, ...row }) => ({
      place: [atMs, partition, revision, ordinal],
      row: { ...row, at: atMs, point: JSON.parse(row.point) as PointValue },
    }))
}

const placeOf = (text: string): TransitionPlace => {
  const found = /^\[(\d{1,15}),(\d{1,5}),(\d{1,15}),(\d{1,10})\]$/.exec(text)
  if (found === null) throw invalid('/cursor', 'is not a cursor of this list and these filters')
  const [at, partition, revision, ordinal] = found.slice(1).map(Number)
  return { at, partition, revision, ordinal }
}
