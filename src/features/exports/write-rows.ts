import type { Row } from '../../kernel/table.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { csvWriter } from '../../kit/formats/csv-writer.ts'
import { geojsonWriter, gpxWriter, jsonWriter } from '../../kit/formats/feature-writers.ts'
import { xlsxInThread } from '../../kit/formats/xlsx-thread.ts'
import { type ExportShape, isPlaced } from './columns.ts'
import type { ExportFormat } from './events.ts'

export const MEDIA_TYPES: { [format in ExportFormat]: string } = {
  csv: 'text/csv; charset=utf-8',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  json: 'application/json',
  geojson: 'application/geo+json',
  gpx: 'application/gpx+xml',
}

interface Writing {
  format: ExportFormat
  timeZone: string
  shape: ExportShape
}

/** A write of a piece costs the event loop as much as ten rows. */
const PIECE_CHARS = 128 * 1024

/** Chunks of the file, as its rows arrive. */
export async function* writtenRows(writing: Writing, pages: AsyncIterable<Row[]>): AsyncGenerator<Uint8Array> {
  let text = ''
  for await (const piece of piecesOf(writing, pages)) {
    if (typeof piece !== 'string') yield piece
    else if ((text += piece).length >= PIECE_CHARS) {
      yield Buffer.from(text)
      text = ''
    }
  }
  if (text !== '') yield Buffer.from(text)
}

async function* piecesOf(
  { format, timeZone, shape }: Writing,
  pages: AsyncIterable<Row[]>,
): AsyncGenerator<Uint8Array | string> {
  const { columns, placed } = shape
  const header = columns.map(({ title }) => title)
  const table =
    format === 'xlsx' ? xlsxInThread({ header, sheet: shape.name, timeZone }) : csvWriter({ header, timeZone })
  const features = format === 'gpx' ? gpxWriter() : geojsonWriter()
  const json = jsonWriter()
  const writer = format === 'json' ? json : isPlaced(format) ? features : table
  try {
    yield await writer.start()
    for await (const rows of pages) {
      if (format === 'json') yield json.rows(rows as JsonObject[])
      else if (isPlaced(format)) yield features.rows(rows.flatMap((row) => placed(row) ?? []))
      else yield await table.rows(rows.map((row) => columns.map(({ cell }) => cell(row))))
    }
    yield await writer.end()
  } finally {
    table.close?.()
  }
}
