import type { Row } from '../../kernel/table.ts'
import { type Find, type Found, type Range, rangesOf, type StoredRow, wordGroupsOf } from '../table-store.ts'
import { changesOf, dependencies } from './changes.ts'
import { assertIndexed, matcherOf } from './matching.ts'
import { WHOLE_TRIES } from './reads.ts'
import { ALL, countsByIndex, isLookedUp, type Plan, planOf, rangeStretch } from './plan.ts'
import { encoded } from './terms.ts'
import {
  type Arguments,
  Moved,
  moveBehind,
  type TableAt,
  rowsOfIds,
  type Stretch,
  type Visit,
  type Walk,
  walkOn,
  walkOnce,
  walkRows,
} from './walk.ts'

/** Most entries of a condition that is answered by reading all of its rows. */
const FEW = 200
/** Entries up to which matches of several conditions are counted before deciding how to read them. */
const COUNTED_FIRST = 10_000
/** Entries up to which the ids of matches are kept: few are then read by id, and their conditions looked up once. */
const LISTED_FIRST = 2_000
/** Cost of reading and judging a row, in looks at entries of an index. */
const ROW_COST = 4

/** Facts known of a question from its other pages, and the changes as of which they hold. */
export interface Known {
  total?: { total: number; changes: string }
  /** The page that ends where this one begins. */
  before?: { next: string | null; changes: string }
  /** The walk that this page needed first when it was last made. */
  first?: Arguments
}

/** A matching row, and its entry in the index of the order. */
export interface Match {
  id: string
  entry: Buffer
}

export interface Answer {
  found: Found
  /** The packed bytes of each of its rows. */
  packed: Pick<WeakMap<StoredRow, Buffer>, 'get'>
  /** The last change of everything touched, before the answer. */
  changes: string
  first?: Arguments
  /** All matches, in order, where they were found together. */
  matches?: readonly Match[]
}

/**
 * Answers a question in steps, each short for the server. A condition with few entries is answered by reading its rows;
 * otherwise the index of the order is walked, with conditions of equality looked up there and the others in the rows.
 */
export const findRows = async (place: TableAt, question: Find, known: Known): Promise<Answer> => {
  assertIndexed(place.table.declaration, question)
  for (let tries = 0; ; tries++) {
    const isWhole = tries < WHOLE_TRIES
    const visit: Visit = { ...place, packed: new WeakMap(), isWhole, changes: '', first: known.first }
    try {
      const { matches, ...found } = await answer(visit, question, known)
      return {
        found,
        packed: visit.packed,
        changes: visit.changes,
        matches,
        ...(visit.hasWalked && { first: visit.first }),
      }
    } catch (error) {
      if (!(error instanceof Moved)) throw error
    }
  }
}

type FoundHere = Found & Pick<Answer, 'matches'>

const answer = async (visit: Visit, asked: Find, known: Known): Promise<FoundHere> => {
  const plan = await planOf(visit, asked)
  const names = dependencies(asked)
  const now = changesOf(visit.changes, names)
  const holds = (what: { changes: string } | undefined): boolean =>
    what !== undefined && visit.changes !== '' && changesOf(what.changes, names) === now
  const total = holds(known.total) ? known.total?.total : undefined
  const after = holds(known.before) ? (known.before?.next ?? undefined) : undefined
  return answerBy(plan, visit, after === undefined ? asked : { ...asked, offset: 0, after }, total)
}

const answerBy = async (plan: Plan, visit: Visit, question: Find, total: number | undefined): Promise<FoundHere> => {
  const walk = { stretches: plan.stretches, checks: plan.others.filter(isLookedUp) }
  if (plan.count <= FEW) return sortedHere(visit, question, walkRows(visit, walk))
  const wanted = (question.offset ?? 0) + question.limit + 1
  // The order's index holds one wanted entry among `plan.all / count`.
  const isFew = (count: number): boolean => count <= FEW || count * ROW_COST < (wanted * plan.all) / count
  let counted = plan.isExact ? plan.count : total
  if (counted === undefined && plan.count <= COUNTED_FIRST && countsByIndex(question, plan)) {
    if (plan.count <= LISTED_FIRST) {
      const ids = await idsThatPass(visit, walk)
      if (ids.size <= FEW) return sortedHere(visit, question, rowsOfIds(visit, [...ids]))
      counted = ids.size
    } else counted = await countAll(visit, question, plan)
  }
  if (isFew(counted ?? plan.count))
    return countsByIndex(question, plan)
      ? sortedByIndex(visit, question, walk)
      : sortedHere(visit, question, walkRows(visit, walk))
  const rows = await walkInOrder(visit, question, plan)
  if (!question.total) return rows
  return { ...rows, total: counted ?? (await countAll(visit, question, plan)) }
}

/** Rows that meet at least the looked-up conditions: filtered, sorted and cut here. */
const sortedHere = async (place: Visit, question: Find, rows: AsyncIterable<StoredRow>): Promise<FoundHere> => {
  const found = new Map<string, StoredRow>()
  const isMatch = matcherOf(place.table.declaration, question)
  for await (const stored of rows) if (isMatch(stored.row)) found.set(stored.id, stored)
  const { sort } = question
  const matches = inOrder(
    [...found.values()].map(({ id, row }) => ({ id, entry: entryOf(sort, id, row) })),
    sort,
  )
  const { ids, ...page } = pageOf(matches, question)
  return { rows: ids.map((id) => found.get(id)!), ...page, matches }
}

/** Rows decided by the looked-up conditions: sorted by their entries in the index of the order; only a page is read. */
const sortedByIndex = async (visit: Visit, question: Find, walk: Omit<Walk, 'wanted'>): Promise<FoundHere> => {
  const { sort } = question
  const found = new Map<string, Buffer>()
  for await (const { ids, rows } of walkOn(visit, { ...walk, wanted: sort === undefined ? 'ids' : `r:${sort.field}` }))
    for (const [i, id] of ids.entries())
      found.set(id, sort === undefined || rows[i].length === 0 ? entryOf(sort, id, {}) : rows[i])
  const matches = inOrder(
    [...found].map(([id, entry]) => ({ id, entry })),
    sort,
  )
  const { ids, ...page } = pageOf(matches, question)
  const rows: StoredRow[] = []
  // Unless all were seen at once, some may have changed since.
  const isMatch = matcherOf(visit.table.declaration, question)
  for await (const stored of rowsOfIds(visit, ids)) if (isMatch(stored.row)) rows.push(stored)
  return { rows, ...page, matches }
}

const inOrder = (matches: Match[], sort: Find['sort']): Match[] => {
  matches.sort((a, b) => a.entry.compare(b.entry))
  return sort?.order === 'desc' ? matches.reverse() : matches
}

/** The ids of a page, of all matches in order. */
export const pageOf = (
  matches: readonly Match[],
  { sort, after, offset = 0, limit, total }: Find,
): { ids: string[] } & Omit<Found, 'rows'> => {
  const cursor = after === undefined ? undefined : Buffer.from(after, 'base64url')
  const isAfter = ({ entry }: Match): boolean =>
    cursor === undefined || (sort?.order === 'desc' ? entry.compare(cursor) < 0 : entry.compare(cursor) > 0)
  const first = matches.findIndex(isAfter)
  const left = first < 0 ? [] : matches.slice(first + offset, first + offset + limit + 1)
  const page = left.slice(0, limit)
  return {
    ids: page.map(({ id }) => id),
    next: left.length > limit ? (page.at(-1)?.entry.toString('base64url') ?? null) : null,
    ...(total && { total: matches.length }),
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
  const walked = ranges.find(({ field, goesRound }) => field === sort?.field && goesRound !== true)
  const stretch = orderStretch(sort, walked)
  if (after !== undefined) moveBehind(stretch, Buffer.from(after, 'base64url'), isDown)
  const checks = plan.checks.filter(isLookedUp)
  const isDecided =
    wordGroupsOf(question).length === 0 &&
    ranges.every((range) => range === walked) &&
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

/** Moves the beginning of the walk's stretch past `most` passing entries; false where there are no more. */
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

const orderStretch = (sort: Find['sort'], walked: Range | undefined): Stretch => {
  if (sort === undefined) return { ...ALL }
  const bounds = walked ?? sort.within
  return bounds === undefined ? { index: `r:${sort.field}`, from: '-', to: '+' } : rangeStretch(sort.field, bounds)
}

/** Number of rows that meet all conditions; counted by the index alone where there is only one condition. */
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
