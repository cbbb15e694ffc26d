import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { createGunzip } from 'node:zlib'
import { ConfigError } from '../config-values.ts'

/** One row of a recorded trace, as a point for the ingest channel. */
export interface Fix {
  externalId: string
  /** ms since the epoch. */
  recordedAt: number
  lat: number
  lng: number
  speed?: number
  accuracy?: number
  heading?: number
  altitude?: number
}

const OPTIONAL = ['speed', 'accuracy', 'heading', 'altitude'] as const

/**
 * Reads a trace: CSV (also gzipped) with a header of `trackerId,timestamp,lat,lng` and optionally
 * `speed,accuracy,heading,altitude`; rows in order of time.
 * @throws ConfigError with the number of the invalid line.
 */
export async function* readTrace(path: string): AsyncGenerator<Fix> {
  for await (const { fix } of readTraceLines(path)) yield fix
}

/** The same with the line number of each row in the file, from 1. */
export async function* readTraceLines(path: string): AsyncGenerator<{ fix: Fix; line: number }> {
  const file = createReadStream(path)
  const input = path.endsWith('.gz') ? file.pipe(createGunzip()) : file
  let failure: Error | undefined
  const lines = createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })
  for (const stream of new Set([file, input])) {
    stream.once('error', (error: Error) => {
      failure = error
      lines.close()
    })
  }
  try {
    yield* fixesOf(lines, path)
  } catch (error) {
    if (failure === undefined) throw error
  }
  if (failure !== undefined) throw new ConfigError(`${path} cannot be read: ${failure.message}`)
}

async function* fixesOf(lines: AsyncIterable<string>, path: string): AsyncGenerator<{ fix: Fix; line: number }> {
  let columns: string[] | undefined
  let line = 0
  for await (const text of lines) {
    line++
    if (text.trim() === '') continue
    if (columns === undefined) columns = headerOf(text, path)
    else yield { fix: fixOf(text.split(','), columns, path, line), line }
  }
}

const headerOf = (text: string, path: string): string[] => {
  const columns = text.split(',').map((name) => name.trim())
  for (const name of ['trackerId', 'timestamp', 'lat', 'lng']) {
    if (!columns.includes(name)) throw new ConfigError(`${path}: the first line must name the column ${name}`)
  }
  return columns
}

const fixOf = (cells: string[], columns: string[], path: string, line: number): Fix => {
  const cell = (name: string): string => cells[columns.indexOf(name)] ?? ''
  const fix: Fix = {
    externalId: cell('trackerId'),
    recordedAt: Date.parse(cell('timestamp')),
    lat: numberOf(cell('lat')),
    lng: numberOf(cell('lng')),
  }
  if (Number.isNaN(fix.recordedAt) || Number.isNaN(fix.lat) || Number.isNaN(fix.lng))
    throw new ConfigError(`${path}:${line}: timestamp, lat or lng cannot be read`)
  for (const name of OPTIONAL) if (cell(name) !== '') fix[name] = Number(cell(name))
  return fix
}

/** An empty cell is not zero. */
const numberOf = (cell: string): number => (cell.trim() === '' ? Number.NaN : Number(cell))
