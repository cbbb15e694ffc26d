import type { PointRows } from './point-rows.ts'

/** Writes points that come piece by piece, as text or bytes. */
export interface PointFormatter {
  start(): string | Uint8Array
  rows(rows: PointRows, from: number, to: number): string | Uint8Array
  /** `nextCursor` is null where nothing follows; `limit` is the largest number of rows of this answer, null for none. */
  end(nextCursor: string | null, limit: number | null): string | Uint8Array
}
