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

/** Roughly what the values take in an address, in characters. */
export const parametersBytes = (parameters: HistoryParameters): number => {
  let bytes = 0
  for (const value of Object.values(parameters)) {
    if (typeof value === 'string') bytes += value.length
    else if (Array.isArray(value)) for (const item of value) bytes += String(item).length + 3
  }
  return bytes
}

/** Values as the parts of a form, `param_<name>` each: what a query takes beside its text when they are too long for its address. */
export const multipartOf = (
  parameters: HistoryParameters,
): { values: Readable; http_headers: { [name: string]: string } } => {
  const boundary = randomUUID()
  const parts = Object.entries(parameters).map(
    ([name, value]) =>
      `--${boundary}\r\nContent-Disposition: form-data; name="param_${name}"\r\n\r\n${written(value)}\r\n`,
  )
  const body = Buffer.from(`${parts.join('')}--${boundary}--\r\n`)
  return {
    values: Readable.from([body], { objectMode: false }),
    http_headers: { 'Content-Type': `multipart/form-data; boundary=${boundary}` },
  }
}

/** A value as ClickHouse reads a parameter: tab-separated text, arrays as literals. */
const written = (value: Value): string => {
  if (Array.isArray(value))
    return `[${value.map((item: string | number) => (typeof item === 'string' ? `'${escaped(item)}'` : String(item))).join(',')}]`
  if (typeof value === 'boolean') return value ? '1' : '0'
  return typeof value === 'string' ? escaped(value) : String(value)
}

const escaped = (text: string): string => text.replace(/[\\'\0\t\n\r]/g, (character) => ESCAPES[character])
