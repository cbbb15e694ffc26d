import type { StoredRow } from '../table-store.ts'
import type { Argument } from './clients.ts'
import { answeredWhenFree } from './busy.ts'
import { newToken } from './changes.ts'
import type { RedisConnection } from './connection.ts'
import { ENDED, type KnownTable, placeKeys, TableEnded, tableKeys } from './places.ts'
import { READ_ROWS, readRows } from './reads.ts'
import { unpackIds, unpackRow } from './terms.ts'

/** Work of one call, in entries and lookups in other indexes, and rows answered: a millisecond or two of the server. */
const WALK_LOOKS = 4_000
const WALK_ENTRIES = 1_000
/** Also the limit of rows whose entries in an index of order it answers. */
const WALK_ROWS = 200
const COUNT_STRETCHES = 500
const WALK_STRETCHES = 200
const SWEEP_ROWS = 20

/** A stretch of one index, in lexical bounds as Redis writes them. */
export interface Stretch {
  index: string
  from: Argument
  to: Argument
}

export interface Check {
  index: string
  values: readonly Buffer[]
}

/** Wanted data of passing rows; with the name of an ordered index, its entries. */
export type Wanted = 'count' | 'ids' | 'rows' | `r:${string}`

/** Stretches of a walk, one after the other, and conditions on its entries. */
export interface Walk {
  stretches: readonly Stretch[]
  checks: readonly Check[]
  isDown?: boolean
  wanted: Wanted
  /** Maximum of passing entries of one call. */
  most?: number
}

export interface Walked {
  /** Number of finished stretches. */
  done: number
  /** Last entry in the current one; empty at its beginning. */
  last: Buffer
  count: number
  ids: string[]
  /** Or entries; empty where there is none. */
  rows: Buffer[]
}

export interface TableAt {
  connection: RedisConnection
  table: KnownTable
  /** The place of the rows. */
  key: string
  scope: string
}

/** A place during one answer. */
export interface Visit extends TableAt {
  /** The bytes of each row read: where it is read again, another object has the others. */
  readonly packed: WeakMap<StoredRow, Buffer>
  /** Whether the answer is to be atomic: no change of the table may come between its calls. */
  readonly isWhole: boolean
  /** The last change seen by its calls. */
  change?: string
  /** The last change of everything touched, before the answer. */
  changes: string
  /** The walk expected to be the first one, and sent along with the counts; then the one that was. */
  first?: Arguments
  /** The answer to the expected one. */
  ahead?: Walked
  hasWalked?: true
}

/** A change came between the calls of an answer. */
export class Moved extends Error {}

const assertUnmoved = (visit: Visit, change: string): void => {
  if (change === ENDED) throw new TableEnded()
  visit.change ??= change
  if (visit.isWhole && visit.change !== change) throw new Moved()
}

export const moveBehind = (stretch: Stretch, last: Buffer, isDown = false): void => {
  const bound = Buffer.concat([Buffer.from('('), last])
  if (isDown) stretch.to = bound
  else stretch.from = bound
}

/** Number of entries of each; the first call of an answer. */
export const countStretches = async (visit: Visit, stretches: readonly Stretch[]): Promise<number[]> => {
  const counts: number[] = []
  for (let at = 0; at < stretches.length; at += COUNT_STRETCHES) {
    const walk = at === 0 ? visit.first : undefined
    const { some, walked, changes } = await call(visit, stretches.slice(at, at + COUNT_STRETCHES), walk)
    if (at === 0) visit.changes = changes
    if (walk !== undefined) visit.ahead = walked
    counts.push(...some)
  }
  return counts
}

const keysOf = ({ key, table }: TableAt): string[] => [...placeKeys(key), ...tableKeys(key, table)]

const sweep = (place: TableAt): Promise<unknown> =>
  place.connection.fcall('sweep', keysOf(place), [place.table.generation, String(SWEEP_ROWS), newToken()])

export async function* walkRows(visit: Visit, walk: Omit<Walk, 'wanted'>): AsyncGenerator<StoredRow> {
  // After the last row the walk continues from the last entry, which need not be a row that passed.
  for await (const { ids, rows } of walkOn(visit, { ...walk, wanted: 'rows' }))
    for (let i = 0; i < ids.length; i++) if (rows[i].length > 0) yield stored(visit, ids[i], rows[i])
}

export async function* rowsOfIds(visit: Visit, ids: readonly string[]): AsyncGenerator<StoredRow> {
  for (let at = 0; at < ids.length; at += READ_ROWS) {
    const part = ids.slice(at, at + READ_ROWS)
    const { rows, change } = await readRows(visit.connection, visit.table, visit.key, part)
    assertUnmoved(visit, change)
    for (const [i, bytes] of rows.entries()) if (bytes !== null) yield stored(visit, part[i], bytes)
  }
}

const stored = ({ packed, scope }: Visit, id: string, bytes: Buffer): StoredRow => {
  const row = { scope, id, row: unpackRow(bytes) }
  packed.set(row, bytes)
  return row
}

/** Goes through all stretches, call by call. */
export async function* walkOn(visit: Visit, walk: Walk): AsyncGenerator<Walked> {
  for (let at = 0; at < walk.stretches.length; ) {
    const stretches = walk.stretches.slice(at, at + WALK_STRETCHES)
    for (;;) {
      const walked = await walkOnce(visit, { ...walk, stretches })
      yield walked
      stretches.splice(0, walked.done)
      at += walked.done
      if (stretches.length === 0) break
      if (walked.last.length > 0) {
        stretches[0] = { ...stretches[0] }
        moveBehind(stretches[0], walked.last, walk.isDown)
      }
    }
  }
}

export const walkOnce = async (visit: Visit, walk: Walk): Promise<Walked> => {
  const args = argumentsOf(walk)
  if (visit.hasWalked) return (await call(visit, [], args)).walked
  const { first, ahead } = visit
  Object.assign(visit, { first: args, ahead: undefined, hasWalked: true })
  const isExpected = first !== undefined && ahead !== undefined && isSame(args, first)
  return isExpected ? ahead : (await call(visit, [], args)).walked
}

/** A walk as the library reads it. */
export interface Arguments {
  /** Is descending, most entries, most rows, wanted data. */
  head: readonly string[]
  bounds: readonly Argument[]
  checks: readonly Argument[]
}

const NO_WALK: Arguments = { head: ['0', '0', '0', 'count'], bounds: [], checks: [] }

const argumentsOf = ({
  stretches,
  checks,
  isDown = false,
  wanted,
  most = Number.MAX_SAFE_INTEGER,
}: Walk): Arguments => {
  const looks = checks.reduce((sum, { values }) => sum + values.length, 1)
  const entries = Math.min(WALK_ENTRIES, Math.floor(WALK_LOOKS / looks))
  const rows = Math.min(most, wanted === 'count' || wanted === 'ids' ? WALK_ENTRIES : WALK_ROWS)
  return {
    head: [isDown ? '1' : '0', String(entries), String(rows), wanted],
    bounds: boundsOf(stretches),
    checks: checks.flatMap(({ index, values }) => [index, String(values.length), ...values]),
  }
}

const boundsOf = (stretches: readonly Stretch[]): Argument[] =>
  stretches.flatMap(({ index, from, to }) => [index, from, to])

const isSame = (one: Arguments, other: Arguments): boolean => {
  const [left, right] = [one, other].map(({ head, bounds, checks }) => [...head, ...bounds, ...checks])
  return (
    left.length === right.length &&
    left.every((part, i) => part === right[i] || Buffer.from(part).equals(Buffer.from(right[i])))
  )
}

/** Counts stretches and walks, in one call. */
const call = async (
  visit: Visit,
  counted: readonly Stretch[],
  { head, bounds, checks }: Arguments = NO_WALK,
): Promise<{ some: number[]; walked: Walked; changes: string }> => {
  const { connection, table } = visit
  const keys = keysOf(visit)
  const args = [String(counted.length), ...head, String(bounds.length / 3), ...boundsOf(counted), ...bounds, ...checks]
  const answer = await answeredWhenFree(
    (how) => connection.fcall('walk', keys, [table.generation, how, ...args]),
    () => sweep(visit),
  )
  const [change, done, last, count, ids, rows, some, changes] = answer as [
    ...[change: Buffer, done: number, last: Buffer, count: number, ids: Buffer, rows: Buffer[]],
    ...[some: number[], changes: Buffer],
  ]
  assertUnmoved(visit, String(change))
  return { some, walked: { done, last, count, ids: unpackIds(ids), rows }, changes: String(changes) }
}
