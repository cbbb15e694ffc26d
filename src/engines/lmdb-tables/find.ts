import type { Row } from '../../kernel/table.ts'
import type { RowSet } from './bits.ts'
import { fieldKey, idBytes, numberKey, orderBytes, rangeField, unpack } from './layout.ts'
import { isInside } from './question.ts'
import { AFTER_ALL, type Bounds, breathe, type FindSource, QuestionSets } from './sets.ts'
import { storedBytes } from './terms.ts'
import { type Find, type Found, type Range, rangesOf, type StoredRow } from '../table-store.ts'

/*
 * How a question is answered. Equality and text become sets of row numbers (bitmaps, a few microseconds per 4096 rows).
 * A small set is sorted in memory by the values that `docs` keeps; a large one, or none, walks the index of the sort
 * field in order and takes what the set has, until the page is full: the larger the set, the sooner. Rows are decoded
 * for the page alone. Totals count bits.
 */
const SORTED_IN_MEMORY_MAX = 1_500

interface Entry {
  id: string
  /** Where it stands in the sort: value and id, or id alone. */
  place: Buffer
}

/** One question to one table and scope, on one snapshot. */
export class Finder {
  private readonly source: FindSource
  private readonly sets: QuestionSets
  private readonly question: Find
  private readonly after: Buffer | undefined
  /** The bounds on the field that the sort follows. */
  private readonly sortRange: Range | undefined

  constructor(source: FindSource, question: Find) {
    this.source = source
    this.question = question
    this.sets = new QuestionSets(source, question)
    this.sortRange = rangesOf(question).find(({ field }) => field === question.sort?.field)
    this.after = question.after === undefined ? undefined : Buffer.from(question.after, 'base64url')
  }

  async find<R extends Row>(): Promise<Found<R>> {
    const { limit, offset = 0, total } = this.question
    const ranges = rangesOf(this.question)
    let set = await this.sets.filtered()
    const isCountable =
      this.sortRange !== undefined && ranges.length === 1 && set === undefined && this.sets.expired === undefined
    for (const range of ranges)
      if (!isSmall(set) && (range !== this.sortRange || (total === true && !isCountable)))
        set = await this.sets.ranged(range, set)
    if (set !== undefined && this.sets.expired !== undefined) set.drop(this.sets.expired)
    const sorted = set !== undefined && isSmall(set) ? this.sorted(set) : undefined
    const entries =
      sorted === undefined
        ? await this.walked(set, offset, limit + 1)
        : this.afterCursor(sorted).slice(offset, offset + limit + 1)
    const page = entries.slice(0, limit)
    const found: Found<R> = { rows: page.flatMap(({ id }) => this.rowOf<R>(id) ?? []), next: null }
    if (entries.length > limit) found.next = (page.at(-1) ?? NO_ENTRY).place.toString('base64url')
    if (total === true)
      found.total =
        sorted?.length ?? set?.size ?? (isCountable ? this.sets.countBounded(ranges[0]) : this.sets.all().size)
    return found
  }

  private sorted(set: RowSet): Entry[] {
    const ranges = rangesOf(this.question).map((range) => ({
      ...range,
      at: rangeField(this.source.record, range.field),
    }))
    const entries: Entry[] = []
    for (const no of set) {
      const doc = this.docOf(no)
      if (doc !== undefined && ranges.every((range) => isInside(doc[range.at] ?? null, range)))
        entries.push(this.entryOf(doc))
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
    const isPlain = set === undefined && this.sets.expired === undefined && this.after === undefined
    const range = { ...this.walkRange(), ...(isPlain && offset > 0 && { offset }), ...this.sets.options }
    let skips = isPlain ? 0 : offset
    let isFirst = true
    const entries: Entry[] = []
    for (const { value: no } of (sort === undefined ? this.source.readers.rows : this.source.readers.order).getRange(
      range,
    )) {
      if (this.sets.isTimeToBreathe()) await breathe()
      const isCursor = isFirst && this.isCursor(no)
      isFirst = false
      if (isCursor || (set === undefined ? this.sets.expired?.has(no) : !set.has(no))) continue
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
    const { sort } = this.question
    const base =
      sort === undefined ? this.sets.space : fieldKey(this.sets.space, rangeField(this.source.record, sort.field))
    const bounds = this.sortRange ?? (sort?.within && { field: sort.field, ...sort.within })
    let { low, high }: Bounds =
      bounds !== undefined ? this.sets.bounds(bounds) : { low: base, high: Buffer.concat([base, AFTER_ALL]) }
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
    const bytes = this.source.env.docs.get(numberKey(this.sets.space, no), this.sets.options)
    return bytes === undefined ? undefined : unpack<(string | number | null)[]>(bytes)
  }

  private entryOf(doc: readonly (string | number | null)[]): Entry {
    const { sort } = this.question
    const id = doc[0] as string
    return {
      id,
      place:
        sort === undefined
          ? idBytes(id)
          : Buffer.concat([orderBytes(doc[rangeField(this.source.record, sort.field)]), idBytes(id)]),
    }
  }

  private rowOf<R extends Row>(id: string): StoredRow<R> | undefined {
    const stored = storedBytes(
      this.source.env.rows.get(Buffer.concat([this.sets.space, idBytes(id)]), this.sets.options),
    )
    return stored === undefined ? undefined : { scope: this.source.scope, id, row: unpack<R>(stored.packed) }
  }
}

const NO_ENTRY: Entry = { id: '', place: Buffer.alloc(0) }

const isSmall = (set: RowSet | undefined): boolean => set !== undefined && set.size <= SORTED_IN_MEMORY_MAX
