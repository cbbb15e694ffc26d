import type { Transaction } from 'lmdb'
import type { Row } from '../kernel/table.ts'
import { storedBytes } from './table-store.lmdb-apply.ts'
import { RowSet } from './table-store.lmdb-bits.ts'
import {
  ALL_FIELD,
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
import { isInside } from './table-store.lmdb-question.ts'
import type { TableReaders } from './table-store.lmdb-readers.ts'
import { wordsOf } from './table-store.lmdb-words.ts'
import type { Find, Found, StoredRow } from './table-store.ts'

/*
 * How a question is answered. Equality and text become sets of row numbers (bitmaps, a few microseconds per 4096 rows).
 * A small set is sorted in memory by the values that `docs` keeps; a large one, or none, walks the index of the sort
 * field in order and takes what the set has, until the page is full: the larger the set, the sooner. Rows are decoded
 * for the page alone. Totals count bits.
 */
const SORTED_IN_MEMORY_MAX = 1_500
const ENTRIES_AT_ONCE_MAX = 8_000
const AFTER_ALL = Buffer.of(255)
const LAST_CHUNK = Buffer.from([255, 255, 255, 255, 255])

interface Entry {
  id: string
  /** Where it stands in the sort: value and id, or id alone. */
  place: Buffer
}

interface Bounds {
  low: Buffer
  high: Buffer
}

export interface FindSource {
  env: TableEnvironment
  readers: TableReaders
  transaction: Transaction
  record: TableRecord
  scope: string
  scopeNumber: number
  now: number
}

/** One question to one table and scope, on one snapshot. */
export class Finder {
  private readonly source: FindSource
  private readonly space: Buffer
  private readonly question: Find
  private readonly options: { transaction: Transaction }
  private readonly expired: RowSet | undefined
  private readonly after: Buffer | undefined
  private visited = 0

  constructor(source: FindSource, question: Find) {
    this.source = source
    this.space = spaceKey(source.record.number, source.scopeNumber)
    this.question = question
    this.options = { transaction: source.transaction }
    this.after = question.after === undefined ? undefined : Buffer.from(question.after, 'base64url')
    this.expired = this.expiredBy(source.now)
  }

  async find<R extends Row>(): Promise<Found<R>> {
    const { range, sort, limit, offset = 0, total } = this.question
    let set = this.filtered()
    const isBoundedBySort = range !== undefined && range.field === sort?.field
    const isCountable = isBoundedBySort && set === undefined && this.expired === undefined
    if (range !== undefined && !isSmall(set) && (!isBoundedBySort || (total === true && !isCountable))) set = await this.ranged(set)
    if (set !== undefined && this.expired !== undefined) set.drop(this.expired)
    const sorted = set !== undefined && isSmall(set) ? this.sorted(set) : undefined
    const entries = sorted === undefined ? await this.walked(set, offset, limit + 1) : this.afterCursor(sorted).slice(offset, offset + limit + 1)
    const page = entries.slice(0, limit)
    const found: Found<R> = { rows: page.flatMap(({ id }) => this.rowOf<R>(id) ?? []), next: null }
    if (entries.length > limit) found.next = (page.at(-1) ?? NO_ENTRY).place.toString('base64url')
    if (total === true) found.total = sorted?.length ?? set?.size ?? (isCountable ? this.countBounded() : this.all().size)
    return found
  }

  /** What equality and text leave; undefined when the question has neither. */
  private filtered(): RowSet | undefined {
    const sets: RowSet[] = []
    for (const [field, wanted] of Object.entries(this.question.where ?? {})) {
      const some = new RowSet()
      for (const value of Array.isArray(wanted) ? wanted : [wanted]) {
        const bytes = equalityBytes(value)
        if (bytes !== undefined) this.addPostings(some, fieldKey(this.space, equalityField(this.source.record, field), bytes), LAST_CHUNK)
      }
      sets.push(some)
    }
    for (const word of wordsOf(this.question.text ?? '')) {
      const some = new RowSet()
      this.addPostings(some, fieldKey(this.space, TEXT_FIELD, wordBytes(word)), AFTER_ALL)
      sets.push(some)
    }
    const [first, ...others] = sets
    for (const other of others) first?.keep(other)
    return first
  }

  private addPostings(set: RowSet, prefix: Buffer, end: Buffer): void {
    for (const { key, value } of this.source.readers.postings.getRange({ start: prefix, end: Buffer.concat([prefix, end]), ...this.options })) {
      set.addChunk(key as number, value)
    }
  }

  private all(): RowSet {
    const set = new RowSet()
    this.addPostings(set, fieldKey(this.space, ALL_FIELD), LAST_CHUNK)
    if (this.expired !== undefined) set.drop(this.expired)
    return set
  }

  /** The rows within the bounds, of those in the set. */
  private async ranged(set: RowSet | undefined): Promise<RowSet> {
    const inside = new RowSet()
    const { low, high } = this.bounds()
    for (const { value: no } of this.source.readers.order.getRange({ start: low, end: high, ...this.options })) {
      if (set === undefined || set.has(no)) inside.add(no)
      this.visited += 1
      if (this.visited % ENTRIES_AT_ONCE_MAX === 0) await breathe()
    }
    return inside
  }

  private countBounded(): number {
    const { low, high } = this.bounds()
    return this.source.readers.order.getKeysCount({ start: low, end: high, ...this.options })
  }

  /** Keys between which the bounded field lies, none of them a key itself; rows without the field lie before all values. */
  private bounds(): Bounds {
    const { field, from, to } = this.question.range as NonNullable<Find['range']>
    const number = rangeField(this.source.record, field)
    return {
      low: fieldKey(this.space, number, from === undefined ? Buffer.of(1) : orderBytes(from)),
      high: fieldKey(this.space, number, to === undefined ? AFTER_ALL : Buffer.concat([orderBytes(to), AFTER_ALL])),
    }
  }

  private sorted(set: RowSet): Entry[] {
    const { range } = this.question
    const rangeAt = range === undefined ? 0 : rangeField(this.source.record, range.field)
    const entries: Entry[] = []
    for (const no of set) {
      const doc = this.docOf(no)
      if (doc !== undefined && (range === undefined || isInside(doc[rangeAt] ?? null, range))) entries.push(this.entryOf(doc))
    }
    return entries.sort((a, b) => this.compare(a.place, b.place))
  }

  private afterCursor(entries: Entry[]): Entry[] {
    const { after } = this
    return after === undefined ? entries : entries.filter(({ place }) => this.compare(place, after) > 0)
  }

  private compare(a: Buffer, b: Buffer): number {
    return this.question.sort?.order === 'desc' ? Buffer.compare(b, a) : Buffer.compare(a, b)
  }

  /** So many entries of the sort's index that the set has, after `offset` of them. */
  private async walked(set: RowSet | undefined, offset: number, wanted: number): Promise<Entry[]> {
    const { sort } = this.question
    const isPlain = set === undefined && this.expired === undefined && this.after === undefined
    const range = { ...this.walkRange(), ...(isPlain && offset > 0 && { offset }), ...this.options }
    let skips = isPlain ? 0 : offset
    let isFirst = true
    const entries: Entry[] = []
    for (const { value: no } of (sort === undefined ? this.source.readers.rows : this.source.readers.order).getRange(range)) {
      this.visited += 1
      if (this.visited % ENTRIES_AT_ONCE_MAX === 0) await breathe()
      const isCursor = isFirst && this.isCursor(no)
      isFirst = false
      if (isCursor || (set === undefined ? this.expired?.has(no) : !set.has(no))) continue
      if (skips > 0) {
        skips -= 1
        continue
      }
      const doc = this.docOf(no)
      if (doc !== undefined) entries.push(this.entryOf(doc))
      if (entries.length === wanted) break
    }
    return entries
  }

  private walkRange(): { start: Buffer; end: Buffer; reverse?: true } {
    const { sort, range } = this.question
    const base = sort === undefined ? this.space : fieldKey(this.space, rangeField(this.source.record, sort.field))
    let { low, high }: Bounds = range !== undefined && range.field === sort?.field ? this.bounds() : { low: base, high: Buffer.concat([base, AFTER_ALL]) }
    const isDescending = sort?.order === 'desc'
    if (this.after !== undefined) {
      const place = Buffer.concat([base, this.after])
      if (isDescending && Buffer.compare(place, high) < 0) high = place
      if (!isDescending && Buffer.compare(place, low) > 0) low = place
    }
    return isDescending ? { start: high, end: low, reverse: true } : { start: low, end: high }
  }

  // A walk begins at the row of the cursor, when that is still there.
  private isCursor(no: number): boolean {
    if (this.after === undefined) return false
    const doc = this.docOf(no)
    return doc !== undefined && this.entryOf(doc).place.equals(this.after)
  }

  private docOf(no: number): (string | number | null)[] | undefined {
    const bytes = this.source.env.docs.get(numberKey(this.space, no), this.options)
    return bytes === undefined ? undefined : unpack<(string | number | null)[]>(bytes)
  }

  private entryOf(doc: readonly (string | number | null)[]): Entry {
    const { sort } = this.question
    const id = doc[0] as string
    return { id, place: sort === undefined ? idBytes(id) : Buffer.concat([orderBytes(doc[rangeField(this.source.record, sort.field)]), idBytes(id)]) }
  }

  private rowOf<R extends Row>(id: string): StoredRow<R> | undefined {
    const stored = storedBytes(this.source.env.rows.get(Buffer.concat([this.space, idBytes(id)]), this.options))
    return stored === undefined ? undefined : { scope: this.source.scope, id, row: unpack<R>(stored.packed) }
  }

  /** Rows that have ended and are not swept yet. */
  private expiredBy(now: number): RowSet | undefined {
    let expired: RowSet | undefined
    const prefix = Buffer.concat([Buffer.of(1), this.space])
    for (const key of this.source.env.expiry.getKeys({ start: prefix, end: Buffer.concat([prefix, time6(now + 1)]), ...this.options })) {
      expired ??= new RowSet()
      expired.add(bufferOf(key).readUInt32BE(15))
    }
    return expired
  }
}

const NO_ENTRY: Entry = { id: '', place: Buffer.alloc(0) }

const isSmall = (set: RowSet | undefined): boolean => set !== undefined && set.size <= SORTED_IN_MEMORY_MAX

// The snapshot stays as it is meanwhile.
const breathe = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
