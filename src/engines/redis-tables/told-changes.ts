import { type Find, rangesOf, wordGroupsOf } from '../table-store.ts'
import { checksOf } from './plan.ts'
import { insideOf, latin1, textOf } from './terms.ts'

/** Values by index, as bytes in a string; undefined for no row. */
type Terms = ReadonlyMap<string, readonly string[]> | undefined

interface RowTold {
  id: string
  /** Whether its terms are as before. */
  isSame: boolean
  before: Terms
  now: Terms
}

interface Told {
  token: string
  packed: Buffer
  /** Read on demand. */
  rows?: RowTold[]
}

/** Marks in place of terms: shorter than any. */
const SAME = '='.charCodeAt(0)
const NO_ROW = '-'.charCodeAt(0)

/** Changes that a process remembers of a table and place, and their bytes: once read, they take four times as much. */
const CHANGES_MAX = 256
const BYTES_MAX = 32 * 1024

/** Effects of the last changes of one table and place, in their order, as far as they are known without a gap. */
export class ToldChanges {
  /** The change before the first known one. */
  private before: string
  private readonly told: Told[] = []
  private bytes = 0

  constructor(before: string) {
    this.before = before
  }

  get last(): string {
    return this.told.at(-1)?.token ?? this.before
  }

  /** Token and effect of each change behind the last one, as Redis reports them. */
  add(told: readonly Buffer[]): void {
    for (let i = 0; i + 1 < told.length; i += 2) {
      // The driver's buffer is a part of a larger one, which it would retain.
      this.told.push({ token: String(told[i]), packed: Buffer.from(told[i + 1]) })
      this.bytes += told[i + 1].length
    }
    while (this.told.length > CHANGES_MAX || this.bytes > BYTES_MAX) {
      const { token, packed } = this.told.shift()!
      this.before = token
      this.bytes -= packed.length
    }
  }

  /** Rows changed after a change; undefined where that is unknown. */
  since(token: string): readonly RowTold[] | undefined {
    const at = this.told.findLastIndex((one) => one.token === token)
    if (at < 0 && token !== this.before) return undefined
    return this.told.slice(at + 1).flatMap((one) => (one.rows ??= rowsTold(one.packed)))
  }
}

/** Whether a change of this row may change the rows that a question finds, or their order. */
export const concerns = (question: Find): ((row: RowTold) => boolean) => {
  const conditions = checksOf(question).map(({ index, values }) => ({ index, any: new Set(values.map(latin1)) }))
  const bounds = rangesOf(question).map((range) => ({ index: `r:${range.field}`, isInside: insideOf(range) }))
  const groups = wordGroupsOf(question).map((group) => group.map((word) => textOf(word).slice(0, -2)))
  const fits = (terms: Terms): boolean =>
    terms !== undefined &&
    conditions.every(({ index, any }) => terms.get(index)?.some((value) => any.has(value))) &&
    bounds.every(({ index, isInside }) => terms.get(index)?.some(isInside)) &&
    groups.every((group) => terms.get('w')?.some((word) => group.some((start) => word.startsWith(start))))
  return ({ isSame, before, now }) => !isSame && (fits(before) || fits(now))
}

/** Parts that are each preceded by their length. */
function* partsOf(packed: Buffer): Generator<Buffer> {
  for (let at = 0; at < packed.length; ) {
    const start = at + 4
    at = start + packed.readUInt32BE(at)
    yield packed.subarray(start, at)
  }
}

/** For each row: id, terms before, terms now. */
const rowsTold = (packed: Buffer): RowTold[] => {
  const parts = [...partsOf(packed)]
  const rows: RowTold[] = []
  for (let i = 0; i + 2 < parts.length; i += 3) {
    const [id, before, now] = parts.slice(i, i + 3)
    const isSame = before.length === 1 && before[0] === SAME
    const [was, is] = isSame ? [undefined, undefined] : [before, now].map((terms) => termsOf(terms, id.length))
    rows.push({ id: String(id), isSame, before: was, now: is })
  }
  return rows
}

/** Terms as a writer packs them: for each its length, then index, zero byte, value, id. */
const termsOf = (packed: Buffer, idLength: number): Terms => {
  if (packed.length === 1 && packed[0] === NO_ROW) return undefined
  const terms = new Map<string, string[]>()
  for (const term of partsOf(packed)) {
    const cut = term.indexOf(0)
    const index = latin1(term.subarray(0, cut))
    const value = latin1(term.subarray(cut + 1, term.length - idLength))
    const values = terms.get(index)
    if (values === undefined) terms.set(index, [value])
    else values.push(value)
  }
  return terms
}
