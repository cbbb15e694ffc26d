import type { ImportPlace } from '../../features/imports/events.ts'
import type { JsonObject } from '../../kernel/json.ts'
import type { WriteOrigin, Written } from '../../kit/resource/writes.ts'

/** Writes the content of a row: by the decisions of the routes, bounded by the rights of the file's sender. */
export interface RowWriter {
  /** Rows that share one of these are written one after another. */
  keysOf(values: JsonObject): readonly unknown[]
  /** The target of the field that a failure's path names. */
  targetAt(path: string): string
  /** Looks up the records of all rows of a page at once. */
  lookUp?(rows: readonly JsonObject[]): Promise<void>
  /** @throws Failure of the row */
  write(origin: WriteOrigin, row: number, id: string, values: JsonObject): Promise<RowWritten>
}

export interface RowWritten extends Written {
  isNew: boolean
  /** The place that the row has given its task. */
  place?: ImportPlace
}
