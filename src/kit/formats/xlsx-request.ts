import type { WrittenCell } from './table-writer.ts'
import type { XlsxOptions } from './xlsx-writer.ts'

/** Request to the thread that writes workbooks, about one of them. */
export type XlsxAsked = { book: number } & (
  | { kind: 'start'; options: XlsxOptions }
  | { kind: 'rows'; rows: readonly (readonly WrittenCell[])[] }
  | { kind: 'end' }
  | { kind: 'close' }
)

/** Available bytes of the workbook, or the error. Nothing is answered to `close`. */
export type XlsxAnswer = { book: number } & ({ bytes: Uint8Array } | { error: unknown })
