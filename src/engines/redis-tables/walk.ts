import type { StoredRow } from '../table-store.ts'
import type { Argument } from './clients.ts'
import { answeredWhenFree } from './busy.ts'
import { newToken } from './changes.ts'
import type { RedisConnection } from './connection.ts'
import { type KnownTable, placeKeys, tableKeys } from './places.ts'
import { READ_ROWS, readRows } from './reads.ts'
import { unpackIds } from './terms.ts'

/** What one call looks at, in entries and looks into other indexes, and rows that it answers: a millisecond or two of the server. */
const WALK_LOOKS = 4_000
const WALK_ENTRIES = 1_000
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

export type Wanted = 'count' | 'ids' | 'rows'

/** What a walk goes through, one stretch after the other, and what must be so of its entries. */
export interface Walk {
  stretches: readonly Stretch[]
  checks: readonly Check[]
  isDown?: boolean
  wanted: Wanted
  /** Entries that pass, of one call. */
  most?: number
}

export interface Walked {
  /** Stretches that it came to the end of. */
  done: number
  /** Last entry of the one it stands in; empty at its beginning. */
  last: Buffer
  count: number
  ids: string[]
  rows: Buffer[]
}

export interface Place {
  connection: RedisConnection
  table: KnownTable
  /** The place that the rows live in. */
  key: string
  scope: string
  /** Makes a row of its bytes. */
  stored(id: string, bytes: Buffer): StoredRow
}

/** A place while one answer is made of it. */
export interface Visit extends Place {
  /** Commits of the place that the answer has seen, as its first call said: none may come between its calls. Undefined where some may. */
  commits?: string
  /** What had changed in the table before its first call. */
  changes: string
}

/** A commit came between the calls of an answer. */
export class Moved extends Error {}

const assertUnmoved = (visit: Visit, commits: unknown): void => {
  if (visit.commits === '') visit.commits = String(commits)
  if (visit.commits !== undefined && visit.commits !== String(commits)) throw new Moved()
}

export const moveBehind = (stretch: Stretch, last: Buffer, isDown = false): void => {
  const bound = Buffer.concat([Buffer.from('('), last])
  if (isDown) stretch.to = bound
  else stretch.from = bound
}

/** How many entries each has; the first call of an answer. */
export const countStretches = async (visit: Visit, stretches: readonly Stretch[]): Promise<number[]> => {
  const { connection, table } = visit
  const counts: number[] = []
  const keys = keysOf(visit)
  for (let at = 0; at < stretches.length; at += COUNT_STRETCHES) {
    const args = stretches.slice(at, at + COUNT_STRETCHES).flatMap(({ index, from, to }) => [index, from, to])
    const [some, commits, changes] = await answeredWhenFree(
      (how) => connection.fcall('count', keys, [table.generation, how, ...args]),
      () => sweep(visit),
    )
    if (at === 0) visit.changes = String(changes)
    assertUnmoved(visit, commits)
    counts.push(...(some as number[]))
  }
  return counts
}

const keysOf = ({ key, table }: Place): string[] => [...placeKeys(key), ...tableKeys(key, table)]

const sweep = (place: Place): Promise<unknown> =>
  place.connection.fcall('sweep', keysOf(place), [place.table.generation, String(SWEEP_ROWS), newToken()])

export async function* walkRows(visit: Visit, walk: Omit<Walk, 'wanted'>): AsyncGenerator<StoredRow> {
  // Behind the last row the walk goes on from the last entry, which need not be a row that passed.
  for await (const { ids, rows } of walkOn(visit, { ...walk, wanted: 'rows' }))
    for (let i = 0; i < ids.length; i++) if (rows[i].length > 0) yield visit.stored(ids[i], rows[i])
}

/** The rows of these ids that are there. */
export async function* rowsOfIds(visit: Visit, ids: readonly string[]): AsyncGenerator<StoredRow> {
  for (let at = 0; at < ids.length; at += READ_ROWS) {
    const part = ids.slice(at, at + READ_ROWS)
    const { rows, commits } = await readRows(visit.connection, visit.table, visit.key, part)
    assertUnmoved(visit, commits)
    for (const [i, bytes] of rows.entries()) if (bytes !== null) yield visit.stored(part[i], bytes)
  }
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
  const { connection, table } = visit
  const { stretches, checks, isDown = false, wanted } = walk
  const looks = checks.reduce((sum, { values }) => sum + values.length, 1)
  const entries = Math.min(WALK_ENTRIES, Math.floor(WALK_LOOKS / looks))
  const most = Math.min(walk.most ?? Number.MAX_SAFE_INTEGER, wanted === 'rows' ? WALK_ROWS : WALK_ENTRIES)
  const bounds = stretches.flatMap(({ index, from, to }) => [index, from, to])
  const lists = checks.flatMap((check) => [check.index, String(check.values.length), ...check.values])
  const args = [
    isDown ? '1' : '0',
    String(entries),
    String(most),
    wanted,
    String(stretches.length),
    ...bounds,
    ...lists,
  ]
  const keys = keysOf(visit)
  const [done, last, count, ids, rows, commits] = (await answeredWhenFree(
    (how) => connection.fcall('walk', keys, [table.generation, how, ...args]),
    () => sweep(visit),
  )) as [number, Buffer, number, Buffer, Buffer[], Buffer]
  assertUnmoved(visit, commits)
  return { done, last, count, ids: unpackIds(ids), rows }
}
