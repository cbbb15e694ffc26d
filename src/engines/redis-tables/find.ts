import type { Row } from '../../kernel/table.ts'
import { type Find, type Found, type Range, rangesOf, type StoredRow, wordGroupsOf } from '../table-store.ts'
import { changesOf, dependencies } from './changes.ts'
import { assertIndexed, matcherOf, valuesOf } from './matching.ts'
import { encoded, textStart } from './terms.ts'
import {
  type Arguments,
  type Check,
  countStretches,
  Moved,
  moveBehind,
  type Place,
  rowsOfIds,
  type Stretch,
  type Visit,
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

/** What is known of a question from its other pages, and the changes for which that was so. */
export interface Known {
  total?: { total: number; changes: string }
  /** The page that ends where this one begins. */
  before?: { next: string | null; changes: string }
  /** The walk that this page needed first when it was made before. */
  first?: Arguments
}

export interface Answer {
  found: Found
  /** Which change had touched what last, before the answer. */
  changes: string
  first?: Arguments
}

/**
 * Answers a question in steps, each short for the server. A condition with few entries is answered by reading its rows;
 * otherwise the index of the order is walked, with conditions of equality looked up there and the others in the rows.
 */
export const findRows = async (place: Place, question: Find, known: Known): Promise<Answer> => {
  assertIndexed(place.table.declaration, question)
  for (let tries = 0; ; tries++) {
    const visit: Visit = { ...place, isWhole: tries < WHOLE_TRIES, changes: '', first: known.first }
    try {
      const found = await answer(visit, question, known)
      return { found, changes: visit.changes, ...(visit.hasWalked && { first: visit.first }) }
    } catch (error) {
      if (!(error instanceof Moved)) throw error
    }
  }
}

const answer = async (visit: Visit, asked: Find, known: Known): Promise<Found> => {
  const plan = await planOf(visit, asked)
  const names = dependencies(asked)
  const now = changesOf(visit.changes, names)
  const holds = (what: { changes: string } | undefined): boolean =>
    what !== undefined && visit.changes !== '' && changesOf(what.changes, names) === now
  const total = holds(known.total) ? known.total?.total : undefined
  const { before } = known
  if (before === undefined || !holds(before)) return answerBy(plan, visit, asked, total)
  if (before.next !== null) return answerBy(plan, visit, { ...asked, offset: 0, after: before.next }, total)
  return answerBy(plan, visit, asked, total)
}

const answerBy = async (plan: Plan, visit: Visit, question: Find, total: number | undefined): Promise<Found> => {
  const walk = { stretches: plan.stretches, checks: plan.others.filter(isLookedUp) }
  if (plan.count <= FEW) return sortedHere(visit, question, walkRows(visit, walk))
  const wanted = (question.offset ?? 0) + question.limit + 1
  // The order's index holds one wanted entry among so many.
  const isFew = (count: number): boolean => count <= FEW || count * ROW_COST < (wanted * plan.all) / count
  let counted = plan.isExact ? plan.count : total
  if (counted === undefined && plan.count <= COUNTED_FIRST && countsByIndex(question, plan)) {
    if (plan.count <= LISTED_FIRST) {
      const ids = await idsThatPass(visit, walk)
      if (isFew(ids.size)) return sortedHere(visit, question, rowsOfIds(visit, [...ids]))
      counted = ids.size
    } else counted = await countAll(visit, question, plan)
  }
  if (isFew(counted ?? plan.count)) return sortedHere(visit, question, walkRows(visit, walk))
  const rows = await walkInOrder(visit, question, plan)
  if (!question.total) return rows
  return { ...rows, total: counted ?? (await countAll(visit, question, plan)) }
}

/** Rows that meet the looked-up conditions at least: filtered, sorted and cut here. */
const sortedHere = async (place: Visit, question: Find, rows: AsyncIterable<StoredRow>): Promise<Found> => {
  const found = new Map<string, StoredRow>()
  const isMatch = matcherOf(place.table.declaration, question)
  for await (const stored of rows) if (isMatch(stored.row)) found.set(stored.id, stored)
  const { sort, after, offset = 0, limit } = question
  const ordered = [...found.values()].map((stored) => ({ stored, entry: entryOf(sort, stored.id, stored.row) }))
  ordered.sort((a, b) => a.entry.compare(b.entry))
  if (sort?.order === 'desc') ordered.reverse()
  const cursor = after === undefined ? undefined : Buffer.from(after, 'base64url')
  const isAfter = (entry: Buffer): boolean =>
    cursor === undefined || (sort?.order === 'desc' ? entry.compare(cursor) < 0 : entry.compare(cursor) > 0)
  const left = ordered.filter(({ entry }) => isAfter(entry)).slice(offset)
  const page = left.slice(0, limit)
  return {
    rows: page.map(({ stored }) => stored),
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

const walkInOrder = async (place: Visit, question: Find, plan: Plan): Promise<Omit<Found, 'total'>> => {
  const { sort, after, limit } = question
  const ranges = rangesOf(question)
  const isDown = sort?.order === 'desc'
  const stretch = orderStretch(sort, ranges)
  if (after !== undefined) moveBehind(stretch, Buffer.from(after, 'base64url'), isDown)
  const checks = plan.checks.filter(isLookedUp)
  const isDecided =
    wordGroupsOf(question).length === 0 &&
    ranges.every(({ field }) => field === sort?.field) &&
    checks.length === plan.checks.length
  const isMatch = matcherOf(place.table.declaration, question)
  const walk = { stretches: [stretch], checks, isDown }
  let skip = question.offset ?? 0
  if (isDecided && skip > 0) {
    if (!(await skipped(place, { ...walk, wanted: 'count', most: skip }))) return { rows: [], next: null }
    skip = 0
  }
  const rows: StoredRow[] = []
  let last: Buffer | undefined
  for await (const stored of walkRows(place, { ...walk, ...(isDecided && { most: limit + 1 }) })) {
    if (!isMatch(stored.row)) continue
    if (skip-- > 0) continue
    if (rows.length === limit) return { rows, next: last?.toString('base64url') ?? null }
    rows.push(stored)
    last = entryOf(sort, stored.id, stored.row)
  }
  return { rows, next: null }
}

/** Moves the beginning of the walk's stretch behind so many entries that pass; false where there are no more. */
const skipped = async (place: Visit, walk: Walk & { most: number }): Promise<boolean> => {
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

/** How a question is answered. */
interface Plan {
  /** What must be read at least: of the condition with the fewest entries, or all rows. */
  stretches: Stretch[]
  count: number
  /** Of all rows. */
  all: number
  /** Whether each of these entries is a row that matches, and another one. */
  isExact: boolean
  /** The checks that not every row meets, the most selective first. */
  checks: Check[]
  /** Those but the one that is read. */
  others: Check[]
}

interface Condition {
  stretches: Stretch[]
  check?: Check
  /** Whether a row has one entry at most. */
  isSingle: boolean
}

const planOf = async (place: Visit, question: Find): Promise<Plan> => {
  const conditions: Condition[] = [{ stretches: [{ ...ALL }], isSingle: true }]
  for (const check of checksOf(question)) {
    const stretches = check.values.map((value) => valueStretch(check.index, value))
    conditions.push({ stretches, check, isSingle: stretches.length === 1 })
  }
  for (const range of rangesOf(question)) conditions.push({ stretches: [rangeStretch(range)], isSingle: true })
  for (const group of wordGroupsOf(question)) {
    const stretches = group.map((word) => valueStretch('w', textStart(word)))
    conditions.push({ stretches, isSingle: false })
  }
  const counts = await countStretches(
    place,
    conditions.flatMap(({ stretches }) => stretches),
  )
  const all = counts[0]
  let next = 0
  const counted = conditions
    .map((condition) => {
      const own = counts.slice(next, (next += condition.stretches.length))
      // Values that no row has need not be walked.
      const stretches = condition.stretches.filter((_, i) => own[i] > 0)
      return { ...condition, stretches, count: own.reduce((sum, one) => sum + one, 0) }
    })
    // What every row meets is no condition.
    .filter(({ count, isSingle }, i) => i === 0 || count < all || !isSingle)
  const least = counted.reduce((least, one) => (one.count < least.count ? one : least))
  const others = counted.filter((one) => one !== least && one !== counted[0])
  const checks = counted.flatMap(({ check, count }) => (check === undefined ? [] : [{ check, count }]))
  checks.sort((a, b) => a.count - b.count)
  const ordered = checks.map(({ check }) => check)
  return {
    stretches: least.stretches,
    count: least.count,
    all,
    isExact: least.isSingle && others.length === 0,
    checks: ordered,
    others: ordered.filter((check) => check !== least.check),
  }
}

/** Whether all conditions beside what is read are looked up in indexes, so that no row is read to count what matches. */
const countsByIndex = (question: Find, plan: Plan): boolean =>
  rangesOf(question).length === 0 && wordGroupsOf(question).length === 0 && plan.others.every(isLookedUp)

/** How many rows meet all conditions; counted by the index alone where one condition is all there is. */
const countAll = async (place: Visit, question: Find, plan: Plan): Promise<number> => {
  if (plan.isExact) return plan.count
  const { stretches, others } = plan
  if (!countsByIndex(question, plan)) {
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

const idsThatPass = async (place: Visit, walk: Omit<Walk, 'wanted'>): Promise<Set<string>> => {
  const seen = new Set<string>()
  for await (const { ids } of walkOn(place, { ...walk, wanted: 'ids' })) for (const id of ids) seen.add(id)
  return seen
}
