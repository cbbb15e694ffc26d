import type { Range } from '../table-store.ts'
import { idBytes, orderBytes } from './layout.ts'

/*
 * The order of the indexes, in memory. Texts that are short and have no character from the surrogates on are compared
 * by JavaScript as their bytes are; all others by the bytes that the indexes hold.
 */
const PLAIN_LENGTH_MAX = 100
const NOT_PLAIN = /[\ud800-\uffff]/

type Value = string | number | null

/** A row that matches, and its value of the field that the order follows. */
export interface Match {
  no: number
  id: string
  value: Value
}

const isPlain = (value: Value): boolean =>
  typeof value === 'string' ? value.length <= PLAIN_LENGTH_MAX && !NOT_PLAIN.test(value) : !Number.isNaN(value)

/** Tells whether a value of the bounded field lies within the bounds; what is missing does not. */
export const insideOf = ({ from, to }: Omit<Range, 'field'>): ((value: Value) => boolean) => {
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

/** By value, then by id: what is missing first, numbers, texts. */
export const inOrder = (matches: readonly Match[], isDescending: boolean): Match[] => {
  const isFast = matches.every(isPlainMatch)
  const compare = isFast ? byValue : byBytes
  return matches.toSorted(isDescending ? (a, b) => compare(b, a) : compare)
}

/** The same with some more. */
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

const byValue = (a: Match, b: Match): number => {
  if (a.value !== b.value) {
    const kinds = kindOf(a.value) - kindOf(b.value)
    if (kinds !== 0) return kinds
    return (a.value as string) < (b.value as string) ? -1 : 1
  }
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0
}

const kindOf = (value: Value): number => (value === null ? 0 : typeof value === 'number' ? 1 : 2)

const byBytes = (a: Match, b: Match): number =>
  Buffer.compare(orderBytes(a.value), orderBytes(b.value)) || Buffer.compare(idBytes(a.id), idBytes(b.id))
