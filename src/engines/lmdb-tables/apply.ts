import type { Row } from '../../kernel/table.ts'
import { Chunk, chunkOf, offsetOf } from './bits.ts'
import { Changes, equalitySlot, MEMBERS_SLOT, rangeSlot, TEXT_SLOT } from './changes.ts'
import {
  ALL_FIELD,
  fieldKey,
  idBytes,
  number4,
  numberKey,
  orderBytes,
  pack,
  rowKey,
  spaceKey,
  TEXT_FIELD,
  type TableEnvironment,
  type TableRecord,
  time6,
  unpack,
} from './layout.ts'
import {
  equalityTerms,
  expiryKeys,
  isSame,
  NOTHING,
  NUMBER_MAX,
  rowBytes,
  type StoredBytes,
  sortable,
  spaceName,
  storedBytes,
  wordTerms,
} from './terms.ts'

/** Changes rows together with their indexes. Lives for one transaction: what it holds in memory is written by `flush`. */
export class RowWriter {
  private readonly env: TableEnvironment
  private readonly chunks = new Map<number, Map<string, { key: Buffer; chunk: Chunk }>>()
  private readonly spaces = new Map<number, { key: Buffer; next: number }>()
  private readonly changes = new Changes()
  private readonly scopeNumber: (name: string) => number
  /** Change of the bytes that rows take. */
  bytesAdded = 0

  constructor(env: TableEnvironment, scopeNumber: (name: string) => number) {
    this.env = env
    this.scopeNumber = scopeNumber
  }

  read(record: TableRecord, scope: string, id: string): StoredBytes | undefined {
    return storedBytes(this.env.rows.getBinary(rowKey(spaceKey(record.number, this.scopeNumber(scope)), id)))
  }

  /** Stores a row, or deletes it when there are no bytes. */
  write(record: TableRecord, scope: string, id: string, packed: Buffer | null, expiresAt: number): void {
    const space = spaceKey(record.number, this.scopeNumber(scope))
    const key = rowKey(space, id)
    const old = storedBytes(this.env.rows.getBinary(key))
    if (packed === null) {
      if (old !== undefined) this.remove(record, space, key, id, old)
      return
    }
    const no = old?.no ?? this.newNumber(space)
    const before = old === undefined ? undefined : unpack<Row>(old.packed)
    const row = unpack<Row>(packed)
    this.env.rows.putSync(key, rowBytes(no, expiresAt, packed))
    this.bytesAdded += packed.length - (old?.packed.length ?? -key.length)
    const changed = this.changes.row(space, no)
    if (old === undefined) {
      changed.add(MEMBERS_SLOT)
      this.post(space, ALL_FIELD, '', NOTHING, no, true)
    }
    this.index(record, space, no, before, row)
    this.putOrder(record, space, no, id, before, row)
    if ((old?.expiresAt ?? 0) !== expiresAt) {
      if (old !== undefined && old.expiresAt > 0) this.removeExpiry(space, no, old.expiresAt)
      if (expiresAt > 0) for (const entry of expiryKeys(space, no, expiresAt)) this.env.expiry.putSync(entry, NOTHING)
    }
  }

  /** Deletes the row of this number when it ends by then. */
  expire(record: TableRecord, space: Buffer, no: number, expiresAt: number): void {
    this.removeExpiry(space, no, expiresAt)
    const doc = this.env.docs.getBinary(numberKey(space, no))
    if (doc === undefined) return
    const id = unpack<[string]>(doc)[0]
    const key = rowKey(space, id)
    const old = storedBytes(this.env.rows.getBinary(key))
    if (old !== undefined && old.no === no && old.expiresAt === expiresAt) this.remove(record, space, key, id, old)
  }

  /** Counts the bytes of a row that is deleted together with its whole table. */
  forget(key: Uint8Array): void {
    const old = storedBytes(this.env.rows.getBinary(key))
    if (old !== undefined) this.bytesAdded -= old.packed.length + key.length
  }

  flush(): void {
    for (const chunks of this.chunks.values()) {
      for (const { key, chunk } of chunks.values()) {
        const bytes = chunk.serialize()
        if (bytes === undefined) this.env.postings.removeSync(key)
        else this.env.postings.putSync(key, bytes)
      }
    }
    for (const { key, next } of this.spaces.values()) this.env.spaces.putSync(key, time6(next))
    this.changes.flush(this.env)
    this.chunks.clear()
    this.spaces.clear()
  }

  private remove(record: TableRecord, space: Buffer, key: Buffer, id: string, old: StoredBytes): void {
    const before = unpack<Row>(old.packed)
    this.env.rows.removeSync(key)
    this.env.docs.removeSync(numberKey(space, old.no))
    this.post(space, ALL_FIELD, '', NOTHING, old.no, false)
    const changed = this.changes.row(space, old.no).add(MEMBERS_SLOT)
    this.index(record, space, old.no, before, undefined)
    for (const [index, field] of record.range.entries()) {
      changed.add(rangeSlot(record, field))
      this.env.order.removeSync(fieldKey(space, index + 1, orderBytes(before[field]), idBytes(id)))
    }
    if (old.expiresAt > 0) this.removeExpiry(space, old.no, old.expiresAt)
    this.bytesAdded -= old.packed.length + key.length
  }

  private index(record: TableRecord, space: Buffer, no: number, before: Row | undefined, row: Row | undefined): void {
    for (const [index, field] of record.equality.entries()) {
      const [old, now] = [before?.[field], row?.[field]]
      if (isSame(old, now)) continue
      this.changes.index(space, equalitySlot(record, field))
      this.repost(space, index + 1, no, equalityTerms(old), equalityTerms(now))
    }
    if (record.text.every((field) => isSame(before?.[field], row?.[field]))) return
    this.changes.index(space, TEXT_SLOT)
    this.repost(space, TEXT_FIELD, no, wordTerms(before, record.text), wordTerms(row, record.text))
  }

  private repost(
    space: Buffer,
    field: number,
    no: number,
    before: ReadonlyMap<string, Buffer>,
    now: ReadonlyMap<string, Buffer>,
  ): void {
    for (const [text, value] of before) if (!now.has(text)) this.post(space, field, text, value, no, false)
    for (const [text, value] of now) if (!before.has(text)) this.post(space, field, text, value, no, true)
  }

  private putOrder(
    record: TableRecord,
    space: Buffer,
    no: number,
    id: string,
    before: Row | undefined,
    row: Row,
  ): void {
    let changed = before === undefined
    const [idPart, noPart] = [idBytes(id), number4(no)]
    for (const [index, field] of record.range.entries()) {
      if (before !== undefined && isSame(before[field], row[field])) continue
      changed = true
      this.changes.index(space, rangeSlot(record, field))
      if (before !== undefined) this.env.order.removeSync(fieldKey(space, index + 1, orderBytes(before[field]), idPart))
      if (sortable(row[field]) === null && record.sparse?.includes(field)) continue
      this.env.order.putSync(fieldKey(space, index + 1, orderBytes(row[field]), idPart), noPart)
    }
    if (changed)
      this.env.docs.putSync(numberKey(space, no), pack([id, ...record.range.map((field) => sortable(row[field]))]))
  }

  /** `text` is the value as a string of its bytes: a name of the chunk in memory that costs less than the key. */
  private post(space: Buffer, field: number, text: string, value: Buffer, no: number, on: boolean): void {
    const chunks = this.chunksOf(space)
    const name = `${field} ${chunkOf(no)} ${text}`
    let entry = chunks.get(name)
    if (entry === undefined) {
      const key = fieldKey(space, field, value, number4(chunkOf(no)))
      entry = { key, chunk: Chunk.parse(this.env.postings.getBinary(key)) }
      chunks.set(name, entry)
    }
    if (on) entry.chunk.add(offsetOf(no))
    else entry.chunk.remove(offsetOf(no))
  }

  private chunksOf(space: Buffer): Map<string, { key: Buffer; chunk: Chunk }> {
    const name = spaceName(space)
    let chunks = this.chunks.get(name)
    if (chunks === undefined) {
      chunks = new Map()
      this.chunks.set(name, chunks)
    }
    return chunks
  }

  private newNumber(space: Buffer): number {
    const name = spaceName(space)
    let entry = this.spaces.get(name)
    if (entry === undefined) {
      const value = this.env.spaces.getBinary(space)
      entry = { key: space, next: value?.readUIntBE(0, 6) ?? 0 }
      this.spaces.set(name, entry)
    }
    // After four thousand million rows the numbers begin anew, and some are taken.
    while (entry.next > NUMBER_MAX && this.env.docs.doesExist(numberKey(space, entry.next >>> 0))) entry.next += 1
    const no = entry.next >>> 0
    entry.next += 1
    return no
  }

  private removeExpiry(space: Buffer, no: number, expiresAt: number): void {
    for (const entry of expiryKeys(space, no, expiresAt)) this.env.expiry.removeSync(entry)
  }
}
