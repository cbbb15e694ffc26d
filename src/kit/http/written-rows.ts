import { StringDecoder } from 'node:string_decoder'
import type { HistoryParameters, HistoryReader } from '../../engines/history-store.ts'
import { breathe } from '../../kernel/breath.ts'
import { listOf } from '../formats/feature-writers.ts'
import { sealCursor } from './question-cursor.ts'

type Piece = string | Uint8Array

/** Writes rows that arrive in batches, as text or bytes. */
export interface RowFormatter<Row> {
  start(): Piece | Promise<Piece>
  rows(rows: readonly Row[]): Piece | Promise<Piece>
  /** `nextCursor` is null if nothing follows; `limit` is the largest number of rows of this answer, null for none. */
  end(nextCursor: string | null, limit: number | null): Piece | Promise<Piece>
  /** Called after the end, or if the answer is abandoned. */
  close?(): void
}

export const jsonFormatter = <Row>(text: (row: Row) => string): RowFormatter<Row> => ({
  start: () => '{"status":true,"data":[',
  rows: listOf(text),
  end: (nextCursor, limit) => `],"page":null,"limit":${limit},"nextCursor":${JSON.stringify(nextCursor)}}`,
})

export const ndjsonFormatter = <Row>(text: (row: Row) => string): RowFormatter<Row> => ({
  start: () => '',
  rows: (rows) => rows.map((row) => `${text(row)}\n`).join(''),
  end: () => '',
})

/** A row, and its place as stored in a cursor. */
export interface RowAt<Row, Place = readonly (string | number)[]> {
  place: Place
  row: Row
}

/** Writes at most `limit` rows. Returns the cursor of the next page, null if there is none. */
export async function* writtenRows<Row>(
  found: AsyncIterable<readonly RowAt<Row>[]>,
  formatter: RowFormatter<Row>,
  { limit, fingerprint }: { limit?: number; fingerprint: string },
): AsyncGenerator<Uint8Array, string | null> {
  let left = limit ?? Number.POSITIVE_INFINITY
  let last: RowAt<Row> | undefined
  let nextCursor: string | null = null
  try {
    yield bytesOf(await formatter.start())
    for await (const some of found) {
      await breathe()
      const taken = some.slice(0, left)
      left -= taken.length
      last = taken.at(-1) ?? last
      const piece = taken.length === 0 ? '' : await formatter.rows(taken.map(({ row }) => row))
      if (piece.length > 0) yield bytesOf(piece)
      if (taken.length < some.length) {
        nextCursor = sealCursor(JSON.stringify(last?.place), fingerprint)
        break
      }
    }
    yield bytesOf(await formatter.end(nextCursor, limit ?? null))
  } finally {
    formatter.close?.()
  }
  return nextCursor
}

const bytesOf = (piece: Piece): Uint8Array => (typeof piece === 'string' ? Buffer.from(piece) : piece)

const ROWS_AT_ONCE = 256

/** Rows of an answer of the history, in batches. */
export async function* rowsOf<Row>(
  history: HistoryReader,
  { sql, parameters }: { sql: string; parameters: HistoryParameters },
  signal?: AbortSignal,
): AsyncGenerator<Row[]> {
  const decoder = new StringDecoder()
  let rest = ''
  for await (const chunk of history.query(sql, parameters, 'JSONEachRow', signal)) {
    const lines = (rest + decoder.write(Buffer.from(chunk))).split('\n')
    rest = lines.pop() ?? ''
    for (let from = 0; from < lines.length; from += ROWS_AT_ONCE) {
      await breathe()
      yield lines.slice(from, from + ROWS_AT_ONCE).map((line) => JSON.parse(line) as Row)
    }
  }
  if (rest !== '') yield [JSON.parse(rest) as Row]
}
