import type { HistoryReader } from '../../engines/history-store.ts'
import { StringDecoder } from 'node:string_decoder'
import { breathe } from '../../kernel/breath.ts'
import { invalid } from '../../kernel/errors.ts'
import type { Json } from '../../kernel/json.ts'
import type { Row } from '../../kernel/table.ts'
import { csvWriter } from '../../kit/formats/csv-writer.ts'
import { cellOf, type TableWriter, type WrittenCell } from '../../kit/formats/table-writer.ts'
import { xlsxInThread } from '../../kit/formats/xlsx-thread.ts'
import { holdPage, PAGE_BYTES } from '../../kit/http/held-page.ts'
import { HISTORY_FORMATS, JSON_LIMIT } from '../../kit/http/history-answer.ts'
import { nextLink } from '../../kit/http/next-link.ts'
import { fingerprintOf, openCursor, sealCursor } from '../../kit/http/question-cursor.ts'
import type { Reply } from '../../kit/http/route.ts'

/** Format of a report's answer. */
export type ReportFormat = 'json' | 'csv' | 'ndjson' | 'xlsx'

/** Content type and file extension of each format. */
export const REPORT_FORMATS: { [format in ReportFormat]: { contentType: string; fileExtension: string } } = {
  json: HISTORY_FORMATS.json,
  csv: HISTORY_FORMATS.csv,
  ndjson: HISTORY_FORMATS.ndjson,
  xlsx: {
    contentType: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
    fileExtension: 'xlsx',
  },
}

/** A row, and its place as stored in a cursor. */
export interface ReportRow {
  place: RowKey
  row: Row
}

/** A tracker (or the group of a report of tasks), and the other values that order its rows. */
export type RowKey = readonly [key: string, ...(string | number)[]]

/** Rows in order, in batches, from behind `after` on; may return earlier ones too. */
export type ReportRows = (after: RowKey | undefined, signal: AbortSignal) => AsyncIterable<ReportRow[]>

export interface ReportQuestion {
  name: string
  /** Members of a row in the answer. */
  members: readonly string[]
  format: ReportFormat
  limit?: number
  cursor?: string
  query: object
  /** Members that are times. */
  times: ReadonlySet<string>
  /** IANA zone of the times in a workbook, which has no zones. */
  timeZone: string
}

type Piece = Promise<Uint8Array | string> | Uint8Array | string

interface Formatter {
  start(): Piece
  rows(rows: readonly Row[]): Piece
  /** `nextCursor` is null if nothing follows. */
  end(nextCursor: string | null, limit: number | null): Piece
  /** Called after the end, or if the answer is abandoned. */
  close?(): void
}

/** Streams a report, holding at most a small page. @throws Failure invalid for a cursor of another report. */
export const answerReport = async (question: ReportQuestion, rows: ReportRows, signal: AbortSignal): Promise<Reply> => {
  const { name, format, query, ...page } = question
  const { limit: _limit, cursor: _cursor, format: _format, fields: _fields, ...asked } = query as Row
  const fingerprint = fingerprintOf([name, asked])
  const after = page.cursor === undefined ? undefined : placeOf(openCursor(page.cursor, fingerprint))
  const limit = page.limit ?? (format === 'json' ? JSON_LIMIT : undefined)
  const written = write(rows(after, signal), FORMATTERS[format](question), { limit, fingerprint })
  const { body, nextCursor } = await holdPage(written, limit === undefined ? 0 : PAGE_BYTES, signal)
  const { contentType, fileExtension } = REPORT_FORMATS[format]
  const headers: { [name: string]: string } = { 'content-type': contentType }
  if (nextCursor !== null) headers.link = nextLink(`/api/v3/reports/${name}`, { ...query }, nextCursor)
  if (format !== 'json') headers['content-disposition'] = `attachment; filename="${name}.${fileExtension}"`
  return { headers, stream: body }
}

/** Returns the cursor of the next page, null if there is none. */
async function* write(
  found: AsyncIterable<ReportRow[]>,
  formatter: Formatter,
  { limit, fingerprint }: { limit?: number; fingerprint: string },
): AsyncGenerator<Uint8Array, string | null> {
  let left = limit ?? Number.POSITIVE_INFINITY
  let last: RowKey | undefined
  let nextCursor: string | null = null
  try {
    yield bytesOf(await formatter.start())
    for await (const some of found) {
      await breathe()
      const taken = some.slice(0, left)
      left -= taken.length
      if (taken.length > 0) {
        last = taken[taken.length - 1].place
        const piece = await formatter.rows(taken.map(({ row }) => row))
        if (piece.length > 0) yield bytesOf(piece)
      }
      if (taken.length < some.length) {
        nextCursor = sealCursor(JSON.stringify(last), fingerprint)
        break
      }
    }
    yield bytesOf(await formatter.end(nextCursor, limit ?? null))
  } finally {
    formatter.close?.()
  }
  return nextCursor
}

const bytesOf = (piece: Uint8Array | string): Uint8Array => (typeof piece === 'string' ? Buffer.from(piece) : piece)

const placeOf = (text: string): RowKey => {
  try {
    const place = JSON.parse(text) as unknown
    if (Array.isArray(place) && typeof place[0] === 'string') return place as unknown as RowKey
  } catch {
    // Reported below.
  }
  throw invalid('/cursor', 'is not a cursor of this report and these filters')
}

const FORMATTERS: { [format in ReportFormat]: (question: ReportQuestion) => Formatter } = {
  json: ({ members }) => {
    let comma = '\n'
    const text = (row: Row): string => {
      const before = comma
      comma = ',\n'
      return before + JSON.stringify(chosen(row, members))
    }
    return {
      start: () => '{"status":true,"data":[',
      rows: (rows) => rows.map(text).join(''),
      end: (nextCursor, limit) => `],"page":null,"limit":${limit},"nextCursor":${JSON.stringify(nextCursor)}}`,
    }
  },
  ndjson: ({ members }) => ({
    start: () => '',
    rows: (rows) => rows.map((row) => `${JSON.stringify(chosen(row, members))}\n`).join(''),
    end: () => '',
  }),
  csv: ({ members }) => tableFormatter(csvWriter({ header: members }), (row) => cellsOf(row, members)),
  xlsx: ({ name, members, times, timeZone }) =>
    tableFormatter(xlsxInThread({ header: members, sheet: name, timeZone }), (row) =>
      cellsOf(row, members).map((cell, i) => (times.has(members[i]) && cell ? new Date(cell as string) : cell)),
    ),
}

const chosen = (row: Row, members: readonly string[]): Row =>
  Object.fromEntries(members.filter((member) => row[member] !== undefined).map((member) => [member, row[member]]))

const tableFormatter = (writer: TableWriter, cells: (row: Row) => WrittenCell[]): Formatter => ({
  start: () => writer.start(),
  rows: (rows) => writer.rows(rows.map(cells)),
  end: () => writer.end(),
  close: () => writer.close?.(),
})

const cellsOf = (row: Row, members: readonly string[]): WrittenCell[] =>
  members.map((member) => cellOf(row[member] as Json | undefined))

/** Rows of an answer of the history, in batches. */
export async function* rowsOf<R>(
  history: HistoryReader,
  { sql, parameters }: { sql: string; parameters: Parameters<HistoryReader['query']>[1] },
  signal: AbortSignal,
): AsyncGenerator<R[]> {
  const decoder = new StringDecoder()
  let rest = ''
  for await (const chunk of history.query(sql, parameters, 'JSONEachRow', signal)) {
    const lines = (rest + decoder.write(Buffer.from(chunk))).split('\n')
    rest = lines.pop() ?? ''
    for (let from = 0; from < lines.length; from += LINES_AT_ONCE) {
      await breathe()
      yield lines.slice(from, from + LINES_AT_ONCE).map((line) => JSON.parse(line) as R)
    }
  }
  if (rest !== '') yield [JSON.parse(rest) as R]
}

const LINES_AT_ONCE = 256

/** Rows behind a place: those of the report's first tracker may be before it. */
export const behind = (rows: readonly ReportRow[], after: RowKey | undefined): ReportRow[] =>
  after === undefined
    ? [...rows]
    : rows.filter(({ place }) => place[0] !== after[0] || isBehind(place.slice(1), after.slice(1)))

const isBehind = (one: readonly (string | number)[], other: readonly (string | number)[]): boolean => {
  for (const [i, value] of one.entries()) if (value !== other[i]) return value > other[i]
  return false
}
