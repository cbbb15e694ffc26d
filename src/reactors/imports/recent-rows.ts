import { type TableStore, tablesWith } from '../../engines/table-store.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { Row } from '../../kernel/table.ts'

const KEPT_MS = 1_000

/** Tables that read each row by id once a second: all rows of a file name the same type, flow, hub or team. */
export const recentRows = (tables: TableStore, clock: Clock): TableStore => {
  let kept = new Map<string, Row>()
  let keptSince = clock.monotonic()
  const get = async (table: string, scope: string, id: string): Promise<Row | undefined> => {
    if (clock.monotonic() - keptSince > KEPT_MS) {
      kept = new Map()
      keptSince = clock.monotonic()
    }
    const key = `${table} ${scope} ${id}`
    const known = kept.get(key)
    if (known !== undefined) return known
    const into = kept
    const row = await tables.get(table, scope, id)
    if (row !== undefined) into.set(key, row)
    return row
  }
  return tablesWith(tables, { get: get as TableStore['get'] })
}
