import type { Transaction } from 'lmdb'
import { number4, numberKey, type TableEnvironment, type TableRecord } from './layout.ts'

/*
 * Changes in a table's scope, so that remembered answers know whether they still hold: counts of changes of its rows,
 * of the set of rows, and of each index; and by the count of changes of rows, the rows changed by the last
 * transactions. They are stored with the changes, so a snapshot has those of its own state.
 */
export const ROWS_SLOT = 0
export const MEMBERS_SLOT = 1
export const TEXT_SLOT = 2
const FIRST_INDEX_SLOT = 3

/** Transactions whose rows are kept, and the number of rows of one above which they are not. */
const LISTED_MAX = 128
const LISTED_ROWS_MAX = 500

export const equalitySlot = (record: TableRecord, field: string): number =>
  equalitySlotAt(record.equality.indexOf(field))

export const rangeSlot = (record: TableRecord, field: string): number =>
  rangeSlotAt(record, record.range.indexOf(field))

/** Slot of the field at an index of its declaration. */
export const equalitySlotAt = (index: number): number => FIRST_INDEX_SLOT + index
export const rangeSlotAt = ({ equality }: TableRecord, index: number): number =>
  FIRST_INDEX_SLOT + equality.length + index

/** Collects the changes of one transaction in one space. */
export class Changes {
  private readonly slots = new Set<number>()
  private readonly rows = new Set<number>()

  /** Notes a row that was written or deleted. */
  row(no: number): void {
    this.rows.add(no)
    this.slots.add(ROWS_SLOT)
  }

  index(slot: number): void {
    this.slots.add(slot)
  }

  flush(env: TableEnvironment, space: Buffer): void {
    const { slots, rows } = this
    if (rows.size === 0) return
    const before = env.changes.getBinary(space)
    const counts = Buffer.alloc(Math.max(before?.length ?? 0, 4 * (Math.max(...slots) + 1)))
    if (before !== undefined) counts.set(before)
    for (const slot of slots) counts.writeUInt32BE((countIn(counts, slot) + 1) >>> 0, 4 * slot)
    env.changes.putSync(space, counts)
    const count = countIn(counts, ROWS_SLOT)
    if (rows.size <= LISTED_ROWS_MAX)
      env.changes.putSync(numberKey(space, count), Buffer.concat([...rows].map((no) => number4(no))))
    if (count >= LISTED_MAX) env.changes.removeSync(numberKey(space, count - LISTED_MAX))
  }
}

export const countIn = (counts: Buffer | undefined, slot: number): number =>
  counts === undefined || counts.length < 4 * slot + 4 ? 0 : counts.readUInt32BE(4 * slot)

/** Rows that changed between two counts of their changes; undefined where they are too many, or too long ago. */
export const changedRows = (
  env: TableEnvironment,
  options: { transaction: Transaction },
  space: Buffer,
  [from, to]: readonly [from: number, to: number],
): Set<number> | undefined => {
  if (to <= from || to - from > LISTED_MAX) return undefined
  const rows = new Set<number>()
  for (let count = from + 1; count <= to; count += 1) {
    const bytes = readBinary(env.changes, numberKey(space, count), options)
    if (bytes === undefined || rows.size > LISTED_ROWS_MAX) return undefined
    for (let at = 0; at < bytes.length; at += 4) rows.add(bytes.readUInt32BE(at))
  }
  return rows
}

/** LMDB's types lack the options of `get`, which accepts them. */
export const readBinary = (
  database: { get(key: Uint8Array, options: object): Buffer | undefined },
  key: Uint8Array,
  options: object,
): Buffer | undefined => database.get(key, options)
