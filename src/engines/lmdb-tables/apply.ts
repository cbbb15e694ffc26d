import type { Row } from '../../kernel/table.ts'
import { Changes, equalitySlotAt, MEMBERS_SLOT, rangeSlotAt, TEXT_SLOT } from './changes.ts'
import {
  ALL_FIELD,
  idBytes,
  KEY_BYTES_MAX,
  number4,
  numberKey,
  pack,
  rowKey,
  spaceKey,
  TEXT_FIELD,
  type TableEnvironment,
  type TableRecord,
  time6,
  unpack,
  writeOrder,
} from './layout.ts'
import { Postings } from './postings.ts'
import {
  expiryKeys,
  isSame,
  NOTHING,
  NUMBER_MAX,
  rowBytes,
  type StoredBytes,
  sortable,
  spaceName,
  storedBytes,
  termsOf,
  wordTerms,
} from './terms.ts'

/** Changes of a transaction in one scope of a table. */
interface Space {
  key: Buffer
  postings: Postings
  changes: Changes
  /** Number of the next new row; undefined where none is made. */
  next: number | undefined
}

/** Changes rows together with their indexes. Lives for one transaction: `flush` writes its memory. */
export class RowWriter {
  private readonly env: TableEnvironment
  private readonly spaces = new Map<number, Space>()
  private readonly scopeNumber: (name: string) => number
  /** Scope of the last row written, as rows of one scope follow each other. */
  private last: { record: TableRecord; scope: string; space: Space } | undefined
  bytesAdded = 0

  constructor(env: TableEnvironment, scopeNumber: (name: string) => number) {
    this.env = env
    this.scopeNumber = scopeNumber
  }

  read(record: TableRecord, scope: string, id: string): StoredBytes | undefined {
    return storedBytes(this.env.rows.getBinary(rowKey(this.spaceOf(record, scope).key, idBytes(id))))
  }

  /** Stores a row, or deletes it when there are no bytes. */
  write(record: TableRecord, scope: string, id: string, packed: Buffer | null, expiresAt: number): void {
    const space = this.spaceOf(record, scope)
    const idPart = idBytes(id)
    const key = rowKey(space.key, idPart)
    // In memory that the driver reuses at its next read.
    const old = storedBytes(this.env.rows.getBinaryFast(key))
    if (packed === null) {
      if (old !== undefined) this.remove(record, space, key, idPart, old)
      return
    }
    const before = old === undefined || !hasIndex(record) ? undefined : unpack<Row>(old.packed)
    const no = old?.no ?? this.newNumber(space)
    this.env.rows.putSync(key, rowBytes(no, expiresAt, packed))
    this.bytesAdded += packed.length - (old?.packed.length ?? -key.length)
    space.changes.row(no)
    if (old === undefined) {
      space.changes.index(MEMBERS_SLOT)
      space.postings.post(ALL_FIELD, '', no, true)
    }
    // Without an index the values of a known row are of no interest, and unpacking both took a third of the time.
    if (old === undefined || before !== undefined) {
      const row = unpack<Row>(packed)
      this.index(record, space, no, before, row)
      this.putOrder(record, space, no, id, idPart, before, row)
    }
    if ((old?.expiresAt ?? 0) !== expiresAt) {
      if (old !== undefined && old.expiresAt > 0) this.removeExpiry(space, no, old.expiresAt)
      if (expiresAt > 0)
        for (const entry of expiryKeys(space.key, no, expiresAt)) this.env.expiry.putSync(entry, NOTHING)
    }
  }

  /** Deletes the row of this number if it has expired by then. */
  expire(record: TableRecord, key: Buffer, no: number, expiresAt: number): void {
    const space = this.spaceAt(key)
    this.removeExpiry(space, no, expiresAt)
    const doc = this.env.docs.getBinary(numberKey(key, no))
    if (doc === undefined) return
    const idPart = idBytes(unpack<[string]>(doc)[0])
    const row = rowKey(key, idPart)
    const old = storedBytes(this.env.rows.getBinary(row))
    if (old !== undefined && old.no === no && old.expiresAt === expiresAt) this.remove(record, space, row, idPart, old)
  }

  /** Counts the bytes of a row that is deleted together with its whole table. */
  forget(key: Uint8Array): void {
    const old = storedBytes(this.env.rows.getBinary(key))
    if (old !== undefined) this.bytesAdded -= old.packed.length + key.length
  }

  flush(): void {
    for (const { key, postings, changes, next } of this.spaces.values()) {
      postings.flush()
      if (next !== undefined) this.env.spaces.putSync(key, time6(next))
      changes.flush(this.env, key)
    }
    this.spaces.clear()
    this.last = undefined
  }

  private remove(record: TableRecord, space: Space, key: Buffer, idPart: Buffer, old: StoredBytes): void {
    const before = unpack<Row>(old.packed)
    this.env.rows.removeSync(key)
    this.env.docs.removeSync(numberKey(space.key, old.no))
    space.postings.post(ALL_FIELD, '', old.no, false)
    space.changes.row(old.no)
    space.changes.index(MEMBERS_SLOT)
    this.index(record, space, old.no, before, undefined)
    for (const [index, field] of record.range.entries()) {
      space.changes.index(rangeSlotAt(record, index))
      this.env.order.removeSync(orderKey(space.key, index + 1, before[field], idPart))
    }
    if (old.expiresAt > 0) this.removeExpiry(space, old.no, old.expiresAt)
    this.bytesAdded -= old.packed.length + key.length
  }

  private index(record: TableRecord, space: Space, no: number, before: Row | undefined, row: Row | undefined): void {
    for (const [index, field] of record.equality.entries()) {
      const [old, now] = [before?.[field], row?.[field]]
      if (isSame(old, now)) continue
      space.changes.index(equalitySlotAt(index))
      space.postings.repost(index + 1, no, termsOf(old), termsOf(now))
    }
    if (record.text.every((field) => isSame(before?.[field], row?.[field]))) return
    space.changes.index(TEXT_SLOT)
    space.postings.repost(TEXT_FIELD, no, wordTerms(before, record.text), wordTerms(row, record.text))
  }

  private putOrder(
    record: TableRecord,
    space: Space,
    no: number,
    id: string,
    idPart: Buffer,
    before: Row | undefined,
    row: Row,
  ): void {
    const { order, docs } = this.env
    let changed = before === undefined
    const noPart = number4(no)
    for (const [index, field] of record.range.entries()) {
      const value = row[field]
      if (before !== undefined && isSame(before[field], value)) continue
      changed = true
      space.changes.index(rangeSlotAt(record, index))
      if (before !== undefined) order.removeSync(orderKey(space.key, index + 1, before[field], idPart))
      if (sortable(value) === null && record.sparse?.includes(field)) continue
      order.putSync(orderKey(space.key, index + 1, value, idPart), noPart)
    }
    if (changed)
      docs.putSync(numberKey(space.key, no), pack([id, ...record.range.map((field) => sortable(row[field]))]))
  }

  private spaceOf(record: TableRecord, scope: string): Space {
    if (this.last?.record === record && this.last.scope === scope) return this.last.space
    const space = this.spaceAt(spaceKey(record.number, this.scopeNumber(scope)))
    this.last = { record, scope, space }
    return space
  }

  private spaceAt(key: Buffer): Space {
    const name = spaceName(key)
    let space = this.spaces.get(name)
    if (space === undefined) {
      space = { key, postings: new Postings(this.env, key), changes: new Changes(), next: undefined }
      this.spaces.set(name, space)
    }
    return space
  }

  private newNumber(space: Space): number {
    let next = space.next
    if (next === undefined) {
      next = this.env.spaces.getBinary(space.key)?.readUIntBE(0, 6) ?? 0
      if (next <= NUMBER_MAX) space.postings.endsBefore(next)
    }
    // After four thousand million rows the numbers start over, and some are taken.
    while (next > NUMBER_MAX && this.env.docs.doesExist(numberKey(space.key, next >>> 0))) next += 1
    space.next = next + 1
    return next >>> 0
  }

  private removeExpiry({ key }: Space, no: number, expiresAt: number): void {
    for (const entry of expiryKeys(key, no, expiresAt)) this.env.expiry.removeSync(entry)
  }
}

const hasIndex = ({ equality, range, text }: TableRecord): boolean =>
  equality.length > 0 || range.length > 0 || text.length > 0

// The driver copies a key before it returns, so one buffer serves all.
const keyBytes = Buffer.alloc(KEY_BYTES_MAX)

const orderKey = (space: Buffer, field: number, value: unknown, id: Buffer): Buffer => {
  keyBytes.set(space, 0)
  keyBytes[space.length] = field
  const end = writeOrder(keyBytes, space.length + 1, value)
  keyBytes.set(id, end)
  return keyBytes.subarray(0, end + id.length)
}
