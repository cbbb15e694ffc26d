import type { Transaction } from 'lmdb'
import type { Row } from '../kernel/table.ts'
import { RowSet } from './table-store.lmdb-bits.ts'
import { storedBytes } from './table-store.lmdb-apply.ts'
import {
  ALL_FIELD,
  type Binary,
  bufferOf,
  equalityBytes,
  equalityField,
  fieldKey,
  idBytes,
  numberKey,
  orderBytes,
  rangeField,
  spaceKey,
  TEXT_FIELD,
  type TableEnvironment,
  type TableRecord,
  time6,
  unpack,
  wordBytes,
} from './table-store.lmdb-layout.ts'
import { wordsOf } from './table-store.lmdb-words.ts'
import type { Find, Found, StoredRow } from './table-store.ts'

/*
 * How a question is answered. Equality and text become sets of row numbers (bitmaps, a few microseconds per 4096 rows).
 * A small set is sorted in memory by the values that `docs` keeps; a large one, or none, walks the index of the sort
 * field in order and takes what the set has, until the page is full: the larger the set, the sooner. Rows are decoded
 * for the page alone. Totals count bits.
 */
const SORTED_IN_MEMORY_MAX = 1_500
const ENTRIES_AT_ONCE_MAX = 4_000
const AFTER_ALL = Buffer.of(255)

interface Entry {
  no: number
  id: string
  /** Where it stands in the sort: value and id, or id alone. */
  place: Buffer
}

/** One question to one table and scope, on one snapshot. */
export class Finder {
  private readonly env: TableEnvironment
  private readonly record: TableRecord
  private readonly space: Buffer
  private readonly question: Find
  private readonly options: { transaction: Transaction }
  private readonly expired: RowSet | undefined
  private visited = 0

  constructor(env: TableEnvironment, transaction: Transaction, record: TableRecord, scopeNumber: number, question: Find, now: number) {
    this.env = env
    this.record = record
    this.space = spaceKey(record.number, scopeNumber)
    this.question = question
    this.options = { transaction }
    this.expired = this.expiredBy(now)
  }

  async find<R extends Row>(): Promise<Found<R>> {
    const { range, sort, limit, offset = 0, total } = this.question
    let set = this.filtered()
    const rangeIsSort = range !== undefined && range.field === sort?.field
    const isSmall = set !== undefined && set.size <= SORTED_IN_MEMORY_MAX
    if (range !== undefined && !isSmall && (!rangeIsSort || total === true)) set = await this.ranged(set)
    if (set !== undefined && this.expired !== undefined) set.drop(this.expired)
    const small = set !== undefined && (isSmall || set.size <= SORTED_IN_MEMORY_MAX)
    const entries = small ? this.sorted(set as RowSet) : await this.walked(set, offset + limit + 1)
    const after = this.question.after === undefined ? undefined : Buffer.from(this.question.after, 'base64url')
    const left = small && after !== undefined ? entries.filter(({ place }) => this.compare(place, after) > 0) : entries
    const page = left.slice(offset, offset + limit)
    const last = page.at(-1)
    const found: Found<R> = {
      rows: page.map(({ id }) => this.rowOf<R>(id)).filter((row) => row !== undefined),
      next: last !== undefined && left.length > offset + limit ? last.place.toString('base64url') : null,
    }
    if (total === true) found.total = small ? entries.length : (set ?? this.all()).size
    return found
  }

  /** What equality and text leave; undefined when the question has neither. */
  private filtered(): RowSet | undefined {
    let set: RowSet | undefined
    const narrow = (other: RowSet): void => {
      if (set === undefined) set = other
      else set.keep(other)
    }
    for (const [field, wanted] of Object.entries(this.question.where ?? {})) {
      const number = equalityField(this.record, field)
      const some = new RowSet()
      for (const value of Array.isArray(wanted) ? wanted : [wanted]) {
        const bytes = equalityBytes(value)
        if (bytes !== undefined) this.addPostings(some, fieldKey(this.space, number, bytes), 4)
      }
      narrow(some)
    }
    for (const word of wordsOf(this.question.text ?? '')) {
      const some = new RowSet()
      this.addPostings(some, fieldKey(this.space, TEXT_FIELD, wordBytes(word)))
      narrow(some)
    }
    return set
  }

  private addPostings(set: RowSet, prefix: Buffer, chunkBytes?: number): void {
    for (const { key, value } of this.env.postings.getRange({ start: prefix, end: Buffer.concat([prefix, chunkBytes === undefined ? AFTER_ALL : LAST_CHUNK]), ...this.options })) {
      const bytes = bufferOf(key)
      set.addChunk(bytes.readUInt32BE(bytes.length - 4), bufferOf(value))
    }
  }

  private all(): RowSet {
    const set = new RowSet()
    this.addPostings(set, fieldKey(this.space, ALL_FIELD), 4)
    if (this.expired !== undefined) set.drop(this.expired)
    return set
  }

  /** The rows within the bounds, of those in the set. */
  private async ranged(set: RowSet | undefined): Promise<RowSet> {
    const inside = new RowSet()
    const { low, high } = this.bounds()
    for (const { value } of this.env.order.getRange({ start: low, end: high, ...this.options })) {
      const no = bufferOf(value).readUInt32BE(0)
      if (set === undefined || set.has(no)) inside.add(no)
      this.visited += 1
      if (this.visited % ENTRIES_AT_ONCE_MAX === 0) await breathe()
    }
    return inside
  }

  /** Keys between which the bounded field lies; rows without the field lie before all values. */
  private bounds(): { low: Buffer; high: Buffer } {
    const { field, from, to } = this.question.range as NonNullable<Find['range']>
    const number = rangeField(this.record, field)
    return {
      low: fieldKey(this.space, number, from === undefined ? Buffer.of(1) : orderBytes(from)),
      high: fieldKey(this.space, number, to === undefined ? AFTER_ALL : Buffer.concat([orderBytes(to), AFTER_ALL])),
    }
  }

  private sorted(set: RowSet): Entry[] {
    const { sort, range } = this.question
    const sortAt = sort === undefined ? 0 : rangeField(this.record, sort.field)
    const rangeAt = range === undefined ? 0 : rangeField(this.record, range.field)
    const entries: Entry[] = []
    for (const no of set) {
      const bytes = this.env.docs.get(numberKey(this.space, no), this.options)
      if (bytes === undefined) continue
      const doc = unpack<(string | number | null)[]>(bytes)
      if (range !== undefined && !isInside(doc[rangeAt] ?? null, range)) continue
      const id = doc[0] as string
      entries.push({ no, id, place: sort === undefined ? idBytes(id) : Buffer.concat([orderBytes(doc[sortAt]), idBytes(id)]) })
    }
    return entries.sort((a, b) => this.compare(a.place, b.place))
  }

  private compare(a: Buffer, b: Buffer): number {
    return this.question.sort?.order === 'desc' ? Buffer.compare(b, a) : Buffer.compare(a, b)
  }

  /** The first entries of the sort's index that the set has. */
  private async walked(set: RowSet | undefined, wanted: number): Promise<Entry[]> {
    const { sort, range, after } = this.question
    const base = sort === undefined ? this.space : fieldKey(this.space, rangeField(this.record, sort.field))
    const database: Binary = sort === undefined ? this.env.rows : this.env.order
    const isDescending = sort?.order === 'desc'
    let low: Buffer = base
    let high: Buffer = Buffer.concat([base, AFTER_ALL])
    if (range !== undefined && range.field === sort?.field) ({ low, high } = this.bounds())
    if (after !== undefined) {
      const place = Buffer.concat([base, Buffer.from(after, 'base64url')])
      if (isDescending) high = Buffer.compare(place, high) < 0 ? place : high
      else low = Buffer.compare(place, low) > 0 ? Buffer.concat([place, Buffer.of(0)]) : low
    }
    const entries: Entry[] = []
    const bounds = isDescending ? { start: high, end: base, reverse: true } : { start: low, end: high }
    for (const { key, value } of database.getRange({ ...bounds, ...this.options })) {
      const at = bufferOf(key)
      if (isDescending && Buffer.compare(at, low) < 0) break
      if (isDescending && Buffer.compare(at, high) >= 0) continue
      const no = bufferOf(value).readUInt32BE(0)
      this.visited += 1
      if (this.visited % ENTRIES_AT_ONCE_MAX === 0) await breathe()
      if (set === undefined ? this.expired?.has(no) : !set.has(no)) continue
      const place = Buffer.from(at.subarray(base.length))
      entries.push({ no, id: sort === undefined ? place.toString('utf8') : '', place })
      if (entries.length === wanted) break
    }
    // Ids of the page alone: an entry of the index ends with its id, but where it begins only the value knows.
    if (sort !== undefined) for (const entry of entries) entry.id = this.idOf(entry.no)
    return entries
  }

  private idOf(no: number): string {
    const bytes = this.env.docs.get(numberKey(this.space, no), this.options)
    return bytes === undefined ? '' : unpack<[string]>(bytes)[0]
  }

  private rowOf<R extends Row>(id: string): StoredRow<R> | undefined {
    const stored = storedBytes(this.env.rows.get(Buffer.concat([this.space, idBytes(id)]), this.options))
    return stored === undefined ? undefined : { scope: '', id, row: unpack<R>(stored.packed) }
  }

  /** Rows that have ended and are not swept yet. */
  private expiredBy(now: number): RowSet | undefined {
    let expired: RowSet | undefined
    const prefix = Buffer.concat([Buffer.of(1), this.space])
    for (const key of this.env.expiry.getKeys({ start: prefix, end: Buffer.concat([prefix, time6(now + 1)]), ...this.options })) {
      expired ??= new RowSet()
      expired.add(bufferOf(key).readUInt32BE(15))
    }
    return expired
  }
}

// The snapshot stays as it is meanwhile.
const breathe = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const LAST_CHUNK = Buffer.from([255, 255, 255, 255, 255])

/** @throws Error when the question names a field without an index: a fault of the program, not of the client. */
export const checkQuestion = (name: string, record: TableRecord, question: Find): void => {
  const { where = {}, range, sort, text } = question
  for (const field of Object.keys(where)) if (!record.equality.includes(field)) throw new Error(`Table ${name} declares no equality index on ${field}.`)
  for (const field of [range?.field, sort?.field]) {
    if (field !== undefined && !record.range.includes(field)) throw new Error(`Table ${name} declares no range index on ${field}.`)
  }
  if (text !== undefined && record.text.length === 0) throw new Error(`Table ${name} declares no text index.`)
}

const isInside = (value: string | number | null, range: NonNullable<Find['range']>): boolean => {
  if (value === null) return false
  const bytes = orderBytes(value)
  if (range.from !== undefined && Buffer.compare(bytes, orderBytes(range.from)) < 0) return false
  return range.to === undefined || Buffer.compare(bytes, orderBytes(range.to)) <= 0
}
