import { invalid } from '../../kernel/errors.ts'
import type { Json } from '../../kernel/json.ts'
import type { Row } from '../../kernel/table.ts'
import { csvWriter } from '../../kit/formats/csv-writer.ts'
import { cellOf, type TableWriter, type WrittenCell } from '../../kit/formats/table-writer.ts'
import { xlsxInThread } from '../../kit/formats/xlsx-thread.ts'
import { holdPage, PAGE_BYTES } from '../../kit/http/held-page.ts'
import { HISTORY_FORMATS, historyReply, JSON_LIMIT } from '../../kit/http/history-answer.ts'
import { fingerprintOf, openCursor } from '../../kit/http/question-cursor.ts'
import type { Reply } from '../../kit/http/route.ts'
import {
  jsonFormatter,
  ndjsonFormatter,
  type RowAt,
  type RowFormatter,
  writtenRows,
} from '../../kit/http/written-rows.ts'

export type ReportFormat = 'json' | 'csv' | 'ndjson' | 'xlsx'

export const REPORT_FORMATS: { [format in ReportFormat]: { contentType: string; fileExtension: string } } = {
  json: HISTORY_FORMATS.json,
  csv: HISTORY_FORMATS.csv,
  ndjson: HISTORY_FORMATS.ndjson,
  xlsx: {
    contentType: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
    fileExtension: 'xlsx',
  },
}

export type ReportRow = RowAt<Row, RowKey>

/** A tracker (or the group of a report of tasks), and the other values that order its rows. */
export type RowKey = readonly [key: string, ...(string | number)[]]

/** Rows in order, in batches, from behind `after` on; may return earlier ones too. */
export type ReportRows = (after: RowKey | undefined, signal: AbortSignal) => AsyncIterable<ReportRow[]>

export interface ReportQuestion {
  name: string
  members: readonly string[]
  format: ReportFormat
  limit?: number
  cursor?: string
  query: object
  times: ReadonlySet<string>
  /** IANA zone of the times in a workbook, which has no zones. */
  timeZone: string
}

/** Streams a report, holding at most a small page. @throws Failure invalid for a cursor of another report. */
export const answerReport = async (question: ReportQuestion, rows: ReportRows, signal: AbortSignal): Promise<Reply> => {
  const { name, format, query, cursor } = question
  const { limit: _limit, cursor: _cursor, format: _format, fields: _fields, ...asked } = query as Row
  const fingerprint = fingerprintOf([name, asked])
  const after = cursor === undefined ? undefined : placeOf(openCursor(cursor, fingerprint))
  const limit = question.limit ?? (format === 'json' ? JSON_LIMIT : undefined)
  const written = writtenRows(rows(after, signal), FORMATTERS[format](question), { limit, fingerprint })
  const page = await holdPage(written, limit === undefined ? 0 : PAGE_BYTES, signal)
  return historyReply({ ...REPORT_FORMATS[format], ...page }, `/api/v3/reports/${name}`, query, name)
}

const placeOf = (text: string): RowKey => {
  try {
    const place = JSON.parse(text) as unknown
    if (Array.isArray(place) && typeof place[0] === 'string') return place as unknown as RowKey
  } catch {
    // Reported below.
  }
  throw invalid('/cursor', 'is not a cursor of this report and these filters')
}

const FORMATTERS: { [format in ReportFormat]: (question: ReportQuestion) => RowFormatter<Row> } = {
  json: ({ members }) => jsonFormatter((row) => JSON.stringify(chosen(row, members))),
  ndjson: ({ members }) => ndjsonFormatter((row) => JSON.stringify(chosen(row, members))),
  csv: ({ members }) => tableFormatter(csvWriter({ header: members }), (row) => cellsOf(row, members)),
  xlsx: ({ name, members, times, timeZone }) =>
    tableFormatter(xlsxInThread({ header: members, sheet: name, timeZone }), (row) =>
      cellsOf(row, members).map((cell, i) => (times.has(members[i]) && cell ? new Date(cell as string) : cell)),
    ),
}

const chosen = (row: Row, members: readonly string[]): Row =>
  Object.fromEntries(members.filter((member) => row[member] !== undefined).map((member) => [member, row[member]]))

const tableFormatter = (writer: TableWriter, cells: (row: Row) => WrittenCell[]): RowFormatter<Row> => ({
  start: () => writer.start(),
  rows: (rows) => writer.rows(rows.map(cells)),
  end: () => writer.end(),
  close: () => writer.close?.(),
})

const cellsOf = (row: Row, members: readonly string[]): WrittenCell[] =>
  members.map((member) => cellOf(row[member] as Json | undefined))

/** Rows behind a place: those of the report's first tracker may be before it. */
export const behind = (rows: readonly ReportRow[], after: RowKey | undefined): ReportRow[] =>
  after === undefined
    ? [...rows]
    : rows.filter(({ place }) => place[0] !== after[0] || isBehind(place.slice(1), after.slice(1)))

const isBehind = (one: readonly (string | number)[], other: readonly (string | number)[]): boolean => {
  for (const [i, value] of one.entries()) if (value !== other[i]) return value > other[i]
  return false
}
