import type { ImportPlace } from '../../features/imports/events.ts'
import type { JsonObject } from '../../kernel/json.ts'
import type { WriteOrigin, Written } from '../../kit/resource/writes.ts'

/** Writes what a row says: by the decisions that the routes have, bounded by the rights of the file's sender. */
export interface RowWriter {
  /** Rows that share one of these are written one after another. */
  keysOf(values: JsonObject): readonly unknown[]
  /** The field of the body that a path of a failure means, by the name that targets have. */
  targetAt(path: string): string
  /** Looks up at once what the rows of a page are found by. */
  lookUp?(rows: readonly JsonObject[]): Promise<void>
  /** @throws Failure of the row */
  write(origin: WriteOrigin, row: number, id: string, values: JsonObject): Promise<RowWritten>
}

export interface RowWritten extends Written {
  isNew: boolean
  /** The place that the row has given its task. */
  place?: ImportPlace
}
