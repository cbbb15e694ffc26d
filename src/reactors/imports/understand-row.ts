import type { Target } from '../../features/imports/targets.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { understood } from '../../kit/formats/cell-values.ts'
import type { Convention } from '../../kit/formats/conventions.ts'
import { type Cell, shownCell } from '../../kit/formats/table-cells.ts'
import type { ZonedTime } from '../../kit/formats/zoned-time.ts'

/** A mapped column of the file. */
export interface MappedColumn {
  index: number
  name: string
  target: Target
  convention: Convention
}

/** A cell that does not fit its column. */
export class CellFault extends Error {
  readonly column: string

  constructor(column: string, cell: Cell | undefined, expected: string) {
    super(`${JSON.stringify(shownCell(cell).slice(0, SHOWN_CHARS))} ${expected}`)
    this.column = column
  }
}

const SHOWN_CHARS = 100

/** Values of a row by the names of their targets; blank ones are left out. @throws CellFault */
export const valuesOf = (columns: readonly MappedColumn[], cells: readonly Cell[], zone: ZonedTime): JsonObject => {
  const values: JsonObject = {}
  for (const { index, name, target, convention } of columns) {
    const found = understood(cells[index], target.rule, { ...convention, zone })
    if ('expected' in found) throw new CellFault(name, cells[index], found.expected)
    if (found.value !== undefined) values[target.name] = found.value
  }
  return values
}

/** The values, with places from two columns, `<name>.lat` and `<name>.lng`, put together. */
export const withPlaces = (values: JsonObject, columns: readonly MappedColumn[]): JsonObject => {
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
