import type { Row } from '../../kernel/table.ts'
import { isForOneCaller } from '../page-memory.ts'
import { type Find, type Found, type Range, rangesOf, type StoredRow } from '../table-store.ts'
import { type KnownAnswer, type KnownAnswers, type Matches, SORTED_IN_MEMORY_MAX } from './answers.ts'
import { RowSet } from './bits.ts'
import { AFTER_ALL, fieldKey, idBytes, type KeyBounds, orderBytes, rangeField } from './layout.ts'
import { FirstMatches, inOrder, type Match } from './order.ts'
import { BY_ROW_MAX, type FindSource, LOOK_ENTRIES, QuestionSets } from './sets.ts'
import { stepsOf } from './steps.ts'

/** Smaller sets are sorted in memory, where changed rows bring them up to date. */
const STEPPED_MIN = 300

/*
 * Answering a question. Equality and text become sets of row numbers (bitmaps, a few microseconds per 4096 rows). A
 * small set is sorted in memory by the values in `docs`; with a large one, or none, the index of the sort field is
 * walked in order for rows of the set, until the page is full: the larger the set, the sooner. Only rows of the page
 * are decoded. Totals count bits. Earlier answers are given again while nothing of them was changed.
 */

/** One question to one table and scope, on one snapshot. */
export class Finder {
  private readonly source: FindSource
  private readonly sets: QuestionSets
  private readonly question: Find
  private readonly known: KnownAnswer
  private readonly after: Buffer | undefined
  /** The bounds on the field of the sort. */
  private readonly sortRange: Range | undefined
  /** All matches up to the end of the page, where they were found together. */
  private first: Match[] | undefined
  private steps: KeyBounds[] | undefined

  constructor(source: FindSource, question: Find, known: KnownAnswers) {
    this.source = source
    this.question = question
    this.sets = new QuestionSets(source, question)
    // Whether rows have expired depends on the time alone.
    this.known = known.about(source, question, question.once !== true && this.sets.expired === undefined)
    this.sortRange = rangesOf(question).find(
      ({ field, goesRound }) => field === question.sort?.field && goesRound !== true,
    )
    this.after = question.after === undefined ? undefined : Buffer.from(question.after, 'base64url')
  }

  async find<R extends Row>(): Promise<Found<R>> {
    const known = this.known.page
    if (known !== undefined) return known as Found<R>
    const matches = this.known.matches ?? this.known.keepMatches(await this.matches())
    return this.known.keepPage(await this.pageOf(matches), matches.name) as Found<R>
  }

  async rows(): Promise<RowSet> {
    const { set, sorted } = this.known.matches ?? this.known.keepMatches(await this.matches())
    if (set !== undefined) return set
    const rows = sorted === undefined ? await this.sets.all() : new RowSet()
    for (const { no } of sorted ?? []) rows.add(no)
    return rows
  }

  private async pageOf(matches: Matches): Promise<Found> {
    const { limit, offset = 0 } = this.question
    const { sorted, set } = matches
    if (sorted === undefined && this.question.sort === undefined && offset === 0 && isForOneCaller(this.question))
      return this.walkedPage(matches)
    const start = sorted === undefined ? 0 : this.startIn(sorted)
    const found =
      sorted === undefined
        ? (this.first?.slice(offset) ?? (await this.walked(set, offset, limit + 1)))
        : sorted.slice(start + offset, start + offset + limit + 1)
    const page = found.slice(0, limit)
    const last = page.at(-1)
    const next = found.length > limit && last !== undefined ? this.placeOf(last).toString('base64url') : null
    const rows = this.known.rows(page.map(({ id }) => id))
    if (this.question.total !== true) return { rows, next }
    matches.total ??= await this.totalOf(matches)
    return { rows, next, total: matches.total }
  }

  private async matches(): Promise<Matches> {
    let set = await this.sets.filtered()
    let size = set?.size ?? Number.POSITIVE_INFINITY
    const isCountable = this.isCountable(set)
    let isBounded = false
    for (const range of rangesOf(this.question)) {
      const isWalked = range === this.sortRange && (this.question.total !== true || isCountable)
      if (isWalked || size <= SORTED_IN_MEMORY_MAX) continue
      const walk = set === undefined ? 'within' : await this.sets.shorterWalk(range, size)
      isBounded ||= walk !== 'beyond'
      if (walk === 'rows') continue
      if (set !== undefined && walk === 'beyond') await this.sets.dropBeyond(range, set)
      else set = await this.sets.ranged(range, set)
      size = set.size
    }
    if (set === undefined) return {}
    if (size > 0 && this.sets.expired !== undefined) set.drop(this.sets.expired)
    if (set.size <= SORTED_IN_MEMORY_MAX && !(await this.isWalkShort(set))) return { sorted: await this.sorted(set) }
    return isBounded && size <= BY_ROW_MAX ? { set: await this.bounded(set) } : { set }
  }

  /** The rows of a set within all bounds. Finds their first page on the way: in the index they may stand far apart. */
  private async bounded(set: RowSet): Promise<RowSet> {
    const { limit, offset = 0, sort } = this.question
    const count = offset + limit + 1
    const isFirst = this.after === undefined && count <= SORTED_IN_MEMORY_MAX
    const first = isFirst && sort !== undefined ? new FirstMatches(count, sort.order === 'desc') : undefined
    const inside = new RowSet()
    await this.sets.lookAt(set, (no, value, id) => {
      inside.add(no)
      if (first?.mayHave(value) === true) first.add({ no, id: id(), value })
    })
    this.first = first?.inOrder()
    return inside
  }

  /** Whether the entries of the index are the matches. */
  private isCountable(set: RowSet | undefined): boolean {
    const isAlone = this.sortRange !== undefined && rangesOf(this.question).length === 1
    return isAlone && set === undefined && this.sets.expired === undefined
  }

  private async totalOf({ sorted, set }: Matches): Promise<number> {
    if (sorted !== undefined) return sorted.length
    if (set !== undefined) return set.size
    return this.sortRange === undefined ? (await this.sets.all()).size : this.sets.countBounded(this.sortRange)
  }

  private async sorted(set: RowSet): Promise<Match[]> {
    const matches: Match[] = []
    await this.sets.lookAt(set, (no, value, id) => matches.push({ no, id: id(), value }))
    return inOrder(matches, this.question.sort?.order === 'desc')
  }

  /** Start of the page: after the cursor. */
  private startIn(sorted: readonly Match[]): number {
    const { after } = this
    if (after === undefined) return 0
    const isDescending = this.question.sort?.order === 'desc'
    let [low, high] = [0, sorted.length]
    while (low < high) {
      const middle = (low + high) >> 1
      const behind = Buffer.compare(this.placeOf(sorted[middle]), after)
      if (isDescending ? behind < 0 : behind > 0) high = middle
      else low = middle + 1
    }
    return low
  }

  /** A page in the order of ids whose rows are unpacked where the walk meets them, in place of two lookups of each. */
  private async walkedPage(matches: Matches): Promise<Found> {
    const { limit, total } = this.question
    const { scope, readers } = this.source
    const after = this.after?.toString('utf8')
    const rows: StoredRow[] = []
    let next: string | null = null
    const [range] = this.walkRanges(undefined)
    for (const { key, value } of range === undefined
      ? []
      : readers.wholeRows.getRange({ ...range, ...this.sets.options })) {
      const [id, bytes] = [key as string, value as Buffer]
      const no = bytes.readUInt32BE(0)
      if (id === after || (matches.set === undefined ? this.sets.expired?.has(no) : !matches.set.has(no))) {
        const pause = this.sets.pass()
        if (pause !== undefined) await pause
      } else if (rows.length === limit) {
        next = idBytes(rows[limit - 1].id).toString('base64url')
        break
      } else {
        rows.push({ scope, id, row: this.known.unpacked(bytes, bytes.length) })
        const pause = this.sets.pass(LOOK_ENTRIES)
        if (pause !== undefined) await pause
      }
    }
    if (total === true) matches.total ??= await this.totalOf(matches)
    return { rows, next, ...(total === true && { total: matches.total }) }
  }

  /** `wanted` entries of the sort's index that are in the set, after `offset` of them. */
  private async walked(set: RowSet | undefined, offset: number, wanted: number): Promise<Match[]> {
    const { sort } = this.question
    const isPlain = set === undefined && this.sets.expired === undefined && this.after === undefined
    const options = { ...(isPlain && offset > 0 && { offset }), ...this.sets.options }
    const index = sort === undefined ? this.source.readers.rows : this.source.readers.order
    let skips = isPlain ? 0 : offset
    let isFirst = true
    const matches: Match[] = []
    for (const range of this.walkRanges(await this.stepsOf(set)))
      for (const { value: no } of index.getRange({ ...range, ...options })) {
        const pause = this.sets.pass()
        if (pause !== undefined) await pause
        const isCursor = isFirst && this.isCursor(no)
        isFirst = false
        if (isCursor || (set === undefined ? this.sets.expired?.has(no) : !set.has(no))) continue
        if (skips > 0) {
          skips -= 1
          continue
        }
        const match = this.matchOf(no)
        if (match !== undefined) matches.push(match)
        if (matches.length === wanted) return matches
      }
    return matches
  }

  /** The stretches of the order in which rows of a set lie, where few values tell. */
  private async stepsOf(set: RowSet | undefined): Promise<KeyBounds[] | undefined> {
    const { sort } = this.question
    if (set !== undefined && sort !== undefined) this.steps ??= await stepsOf(this.source, set, sort.field)
    return this.steps
  }

  /** Whether a walk over the steps takes less than looking at each row. */
  private async isWalkShort(set: RowSet): Promise<boolean> {
    const { size } = set
    if (size < STEPPED_MIN || rangesOf(this.question).length > 0) return false
    if ((await this.stepsOf(set)) === undefined) return false
    const passed = ((this.question.offset ?? 0) + this.question.limit) * ((await this.sets.all()).size / size)
    return passed < size * LOOK_ENTRIES
  }

  private walkRanges(steps: KeyBounds[] | undefined): { start: Buffer; end: Buffer; reverse?: true }[] {
    const { sort } = this.question
    const base =
      sort === undefined ? this.sets.space : fieldKey(this.sets.space, rangeField(this.source.record, sort.field))
    const bounds = this.sortRange ?? (sort?.within && { field: sort.field, ...sort.within })
    let { low, high }: KeyBounds =
      bounds !== undefined ? this.sets.bounds(bounds) : { low: base, high: Buffer.concat([base, AFTER_ALL]) }
    const isDescending = sort?.order === 'desc'
    if (this.after !== undefined) {
      const place = Buffer.concat([base, this.after])
      if (isDescending && Buffer.compare(place, high) < 0) high = place
      if (!isDescending && Buffer.compare(place, low) > 0) low = place
    }
    const within = (steps ?? [{ low, high }])
      .map((step) => ({
        low: Buffer.compare(step.low, low) < 0 ? low : step.low,
        high: Buffer.compare(step.high, high) < 0 ? step.high : high,
      }))
      .filter((step) => Buffer.compare(step.low, step.high) < 0)
    return isDescending
      ? within.reverse().map((step) => ({ start: step.high, end: step.low, reverse: true }))
      : within.map((step) => ({ start: step.low, end: step.high }))
  }

  // A walk begins at the row of the cursor, if it still exists.
  private isCursor(no: number): boolean {
    if (this.after === undefined) return false
    const match = this.matchOf(no)
    return match !== undefined && this.placeOf(match).equals(this.after)
  }

  private matchOf(no: number): Match | undefined {
    const { sort } = this.question
    const places = sort === undefined ? [0] : [0, rangeField(this.source.record, sort.field)]
    const doc = this.sets.docs.read(no, places)
    return doc === undefined ? undefined : { no, id: doc[0] as string, value: doc[1] ?? null }
  }

  /** Place of a row in the order: its value and id, or its id alone. */
  private placeOf({ id, value }: Match): Buffer {
    return this.question.sort === undefined ? idBytes(id) : Buffer.concat([orderBytes(value), idBytes(id)])
  }
}
