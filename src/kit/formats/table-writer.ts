import type { Json } from '../../kernel/json.ts'
import { plainDegrees } from './plain-degrees.ts'

/** Value of a cell of a written table. A `Date` is a moment. */
export type WrittenCell = string | number | boolean | Date | null | undefined

/** A table that is written row by row, as text or bytes. Its memory is bounded, however many rows come. */
export interface TableWriter {
  /** Called before the first row. */
  start(): Promise<Uint8Array | string> | Uint8Array | string
  rows(rows: readonly (readonly WrittenCell[])[]): Promise<Uint8Array | string> | Uint8Array | string
  end(): Promise<Uint8Array | string> | Uint8Array | string
  /** Called after the end, or where the table is abandoned before. */
  close?(): void
}

/** The pieces of a whole table. */
export async function* writeTable(
  writer: TableWriter,
  pages: AsyncIterable<readonly (readonly WrittenCell[])[]>,
): AsyncGenerator<Uint8Array | string> {
  try {
    yield await writer.start()
    for await (const rows of pages) {
      const piece = await writer.rows(rows)
      if (piece.length > 0) yield piece
    }
    yield await writer.end()
  } finally {
    writer.close?.()
  }
}

/** A value of a record as one cell: a place as `lat, lng`, a list joined, anything else that is no scalar as JSON. */
export const cellOf = (value: Json | undefined): WrittenCell => {
  if (value === undefined || value === null) return null
  if (typeof value !== 'object') return value
  if (Array.isArray(value) && value.every((one) => typeof one !== 'object')) return value.join('; ')
  const { lat, lng, ...others } = value as { [name: string]: Json }
  const isPlace = typeof lat === 'number' && typeof lng === 'number' && Object.keys(others).length === 0
  return isPlace ? `${plainDegrees(lat)}, ${plainDegrees(lng)}` : JSON.stringify(value)
}
