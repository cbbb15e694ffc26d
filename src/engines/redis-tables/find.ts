import type { Row } from '../../kernel/table.ts'
import { type Find, type Found, type Range, rangesOf, type StoredRow, wordGroupsOf } from '../table-store.ts'
import { assertIndexed, matcherOf, valuesOf } from './matching.ts'
import { encoded, textStart } from './terms.ts'
import {
  type Check,
  countStretches,
  Moved,
  moveBehind,
  type Place,
  rowsOfIds,
  type Stretch,
  type Walk,
  walkOn,
  walkOnce,
  walkRows,
} from './walk.ts'

/** A condition with more values is judged by the rows. */
const CHECK_VALUES_MAX = 16
/** A condition with at most so many entries is answered by reading all of its rows. */
const FEW = 200
/** Below so many entries what matches several conditions is counted before it is decided how it is read. */
const COUNTED_FIRST = 10_000
/** Below so many the ids of what matches are kept: what is few is then read by them, and its conditions looked up once. */
const LISTED_FIRST = 2_000
/** Reading and judging a row costs as much as looking at so many entries of an index. */
const ROW_COST = 4
/** Times that an answer of several calls is begun again because a commit came between them. */
const WHOLE_TRIES = 20

const ALL: Stretch = { index: '', from: '-', to: '+' }

/**
 * Answers a question in steps, each short for the server. A condition with few entries is answered by reading its rows;
 * otherwise the index of the order is walked, with conditions of equality looked up there and the others in the rows.
 */
export const findRows = async <R extends Row>(place: Place, question: Find): Promise<Found<R>> => {
  assertIndexed(place.table.declaration, question)
  for (let tries = 0; ; tries++) {
    try {
      return await answer<R>({ ...place, commits: tries < WHOLE_TRIES ? '' : undefined }, question)
    } catch (error) {
      if (!(error instanceof Moved)) throw error
    }
  }
}

const answer = async <R extends Row>(place: Place, question: Find): Promise<Found<R>> => {
  const driver = await mostSelective(place, question)
  const others = othersThan(driver, question)
  const walk = { stretches: driver.stretches, checks: others.filter(isLookedUp) }
  if (driver.count <= FEW) return sortedHere<R>(place, question, walkRows<R>(place, walk))
  const wanted = (question.offset ?? 0) + question.limit + 1
  // The order's index holds one wanted entry among so many.
  const isFew = (count: number): boolean => count <= FEW || count * ROW_COST < (wanted * driver.all) / count
  let counted: number | undefined
  if (driver.count <= COUNTED_FIRST && countsByIndex(question, driver)) {
    if (others.length > 0 && driver.count <= LISTED_FIRST) {
      const ids = await idsThatPass(place, walk)
      if (isFew(ids.size)) return sortedHere<R>(place, question, rowsOfIds<R>(place, [...ids]))
      counted = ids.size
    } else counted = await countAll(place, question, driver)
  }
  if (isFew(counted ?? driver.count)) return sortedHere<R>(place, question, walkRows<R>(place, walk))
  const rows = await walkInOrder<R>(place, question)
  const total = question.total ? (counted ?? (await countAll(place, question, driver))) : undefined
  return { ...rows, ...(total !== undefined && { total }) }
}

/** Rows that meet the looked-up conditions at least: filtered, sorted and cut here. */
const sortedHere = async <R extends Row>(
  place: Place,
  question: Find,
  rows: AsyncIterable<{ id: string; row: R }>,
): Promise<Found<R>> => {
  const found = new Map<string, R>()
  const isMatch = matcherOf(place.table.declaration, question)
  for await (const { id, row } of rows) if (isMatch(row)) found.set(id, row)
  const { sort, after, offset = 0, limit } = question
  const ordered = [...found].map(([id, row]) => ({ id, row, entry: entryOf(sort, id, row) }))
  ordered.sort((a, b) => a.entry.compare(b.entry))
  if (sort?.order === 'desc') ordered.reverse()
  const cursor = after === undefined ? undefined : Buffer.from(after, 'base64url')
  const isAfter = (entry: Buffer): boolean =>
    cursor === undefined || (sort?.order === 'desc' ? entry.compare(cursor) < 0 : entry.compare(cursor) > 0)
  const left = ordered.filter(({ entry }) => isAfter(entry)).slice(offset)
  const page = left.slice(0, limit)
  return {
    rows: page.map(({ id, row }) => ({ scope: place.scope, id, row })),
    next: left.length > limit ? (page.at(-1)?.entry.toString('base64url') ?? null) : null,
    ...(question.total && { total: ordered.length }),
  }
}

/** The entry of a row in the index that its order follows. */
const entryOf = (sort: Find['sort'], id: string, row: Row): Buffer => {
  if (sort === undefined) return Buffer.from(id)
  const value = row[sort.field]
  const sortable = typeof value === 'string' || typeof value === 'number' ? value : undefined
  return Buffer.concat([encoded(sortable), Buffer.from(id)])
}

const walkInOrder = async <R extends Row>(place: Place, question: Find): Promise<Omit<Found<R>, 'total'>> => {
  const { sort, after, limit } = question
  const ranges = rangesOf(question)
  const isDown = sort?.order === 'desc'
  const stretch = orderStretch(sort, ranges)
  if (after !== undefined) moveBehind(stretch, Buffer.from(after, 'base64url'), isDown)
  const checks = checksOf(question).filter(isLookedUp)
  const isDecided =
    wordGroupsOf(question).length === 0 &&
    ranges.every(({ field }) => field === sort?.field) &&
    checks.length === checksOf(question).length
  const isMatch = matcherOf(place.table.declaration, question)
  const walk = { stretches: [stretch], checks, isDown }
  let skip = question.offset ?? 0
  if (isDecided && skip > 0) {
    if (!(await skipped(place, { ...walk, wanted: 'count', most: skip }))) return { rows: [], next: null }
    skip = 0
  }
  const rows: StoredRow<R>[] = []
  let last: Buffer | undefined
  for await (const { id, row } of walkRows<R>(place, { ...walk, ...(isDecided && { most: limit + 1 }) })) {
    if (!isMatch(row)) continue
    if (skip-- > 0) continue
    if (rows.length === limit) return { rows, next: last?.toString('base64url') ?? null }
    rows.push({ scope: place.scope, id, row })
    last = entryOf(sort, id, row)
  }
  return { rows, next: null }
}

/** Moves the beginning of the walk's stretch behind so many entries that pass; false where there are no more. */
const skipped = async (place: Place, walk: Walk & { most: number }): Promise<boolean> => {
  const [stretch] = walk.stretches
  for (let left = walk.most; left > 0; ) {
    const { done, last, count } = await walkOnce(place, { ...walk, most: left })
    if (done > 0) return false
    moveBehind(stretch, last, walk.isDown)
    left -= count
  }
  return true
}

const orderStretch = (sort: Find['sort'], ranges: readonly Range[]): Stretch => {
  if (sort === undefined) return { ...ALL }
  const range = ranges.find(({ field }) => field === sort.field)
  if (range !== undefined) return rangeStretch(range)
  if (sort.within !== undefined) return rangeStretch({ field: sort.field, ...sort.within })
  return { index: `r:${sort.field}`, from: '-', to: '+' }
}

const rangeStretch = ({ field, from, to }: Range): Stretch => ({
  index: `r:${field}`,
  // Rows without the field stand first, under a zero byte.
  from: from === undefined ? Buffer.from('[\x01') : Buffer.concat([Buffer.from('['), encoded(from)]),
  to: to === undefined ? '+' : Buffer.concat([Buffer.from('('), encoded(to), Buffer.of(255, 255, 255)]),
})

const valueStretch = (index: string, value: Buffer): Stretch => ({
  index,
  from: Buffer.concat([Buffer.from('['), value]),
  to: Buffer.concat([Buffer.from('('), value, Buffer.of(255)]),
})

const checksOf = ({ where = {}, every = {} }: Find): Check[] => [
  ...Object.entries(where).map(([field, wanted]) => ({ index: `e:${field}`, values: valuesOf(wanted).map(encoded) })),
  ...Object.entries(every).flatMap(([field, wanted]) =>
    wanted.map((one) => ({ index: `e:${field}`, values: [encoded(one)] })),
  ),
]

const isLookedUp = ({ values }: Check): boolean => values.length <= CHECK_VALUES_MAX

interface Driver {
  stretches: Stretch[]
  count: number
  /** Of all rows. */
  all: number
  /** The check that it stands for, if it is one. */
  check?: Check
}

/** What must be read at least to answer: the condition with the fewest entries, or all rows. */
const mostSelective = async (place: Place, question: Find): Promise<Driver> => {
  const conditions: { stretches: Stretch[]; check?: Check }[] = [{ stretches: [{ ...ALL }] }]
  for (const check of checksOf(question))
    conditions.push({ stretches: check.values.map((value) => valueStretch(check.index, value)), check })
  for (const range of rangesOf(question)) conditions.push({ stretches: [rangeStretch(range)] })
  for (const group of wordGroupsOf(question))
    conditions.push({ stretches: group.map((word) => valueStretch('w', textStart(word))) })
  const counts = await countStretches(
    place,
    conditions.flatMap(({ stretches }) => stretches),
  )
  const all = counts[0]
  let least: Driver | undefined
  let next = 0
  for (const { stretches, check } of conditions) {
    const own = counts.slice(next, (next += stretches.length))
    const count = own.reduce((sum, one) => sum + one, 0)
    // Values that no row has need not be walked.
    if (least === undefined || count < least.count)
      least = { stretches: stretches.filter((_, i) => own[i] > 0), count, all, check }
  }
  return least!
}

/** The checks of a question but the one that the driver stands for. */
const othersThan = ({ check }: Driver, question: Find): Check[] =>
  checksOf(question).filter(({ index, values }) => index !== check?.index || !isSame(values, check.values))

const isSame = (values: readonly Buffer[], others: readonly Buffer[]): boolean =>
  values.length === others.length && values.every((value, i) => value.equals(others[i]))

/** Whether all conditions beside the driver are looked up in indexes, so that no row is read to count what matches. */
const countsByIndex = (question: Find, driver: Driver): boolean =>
  rangesOf(question).length === 0 &&
  wordGroupsOf(question).length === 0 &&
  othersThan(driver, question).every(isLookedUp)

/** How many rows meet all conditions; counted by the index alone where one condition is all there is. */
const countAll = async (place: Place, question: Find, driver: Driver): Promise<number> => {
  const words = wordGroupsOf(question).length
  const ranges = rangesOf(question)
  const checks = checksOf(question)
  const conditions = checks.length + ranges.length + words
  if (conditions === 0 || (conditions === 1 && (ranges.length === 1 || checks[0]?.values.length === 1)))
    return driver.count
  const others = othersThan(driver, question)
  const { stretches } = driver
  if (!countsByIndex(question, driver)) {
    const isMatch = matcherOf(place.table.declaration, question)
    const seen = new Set<string>()
    const walk = { stretches, checks: others.filter(isLookedUp) }
    for await (const { id, row } of walkRows(place, walk)) if (isMatch(row)) seen.add(id)
    return seen.size
  }
  if (stretches.length === 1) {
    let total = 0
    for await (const { count } of walkOn(place, { stretches, checks: others, wanted: 'count' })) total += count
    return total
  }
  return (await idsThatPass(place, { stretches, checks: others })).size
}

const idsThatPass = async (place: Place, walk: Omit<Walk, 'wanted'>): Promise<Set<string>> => {
  const seen = new Set<string>()
  for await (const { ids } of walkOn(place, { ...walk, wanted: 'ids' })) for (const id of ids) seen.add(id)
  return seen
}
