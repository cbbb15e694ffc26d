import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import type { HistoryParameters } from '../history-store.ts'

type Value = HistoryParameters[string]

const ESCAPES: { [character: string]: string } = {
  '\\': '\\\\',
  "'": "\\'",
  '\0': '\\0',
  '\t': '\\t',
  '\n': '\\n',
  '\r': '\\r',
}

/** Approximate length of the values in an address, in characters. */
export const parametersBytes = (parameters: HistoryParameters): number => {
  let bytes = 0
  for (const value of Object.values(parameters)) {
    if (typeof value === 'string') bytes += value.length
    else if (Array.isArray(value)) for (const item of value) bytes += String(item).length + 3
  }
  return bytes
}

/** A query and its values as the parts of a form, for values that are too long for its address. */
export const multipartOf = (
  query: string,
  parameters: HistoryParameters,
): { query: string; values: Readable; http_headers: { [name: string]: string } } => {
  const boundary = randomUUID()
  const fields = Object.entries(parameters).map(([name, value]) => ({ name, pieces: piecesOf(value) }))
  const parts = fields.flatMap(({ name, pieces }) =>
    pieces.map(
      (piece, i) =>
        `--${boundary}\r\nContent-Disposition: form-data; name="param_${pieces.length === 1 ? name : `${name}_${i}`}"\r\n\r\n${piece}\r\n`,
    ),
  )
  const body = Buffer.from(`${parts.join('')}--${boundary}--\r\n`)
  return {
    query: fields.reduce(
      (sql, { name, pieces }) => (pieces.length === 1 ? sql : joined(sql, name, pieces.length)),
      query,
    ),
    values: Readable.from([body], { objectMode: false }),
    http_headers: { 'Content-Type': `multipart/form-data; boundary=${boundary}` },
  }
}

/** Servers refuse a field above 128 KiB (`http_max_field_value_size`); only the default profile's limit counts. */
const FIELD_BYTES_MAX = 100_000

/** A value as it is written; a long list in several pieces. */
const piecesOf = (value: Value): string[] => {
  if (!Array.isArray(value)) return [written(value)]
  const pieces: string[] = []
  let [from, bytes] = [0, 0]
  for (const [i, item] of value.entries()) {
    const more = Buffer.byteLength(literal(item)) + 1
    if (bytes > 0 && bytes + more > FIELD_BYTES_MAX) {
      pieces.push(written(value.slice(from, i)))
      from = i
      bytes = 0
    }
    bytes += more
  }
  return [...pieces, written(value.slice(from))]
}

/** The query with a list reassembled from its pieces. */
const joined = (query: string, name: string, pieces: number): string =>
  query.replaceAll(
    new RegExp(`\\{${name}:([^}]+)\\}`, 'g'),
    (_placeholder, type: string) =>
      `arrayConcat(${Array.from({ length: pieces }, (_, i) => `{${name}_${i}:${type}}`).join(', ')})`,
  )

/** A value as ClickHouse reads a parameter: tab-separated text, arrays as literals. */
const written = (value: Value): string => {
  if (Array.isArray(value)) return `[${value.map(literal).join(',')}]`
  if (typeof value === 'boolean') return value ? '1' : '0'
  return typeof value === 'string' ? escaped(value) : String(value)
}

const literal = (item: string | number): string => (typeof item === 'string' ? `'${escaped(item)}'` : String(item))

const escaped = (text: string): string => text.replace(/[\\'\0\t\n\r]/g, (character) => ESCAPES[character])
