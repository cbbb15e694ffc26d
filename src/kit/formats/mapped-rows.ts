import type { JsonObject } from '../../kernel/json.ts'
import type { ValueRule } from '../values/value-type.ts'
import { understood } from './cell-values.ts'
import type { Convention } from './conventions.ts'
import { type Cell, shownCell, type TableRow } from './table-cells.ts'
import type { ZonedTime } from '../../kernel/zoned-time.ts'

/** A column of a file, and the target for its values. */
export interface MappedColumn {
  index: number
  name: string
  target: { name: string; rule: ValueRule }
  convention: Convention
}

/** How the cells of a file are understood. */
export interface Mapping {
  columns: readonly MappedColumn[]
  timeZone: string
}

/** A row as values by the names of their targets, or the first cell that does not fit its column. */
export type MappedRow =
  | { row: number; values: JsonObject }
  | { row: number; fault: { column: string; message: string } }

const SHOWN_CHARS = 100

/** Blank cells are left out. */
export const mappedRow = ({ row, cells }: TableRow, columns: readonly MappedColumn[], zone: ZonedTime): MappedRow => {
  const values: JsonObject = {}
  for (const { index, name, target, convention } of columns) {
    const found = understood(cells[index], target.rule, { ...convention, zone })
    if ('expected' in found) return { row, fault: { column: name, message: faultOf(cells[index], found.expected) } }
    if (found.value !== undefined) values[target.name] = found.value
  }
  return { row, values: withPlaces(values, columns) }
}

const faultOf = (cell: Cell | undefined, expected: string): string =>
  `${JSON.stringify(shownCell(cell).slice(0, SHOWN_CHARS))} ${expected}`

/** The values, with places from two columns, `<name>.lat` and `<name>.lng`, put together. */
const withPlaces = (values: JsonObject, columns: readonly MappedColumn[]): JsonObject => {
  const whole = { ...values }
  for (const { target } of columns) {
    if (!/\.(lat|lng)$/.test(target.name)) continue
    const name = target.name.slice(0, -4)
    if (!Object.hasOwn(values, target.name)) continue
    whole[name] = { ...((whole[name] as JsonObject | undefined) ?? {}), [target.name.slice(-3)]: values[target.name] }
    delete whole[target.name]
  }
  return whole
}
