import type { Transaction } from 'lmdb'
import { RowSet } from './bits.ts'
import { type DocMember, DocReader } from './docs.ts'
import {
  ALL_FIELD,
  bufferOf,
  equalityBytes,
  equalityField,
  fieldKey,
  orderBytes,
  rangeField,
  spaceKey,
  TEXT_FIELD,
  type TableEnvironment,
  type TableRecord,
  time6,
  wordBytes,
} from './layout.ts'
import { insideOf } from './order.ts'
import type { TableReaders } from './readers.ts'
import { type Find, type Range, rangesOf, wordGroupsOf } from '../table-store.ts'

const ENTRIES_AT_ONCE_MAX = 8_000
const VALUES_AT_ONCE = 250
const COUNTED_AT_ONCE = 20_000
/** Entries that a walk passes in the time of one look-up. */
const WALKED_FOR_ONE = 8
export const AFTER_ALL = Buffer.of(255)
const LAST_CHUNK = Buffer.from([255, 255, 255, 255, 255])

export interface Bounds {
  low: Buffer
  high: Buffer
}

/** Rows of a set that are looked at one by one where bounds are asked for. */
export const BY_ROW_MAX = 20_000

export interface FindSource {
  env: TableEnvironment
  readers: TableReaders
  transaction: Transaction
  record: TableRecord
  scope: string
  scopeNumber: number
  now: number
}

/** The sets of row numbers that the conditions of one question mean. */
export class QuestionSets {
  readonly space: Buffer
  readonly options: { transaction: Transaction }
  readonly docs: DocReader
  private readonly source: FindSource
  private readonly question: Find
  private visited = 0
  private ended: { rows: RowSet | undefined } | undefined

  constructor(source: FindSource, question: Find) {
    this.source = source
    this.question = question
    this.space = spaceKey(source.record.number, source.scopeNumber)
    this.options = { transaction: source.transaction }
    this.docs = new DocReader(source.env, source.transaction, this.space)
  }

  /** Rows that have ended and are not swept yet; undefined where none have. */
  get expired(): RowSet | undefined {
    this.ended ??= { rows: this.expiredBy(this.source.now) }
    return this.ended.rows
  }

  /** What equality and text leave; undefined when the question has neither. */
  async filtered(): Promise<RowSet | undefined> {
    const sets: RowSet[] = []
    for (const [field, wanted] of Object.entries(this.question.where ?? {})) {
      const values = Array.isArray(wanted) ? wanted : [wanted]
      const at = fieldKey(this.space, equalityField(this.source.record, field))
      sets.push(this.isMost(values) ? await this.amongAll(at, values) : await this.oneByOne(at, values))
    }
    for (const [field, wanted] of Object.entries(this.question.every ?? {})) {
      for (const value of wanted) {
        const some = new RowSet()
        const bytes = equalityBytes(value)
        if (bytes !== undefined)
          this.addPostings(some, fieldKey(this.space, equalityField(this.source.record, field), bytes), LAST_CHUNK)
        sets.push(some)
      }
    }
    for (const group of wordGroupsOf(this.question)) {
      const some = new RowSet()
      for (const [i, word] of group.entries()) {
        if (i % VALUES_AT_ONCE === VALUES_AT_ONCE - 1) await breathe()
        this.addPostings(some, fieldKey(this.space, TEXT_FIELD, wordBytes(word)), AFTER_ALL)
      }
      sets.push(some)
    }
    const [first, ...others] = sets
    for (const other of others) first?.keep(other)
    return first
  }

  private async oneByOne(field: Buffer, values: readonly unknown[]): Promise<RowSet> {
    const some = new RowSet()
    for (const [i, value] of values.entries()) {
      if (i % VALUES_AT_ONCE === VALUES_AT_ONCE - 1) await breathe()
      const bytes = equalityBytes(value)
      if (bytes !== undefined) this.addPostings(some, Buffer.concat([field, bytes]), LAST_CHUNK)
    }
    return some
  }

  private isMost({ length }: readonly unknown[]): boolean {
    return length > VALUES_AT_ONCE && length * WALKED_FOR_ONE > this.all().size
  }

  /** One walk over all values of the field: to look each one up takes ten times as long as to pass it by. */
  private async amongAll(field: Buffer, values: readonly unknown[]): Promise<RowSet> {
    const wanted = new Set<string>()
    for (const [i, value] of values.entries()) {
      if (i % VALUES_AT_ONCE === VALUES_AT_ONCE - 1) await breathe()
      const bytes = equalityBytes(value)
      if (bytes !== undefined) wanted.add(bytes.toString('latin1'))
    }
    const some = new RowSet()
    const range = { start: field, end: Buffer.concat([field, AFTER_ALL]), ...this.options }
    for (const { key, value } of this.source.readers.postingKeys.getRange(range)) {
      const [bytes, chunkAt] = [key as string, (key as string).length - 4]
      if (wanted.has(bytes.slice(field.length, chunkAt)))
        some.addChunk(Buffer.from(bytes.slice(chunkAt), 'latin1').readUInt32BE(0), value)
      if (this.isTimeToBreathe()) await breathe() // after the chunk was used: other questions read into its memory
    }
    return some
  }

  /** Every row of the scope that has not ended. */
  all(): RowSet {
    const set = new RowSet()
    this.addPostings(set, fieldKey(this.space, ALL_FIELD), LAST_CHUNK)
    if (this.expired !== undefined) set.drop(this.expired)
    return set
  }

  /** The rows within the bounds, of those in the set. */
  async ranged(range: Range, set: RowSet | undefined): Promise<RowSet> {
    const inside = new RowSet()
    const { low, high } = this.bounds(range)
    for (const { value: no } of this.source.readers.order.getRange({ start: low, end: high, ...this.options })) {
      if (set === undefined || set.has(no)) inside.add(no)
      if (this.isTimeToBreathe()) await breathe()
    }
    return inside
  }

  /** Hands over each row of the set that keeps all bounds, with its value of the sort's field, and its id where wanted. */
  async lookAt(set: RowSet, take: (no: number, value: DocMember, id: () => string) => void): Promise<void> {
    const { record } = this.source
    const { sort } = this.question
    const ranges = rangesOf(this.question)
    const fields = [...ranges.map(({ field }) => field), ...(sort === undefined ? [] : [sort.field])]
    const placeOf = (field: string): number => rangeField(record, field)
    const places = [...new Set(fields.map(placeOf))].sort((a, b) => a - b)
    const bounds = ranges.map((range) => ({ at: places.indexOf(placeOf(range.field)), isInside: insideOf(range) }))
    const valueAt = sort === undefined ? -1 : places.indexOf(placeOf(sort.field))
    for (const no of set) {
      const doc = this.docs.read(no, places)
      if (doc !== undefined && bounds.every(({ at, isInside }) => isInside(doc[at])))
        take(no, valueAt < 0 ? null : doc[valueAt], this.docs.id)
      if (this.isTimeToBreathe()) await breathe()
    }
  }

  /** Whether at most so many rows lie within the bounds, ended ones too. */
  hasAtMost(range: Range, count: number): boolean {
    const { low, high } = this.bounds(range)
    const [next] = this.source.env.order.getKeys({ start: low, end: high, offset: count, limit: 1, ...this.options })
    return next === undefined
  }

  /** How many rows lie within the bounds, ended ones too. */
  async countBounded(range: Range): Promise<number> {
    const { order } = this.source.env
    const { low, high } = this.bounds(range)
    let [start, count] = [low, 0]
    for (;;) {
      const [next] = order.getKeys({ start, end: high, offset: COUNTED_AT_ONCE, limit: 1, ...this.options })
      if (next === undefined) return count + order.getKeysCount({ start, end: high, ...this.options })
      start = Buffer.from(next)
      count += COUNTED_AT_ONCE
      await breathe()
    }
  }

  /** Keys between which the bounded field lies, none of them a key itself; rows without the field lie before all values. */
  bounds({ field, from, to }: Range): Bounds {
    const number = rangeField(this.source.record, field)
    return {
      low: fieldKey(this.space, number, from === undefined ? Buffer.of(1) : orderBytes(from)),
      high: fieldKey(this.space, number, to === undefined ? AFTER_ALL : Buffer.concat([orderBytes(to), AFTER_ALL])),
    }
  }

  isTimeToBreathe(): boolean {
    this.visited += 1
    return this.visited % ENTRIES_AT_ONCE_MAX === 0
  }

  private addPostings(set: RowSet, prefix: Buffer, end: Buffer): void {
    for (const { key, value } of this.source.readers.postings.getRange({
      start: prefix,
      end: Buffer.concat([prefix, end]),
      ...this.options,
    })) {
      set.addChunk(key as number, value)
    }
  }

  private expiredBy(now: number): RowSet | undefined {
    let expired: RowSet | undefined
    const prefix = Buffer.concat([Buffer.of(1), this.space])
    for (const key of this.source.env.expiry.getKeys({
      start: prefix,
      end: Buffer.concat([prefix, time6(now + 1)]),
      ...this.options,
    })) {
      expired ??= new RowSet()
      expired.add(bufferOf(key).readUInt32BE(15))
    }
    return expired
  }
}

/** Gives the event loop a turn; the snapshot stays as it is. */
export const breathe = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
