import type { Transaction } from 'lmdb'
import { RowSet } from './bits.ts'
import { type DocMember, DocReader } from './docs.ts'
import {
  AFTER_ALL,
  ALL_FIELD,
  bufferOf,
  equalityBytes,
  equalityField,
  fieldKey,
  type KeyBounds,
  rangeField,
  rangeKeys,
  spaceKey,
  TEXT_FIELD,
  type TableEnvironment,
  type TableRecord,
  time6,
  wordBytes,
} from './layout.ts'
import { insideOf } from './order.ts'
import type { TableReaders } from './readers.ts'
import { nextTurn } from './turns.ts'
import { type Find, type Range, rangesOf, stretchesOf, wordGroupsOf } from '../table-store.ts'

/** Work of a question in one turn of the event loop, in passed entries: two milliseconds or three. */
const ENTRIES_AT_ONCE = 8_000
/** Costs of other work in entries: a row looked at, a chunk added to a set, a value looked up. */
export const LOOK_ENTRIES = 10
const CHUNK_ENTRIES = 5
const VALUE_ENTRIES = 32
/** More values may be most of the field's values. */
const VALUES_MAX = 250
const COUNTED_AT_ONCE = 20_000
/** Entries that a walk passes in the time of one lookup. */
const WALKED_FOR_ONE = 8
const LAST_CHUNK = Buffer.from([255, 255, 255, 255, 255])

/** Rows of a set that are looked at one by one for bounds. */
export const BY_ROW_MAX = 20_000
/** Entries of an index that a walk passes in less time than it takes to look at a row of a set. */
const NARROW = 2
/** Entries that are counted to compare two walks: counting them takes a fifth of the time or less. */
const WALK_COUNTED_MIN = 1_000
const WALK_COUNTED_MAX = 64_000

export interface FindSource {
  env: TableEnvironment
  readers: TableReaders
  transaction: Transaction
  record: TableRecord
  scope: string
  scopeNumber: number
  now: number
}

/** The sets of row numbers for the conditions of one question. */
export class QuestionSets {
  readonly space: Buffer
  readonly options: { transaction: Transaction }
  readonly docs: DocReader
  private readonly source: FindSource
  private readonly question: Find
  private passed = 0
  private ended: { rows: RowSet | undefined } | undefined

  constructor(source: FindSource, question: Find) {
    this.source = source
    this.question = question
    this.space = spaceKey(source.record.number, source.scopeNumber)
    this.options = { transaction: source.transaction }
    this.docs = new DocReader(source.env, source.transaction, this.space)
  }

  /** Rows that have expired and are not swept yet; undefined for none. */
  get expired(): RowSet | undefined {
    this.ended ??= { rows: this.expiredBy(this.source.now) }
    return this.ended.rows
  }

  /** Rows that meet equality and text; undefined when the question has neither. */
  async filtered(): Promise<RowSet | undefined> {
    const sets: RowSet[] = []
    for (const [field, wanted] of Object.entries(this.question.where ?? {})) {
      const values = Array.isArray(wanted) ? wanted : [wanted]
      const at = fieldKey(this.space, equalityField(this.source.record, field))
      sets.push((await this.isMost(values)) ? await this.amongAll(at, values) : await this.oneByOne(at, values))
    }
    for (const [field, wanted] of Object.entries(this.question.every ?? {})) {
      const at = fieldKey(this.space, equalityField(this.source.record, field))
      for (const values of wanted) sets.push(await this.oneByOne(at, [values].flat()))
    }
    for (const group of wordGroupsOf(this.question)) {
      const some = new RowSet()
      for (const word of group)
        await this.addPostings(some, fieldKey(this.space, TEXT_FIELD, wordBytes(word)), AFTER_ALL)
      sets.push(some)
    }
    const [first, ...others] = sets
    for (const other of others) first?.keep(other)
    return first
  }

  private async oneByOne(field: Buffer, values: readonly unknown[]): Promise<RowSet> {
    const some = new RowSet()
    for (const value of values) {
      const bytes = equalityBytes(value)
      if (bytes !== undefined) await this.addPostings(some, Buffer.concat([field, bytes]), LAST_CHUNK)
    }
    return some
  }

  private async isMost({ length }: readonly unknown[]): Promise<boolean> {
    return length > VALUES_MAX && length * WALKED_FOR_ONE > (await this.all()).size
  }

  /** One walk over all values of the field: looking each one up takes ten times as long as passing it. */
  private async amongAll(field: Buffer, values: readonly unknown[]): Promise<RowSet> {
    const wanted = new Set<string>()
    for (const value of values) {
      const pause = this.pass(VALUE_ENTRIES)
      if (pause !== undefined) await pause
      const bytes = equalityBytes(value)
      if (bytes !== undefined) wanted.add(bytes.toString('latin1'))
    }
    const some = new RowSet()
    const range = { start: field, end: Buffer.concat([field, AFTER_ALL]), ...this.options }
    for (const { key, value } of this.source.readers.postingKeys.getRange(range)) {
      const [bytes, chunkAt] = [key as string, (key as string).length - 4]
      if (wanted.has(bytes.slice(field.length, chunkAt)))
        some.addChunk(Buffer.from(bytes.slice(chunkAt), 'latin1').readUInt32BE(0), value)
      const pause = this.pass(CHUNK_ENTRIES)
      if (pause !== undefined) await pause // after the chunk was used: other questions read into its memory
    }
    return some
  }

  /** Every row of the scope that has not expired. */
  async all(): Promise<RowSet> {
    const set = new RowSet()
    await this.addPostings(set, fieldKey(this.space, ALL_FIELD), LAST_CHUNK)
    if (this.expired !== undefined) set.drop(this.expired)
    return set
  }

  /** The rows of the set within the bounds. */
  async ranged(range: Range, set: RowSet | undefined): Promise<RowSet> {
    const inside = new RowSet()
    await this.walk(this.within(range), (no) => {
      if (set === undefined || set.has(no)) inside.add(no)
    })
    return inside
  }

  /** Drops the rows of a set outside of the bounds, by the stretches in which they may lie. */
  async dropBeyond(range: Range, set: RowSet): Promise<void> {
    await this.walk(this.beyond(range), (no) => set.remove(no))
    if (range.unless === undefined) return
    const { field, value } = range.unless
    const others = await this.oneByOne(fieldKey(this.space, equalityField(this.source.record, field)), [value])
    others.keep(set)
    const [places, isInside] = [[rangeField(this.source.record, range.field)], insideOf(range)]
    for (const no of others) {
      if (!isInside(this.docs.read(no, places)?.[0] ?? null)) set.remove(no)
      const pause = this.pass(LOOK_ENTRIES)
      if (pause !== undefined) await pause
    }
  }

  /** The walk with the fewest entries for the bounds; `rows`: few rows are better looked at one by one. */
  async shorterWalk(range: Range, rows: number): Promise<'within' | 'beyond' | 'rows'> {
    const isByRow = rows <= BY_ROW_MAX
    if (!isByRow && range.keptWithin === undefined) return 'within'
    const most = isByRow ? NARROW * rows : WALK_COUNTED_MAX
    for (let count = Math.min(most, WALK_COUNTED_MIN); ; count = Math.min(most, 4 * count)) {
      // Often nothing lies beyond, which is counted at once.
      if (range.keptWithin !== undefined && (await this.haveAtMost(this.beyond(range), count))) return 'beyond'
      if (await this.haveAtMost(this.within(range), count)) return 'within'
      if (count === most) return isByRow ? 'rows' : 'within'
    }
  }

  private within(range: Range): KeyBounds[] {
    return stretchesOf(range).map((bounds) => this.bounds({ field: range.field, ...bounds }))
  }

  private beyond(range: Range): KeyBounds[] {
    const [inner, outer] = [this.bounds(range), this.bounds({ field: range.field, ...range.keptWithin })]
    const stretches = [
      { low: outer.low, high: inner.low },
      { low: inner.high, high: outer.high },
    ]
    return stretches.filter(({ low, high }) => Buffer.compare(low, high) < 0)
  }

  private async walk(stretches: readonly KeyBounds[], take: (no: number) => void): Promise<void> {
    for (const { low, high } of stretches)
      for (const { value: no } of this.source.readers.order.getRange({ start: low, end: high, ...this.options })) {
        take(no)
        const pause = this.pass()
        if (pause !== undefined) await pause
      }
  }

  /** Hands over each row of the set within all bounds, with its value of the sort's field, and its id where wanted. */
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
      const pause = this.pass(LOOK_ENTRIES)
      if (pause !== undefined) await pause
    }
  }

  /** Whether each stretch of an index has at most `count` entries. */
  private async haveAtMost(stretches: readonly KeyBounds[], count: number): Promise<boolean> {
    const { order } = this.source.env
    for (const { low, high } of stretches) {
      let start = low
      for (let left = count; ; left -= COUNTED_AT_ONCE) {
        const offset = Math.min(left, COUNTED_AT_ONCE)
        const [next] = order.getKeys({ start, end: high, offset, limit: 1, ...this.options })
        if (next === undefined) break
        if (offset === left) return false
        start = Buffer.from(next)
        await nextTurn()
      }
      const pause = this.pass(count >> 2)
      if (pause !== undefined) await pause
    }
    return true
  }

  /** Number of rows within the bounds, expired ones too. */
  async countBounded(range: Range): Promise<number> {
    const { order } = this.source.env
    const { low, high } = this.bounds(range)
    let [start, count] = [low, 0]
    for (;;) {
      const [next] = order.getKeys({ start, end: high, offset: COUNTED_AT_ONCE, limit: 1, ...this.options })
      if (next === undefined) return count + order.getKeysCount({ start, end: high, ...this.options })
      start = Buffer.from(next)
      count += COUNTED_AT_ONCE
      await nextTurn()
    }
  }

  bounds(range: Range): KeyBounds {
    return rangeKeys(this.space, this.source.record, range)
  }

  /** Counts passed entries. A promise has to be awaited: others have a turn then. */
  pass(entries = 1): Promise<void> | undefined {
    this.passed += entries
    if (this.passed < ENTRIES_AT_ONCE) return undefined
    this.passed = 0
    return nextTurn()
  }

  private async addPostings(set: RowSet, prefix: Buffer, end: Buffer): Promise<void> {
    const lookedUp = this.pass(VALUE_ENTRIES)
    if (lookedUp !== undefined) await lookedUp
    for (const { key, value } of this.source.readers.postings.getRange({
      start: prefix,
      end: Buffer.concat([prefix, end]),
      ...this.options,
    })) {
      set.addChunk(key as number, value)
      const pause = this.pass(CHUNK_ENTRIES)
      if (pause !== undefined) await pause // after the chunk was used: other questions read into its memory
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
