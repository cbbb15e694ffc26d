import { setTimeout as pause } from 'node:timers/promises'
import type { Row } from '../../kernel/table.ts'
import { wordsOf } from '../../kernel/words.ts'
import { type Find, type Found, type Range, rangesOf, type StoredRow } from '../table-store.ts'
import type { Argument } from './clients.ts'
import type { RedisConnection } from './connection.ts'
import { assertIndexed, matches, valuesOf } from './matching.ts'
import { type KnownTable, placeKeys, tableKeys } from './places.ts'
import { encoded, textStart, unpackRow } from './terms.ts'

/** Entries that one call looks at, and rows that it answers: some milliseconds of the server at most. */
const WALK_ENTRIES = 1_000
/** Rows that one call answers where most of them may not be wanted. */
const WALK_ROWS = 200
/** A condition with at most so many entries is answered by reading all of its rows. */
const FEW = 400
const SWEEP_ROWS = 50
const BUSY_MS = 2
const BUSY_TRIES = 500
/** Times that an answer of several calls is begun again because a commit came between them. */
const WHOLE_TRIES = 20

/** A stretch of one index, in lexical bounds as Redis writes them. */
interface Stretch {
  index: string
  from: Argument
  to: Argument
}

interface Check {
  index: string
  values: readonly Buffer[]
}

interface Walked {
  isAtEnd: boolean
  last: Buffer
  ids: string[]
  rows: Buffer[]
}

export interface Place {
  connection: RedisConnection
  table: KnownTable
  /** The place that the rows live in. */
  key: string
  scope: string
  /** Commits of the place that the answer has seen, as its first call said; none may come between its calls. */
  commits?: string
}

/** A commit came between the calls of an answer. */
class Moved extends Error {}

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
  if (driver.count <= FEW) return answerFew<R>(place, question, driver.stretches)
  const rows = await walkInOrder<R>(place, question)
  const total = question.total ? await countAll(place, question, driver) : undefined
  return { ...rows, ...(total !== undefined && { total }) }
}

/** The rows of every stretch, filtered, sorted and cut here. */
const answerFew = async <R extends Row>(place: Place, question: Find, stretches: Stretch[]): Promise<Found<R>> => {
  const found = new Map<string, R>()
  for (const stretch of stretches) {
    for await (const { id, row } of walkStretch<R>(place, stretch, [], false, WALK_ENTRIES))
      if (matches(place.table.declaration, row, question)) found.set(id, row)
  }
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
  if (after !== undefined) {
    const bound = Buffer.concat([Buffer.from('('), Buffer.from(after, 'base64url')])
    if (isDown) stretch.to = bound
    else stretch.from = bound
  }
  const rows: StoredRow<R>[] = []
  let skip = question.offset ?? 0
  let last: Buffer | undefined
  const isDecidedThere = question.text === undefined && ranges.every(({ field }) => field === sort?.field)
  const rowsMax = isDecidedThere ? Math.min(WALK_ENTRIES, skip + limit + 1) : WALK_ROWS
  for await (const { id, row } of walkStretch<R>(place, stretch, checksOf(question), isDown, rowsMax)) {
    if (!matches(place.table.declaration, row, question)) continue
    if (skip-- > 0) continue
    if (rows.length === limit) return { rows, next: last?.toString('base64url') ?? null }
    rows.push({ scope: place.scope, id, row })
    last = entryOf(sort, id, row)
  }
  return { rows, next: null }
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

interface Driver {
  stretches: Stretch[]
  count: number
}

/** What must be read at least to answer: the condition with the fewest entries, or all rows. */
const mostSelective = async (place: Place, question: Find): Promise<Driver> => {
  const conditions: Stretch[][] = [[ALL]]
  for (const { index, values } of checksOf(question)) conditions.push(values.map((value) => valueStretch(index, value)))
  for (const range of rangesOf(question)) conditions.push([rangeStretch(range)])
  for (const word of question.text === undefined ? [] : wordsOf(question.text))
    conditions.push([valueStretch('w', textStart(word))])
  const counts = await countStretches(place, conditions.flat())
  let at = 0
  let least: Driver | undefined
  for (const stretches of conditions) {
    const count = stretches.reduce((sum) => sum + counts[at++], 0)
    if (least === undefined || count < least.count) least = { stretches, count }
  }
  return least!
}

const countStretches = async ({ connection, table, key }: Place, stretches: readonly Stretch[]): Promise<number[]> => {
  const args = stretches.flatMap(({ index, from, to }) => [index, from, to])
  return (await connection.fcall('count', [key, ...tableKeys(key, table)], [table.generation, ...args])) as number[]
}

/** How many rows meet all conditions; counted by the index alone where one condition is all there is. */
const countAll = async (place: Place, question: Find, driver: Driver): Promise<number> => {
  const { text } = question
  const ranges = rangesOf(question)
  const checks = checksOf(question)
  const conditions = checks.length + ranges.length + Number(text !== undefined)
  if (conditions === 0 || (conditions === 1 && (ranges.length === 1 || checks[0]?.values.length === 1)))
    return driver.count
  const needsRows = ranges.length > 0 || text !== undefined
  const seen = new Set<string>()
  for (const stretch of driver.stretches) {
    if (!needsRows) for await (const id of walkIds(place, stretch, checks)) seen.add(id)
    else
      for await (const { id, row } of walkStretch(place, stretch, checks, false, WALK_ENTRIES))
        if (matches(place.table.declaration, row, question)) seen.add(id)
  }
  return seen.size
}

async function* walkIds(place: Place, stretch: Stretch, checks: Check[]): AsyncGenerator<string> {
  const at = { ...stretch }
  for (;;) {
    const { ids, last, isAtEnd } = await walkOnce(place, at, checks, false, WALK_ENTRIES, false)
    yield* ids
    if (isAtEnd) return
    at.from = Buffer.concat([Buffer.from('('), last])
  }
}

async function* walkStretch<R extends Row>(
  place: Place,
  stretch: Stretch,
  checks: Check[],
  isDown: boolean,
  rowsMax: number,
): AsyncGenerator<{ id: string; row: R }> {
  const at = { ...stretch }
  for (;;) {
    const { ids, rows, last, isAtEnd } = await walkOnce(place, at, checks, isDown, rowsMax, true)
    // Behind the last row the walk goes on from the last entry, which need not be a row that passed.
    for (let i = 0; i < ids.length; i++) if (rows[i].length > 0) yield { id: ids[i], row: unpackRow<R>(rows[i]) }
    if (isAtEnd) return
    const bound = Buffer.concat([Buffer.from('('), last])
    if (isDown) at.to = bound
    else at.from = bound
  }
}

const walkOnce = async (
  place: Place,
  { index, from, to }: Stretch,
  checks: readonly Check[],
  isDown: boolean,
  rowsMax: number,
  withRows: boolean,
): Promise<Walked> => {
  const { connection, table, key } = place
  const values = checks.reduce((sum, check) => sum + check.values.length, 1)
  const entries = Math.max(20, Math.floor(WALK_ENTRIES / values))
  const lists = checks.flatMap((check) => [check.index, String(check.values.length), ...check.values])
  const keys = [...placeKeys(key), ...tableKeys(key, table)]
  for (let tries = 0; ; tries++) {
    const isForced = tries >= BUSY_TRIES
    const args = [table.generation, isForced ? '1' : '0', index, from, to, isDown ? '1' : '0']
    const limits = [String(entries), String(rowsMax), withRows ? '1' : '0']
    const answer = (await connection.fcall('walk', keys, [...args, ...limits, ...lists])) as unknown[]
    const status = String(answer[0])
    if (status === 'ended') await connection.fcall('sweep', keys, [table.generation, String(SWEEP_ROWS)])
    else if (status === 'busy') await pause(BUSY_MS)
    else {
      const [, isAtEnd, last, ids, rows, commits] = answer as [0, number, Buffer, Buffer[], Buffer[], Buffer]
      if (place.commits === '') place.commits = String(commits)
      if (place.commits !== undefined && place.commits !== String(commits)) throw new Moved()
      return { isAtEnd: isAtEnd === 1, last, ids: ids.map(String), rows }
    }
  }
}
