import { type Bounds, type Range, stretchesOf } from '../table-store.ts'
import { idBytes, orderBytes } from './layout.ts'

/*
 * The order of the indexes, in memory. Short texts without a character from the surrogates on are compared by
 * JavaScript, in the order of their bytes; all others by the bytes in the indexes.
 */
const PLAIN_LENGTH_MAX = 100
const NOT_PLAIN = /[\ud800-\uffff]/

type Value = string | number | null

/** A matching row, and its value of the field of the order. */
export interface Match {
  no: number
  id: string
  value: Value
}

const isPlain = (value: Value): boolean =>
  typeof value === 'string' ? value.length <= PLAIN_LENGTH_MAX && !NOT_PLAIN.test(value) : !Number.isNaN(value)

/** Tells whether a value of the bounded field lies within the bounds; a missing one does not. */
export const insideOf = (range: Range): ((value: Value) => boolean) => {
  const [isInside, isInsideToo] = stretchesOf(range).map(betweenOf)
  return isInsideToo === undefined ? isInside : (value) => isInside(value) || isInsideToo(value)
}

const betweenOf = ({ from, to }: Bounds): ((value: Value) => boolean) => {
  const bounds = [from, to].filter((bound) => bound !== undefined)
  const [low, high] = [from, to].map((bound) => (bound === undefined ? undefined : orderBytes(bound)))
  const isFast = bounds.every(isPlain)
  return (value) => {
    if (value === null) return false
    if (isFast && !Number.isNaN(value) && bounds.every((bound) => typeof bound === typeof value))
      return (from === undefined || value >= from) && (to === undefined || value <= to)
    const bytes = orderBytes(value)
    if (low !== undefined && Buffer.compare(bytes, low) < 0) return false
    return high === undefined || Buffer.compare(bytes, high) <= 0
  }
}

/** By value, then by id: missing ones first, numbers, texts. */
export const inOrder = (matches: readonly Match[], isDescending: boolean): Match[] => {
  const isFast = matches.every(isPlainMatch)
  const compare = isFast ? byValue : byBytes
  return matches.toSorted(isDescending ? (a, b) => compare(b, a) : compare)
}

/** The first `count` of all added rows in that order, without keeping the others. */
export class FirstMatches {
  private readonly count: number
  private readonly isDescending: boolean
  private matches: Match[] = []
  /** The last of the first rows so far, once there are `count`. */
  private last: Match | undefined

  constructor(count: number, isDescending: boolean) {
    this.count = count
    this.isDescending = isDescending
  }

  /** False for a row of this value that `count` rows precede, whatever its id is. */
  mayHave(value: Value): boolean {
    if (this.last === undefined || !isPlain(value) || !isPlain(this.last.value)) return true
    const compared = compareValues(value, this.last.value)
    return this.isDescending ? compared >= 0 : compared <= 0
  }

  add(match: Match): void {
    this.matches.push(match)
    if (this.matches.length < 4 * this.count + FIRST_AT_ONCE) return
    this.matches = this.inOrder()
    this.last = this.matches.at(-1)
  }

  inOrder(): Match[] {
    return inOrder(this.matches, this.isDescending).slice(0, this.count)
  }
}

const FIRST_AT_ONCE = 200

/** The same with some more rows. */
export const inOrderWith = (matches: readonly Match[], more: readonly Match[], isDescending: boolean): Match[] => {
  const all = [...matches]
  for (const match of more) {
    let [low, high] = [0, all.length]
    while (low < high) {
      const middle = (low + high) >> 1
      const compare = isPlainMatch(match) && isPlainMatch(all[middle]) ? byValue : byBytes
      if (compare(all[middle], match) > 0 === isDescending) low = middle + 1
      else high = middle
    }
    all.splice(low, 0, match)
  }
  return all
}

const isPlainMatch = ({ id, value }: Match): boolean => isPlain(value) && !NOT_PLAIN.test(id)

const byValue = (a: Match, b: Match): number =>
  compareValues(a.value, b.value) || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)

const compareValues = (a: Value, b: Value): number => {
  if (a === b) return 0
  const kinds = kindOf(a) - kindOf(b)
  if (kinds !== 0) return kinds
  return (a as string) < (b as string) ? -1 : 1
}

const kindOf = (value: Value): number => (value === null ? 0 : typeof value === 'number' ? 1 : 2)

const byBytes = (a: Match, b: Match): number =>
  Buffer.compare(orderBytes(a.value), orderBytes(b.value)) || Buffer.compare(idBytes(a.id), idBytes(b.id))
