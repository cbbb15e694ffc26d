import type { Row, RowChange } from '../../kernel/table.ts'
import type { KnownTable } from './places.ts'
import { packed, termsOf } from './terms.ts'

/** Cost of storing for the server, in about 2 µs: a row, and each term of it. */
const ROW_COST = 3
const TERM_COST = 1
/** Cost of one call, during which the server serves nobody else. */
export const STEP_COST = 600
const STEP_BYTES = 64 * 1024

/** Changes made by one call. */
export interface Step {
  /** In the form that the library's `commit` reads: for each table its generation and changes. */
  changes: (string | Buffer)[]
  cost: number
  isFirst: boolean
  isLast: boolean
}

/** Cuts changes of one place into steps; at least one. Each row is named once. */
export function* stepsOf(
  changes: readonly RowChange[],
  tableOf: (name: string) => KnownTable,
): Generator<Step, void, undefined> {
  const last = lastOfEach(changes)
  for (let start = 0; start === 0 || start < last.length; ) {
    const byTable = new Map<string, (string | Buffer)[]>()
    let [end, cost, bytes] = [start, 0, 0]
    for (; end < last.length && cost < STEP_COST && bytes < STEP_BYTES; end++) {
      const change = last[end]
      const table = tableOf(change.table)
      const rows = byTable.get(table.generation) ?? []
      byTable.set(table.generation, rows)
      if (change.row === null) {
        rows.push(change.id, '0', '', '')
        cost += 10 * TERM_COST
      } else {
        const [ends, row, terms, count] = rowArguments(table, change as RowChange & { row: Row })
        rows.push(change.id, ends, row, terms)
        cost += ROW_COST + count * TERM_COST
        bytes += row.byteLength + terms.byteLength
      }
    }
    const changed = [...byTable].flatMap(([generation, rows]) => [generation, packedStrings(rows)])
    yield { changes: changed, cost, isFirst: start === 0, isLast: end >= last.length }
    start = Math.max(end, start + 1)
  }
}

export const rowArguments = (
  { declaration }: KnownTable,
  { id, row, expiresAt }: RowChange & { row: Row },
): [ends: string, row: Buffer, terms: Buffer, count: number] => {
  const terms = termsOf(declaration, id, row)
  return [expiresAt === undefined ? '0' : endOf(expiresAt), packed(row), terms.packed, terms.count]
}

const ARRAY_32 = 0xdd
const STRING_32 = 0xdb

/** A MessagePack array of strings: Redis knows no other way to write bytes. One argument costs less than many. */
const packedStrings = (strings: readonly (string | Buffer)[]): Buffer => {
  const size = strings.reduce((sum, one) => sum + 5 + Buffer.byteLength(one), 5)
  const bytes = Buffer.allocUnsafe(size)
  const header = (type: number, length: number, at: number): number => {
    bytes[at] = type
    return bytes.writeUInt32BE(length, at + 1)
  }
  let at = header(ARRAY_32, strings.length, 0)
  for (const one of strings) {
    at = header(STRING_32, Buffer.byteLength(one), at)
    at += typeof one === 'string' ? bytes.write(one, at) : one.copy(bytes, at)
  }
  return bytes
}

/** The end of a row, as Redis takes it. */
export const endOf = (expiresAt: number): string => String(Math.max(1, Math.floor(expiresAt)))

/** The last change of each row: earlier ones are never seen. */
const lastOfEach = (changes: readonly RowChange[]): readonly RowChange[] => {
  const last = new Map<string, RowChange>()
  for (const change of changes) last.set(`${change.table}\0${change.id}`, change)
  return last.size === changes.length ? changes : [...last.values()]
}
