import { sameTracker, trackerIdAt, type PointRows } from './point-rows.ts'

/** Writes points that arrive in pieces, as text or bytes. */
export interface PointFormatter {
  start(): string | Uint8Array
  rows(rows: PointRows, from: number, to: number): string | Uint8Array
  /** `nextCursor` is null if nothing follows; `limit` is the largest number of rows of this answer, null for none. */
  end(nextCursor: string | null, limit: number | null): string | Uint8Array
}

/** Name of a tracker; undefined for one that is gone. */
export type NameOf = (trackerId: string) => string | undefined

/** Text of each row; the tracker id is built once for consecutive rows. */
export const eachRow = (
  rows: PointRows,
  from: number,
  to: number,
  text: (row: number, trackerId: string) => string,
): string => {
  let whole = ''
  let trackerId = ''
  for (let row = from; row < to; row++) {
    if (row === from || !sameTracker(rows, row - 1, rows, row)) trackerId = trackerIdAt(rows, row)
    whole += text(row, trackerId)
  }
  return whole
}

/** Puts a comma before every item but the first. */
export const separator = (): (() => string) => {
  let first = true
  return () => {
    if (!first) return ',\n'
    first = false
    return '\n'
  }
}

/** Member `name` of a tracker, after a comma; the text is reused for consecutive rows. */
export const nameMember = (nameOf: NameOf): ((trackerId: string) => string) => {
  let lastId: string | undefined
  let text = ''
  return (trackerId) => {
    if (trackerId === lastId) return text
    lastId = trackerId
    const name = nameOf(trackerId)
    text = name === undefined ? '' : `,"name":${JSON.stringify(name)}`
    return text
  }
}
