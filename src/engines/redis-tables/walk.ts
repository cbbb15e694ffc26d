import { setTimeout as pause } from 'node:timers/promises'
import type { Row } from '../../kernel/table.ts'
import type { Argument } from './clients.ts'
import { BUSY_MS, howOf } from './busy.ts'
import type { RedisConnection } from './connection.ts'
import { type KnownTable, placeKeys, tableKeys } from './places.ts'
import { READ_ROWS, readRows } from './reads.ts'
import { unpackRow } from './terms.ts'

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
  /** Commits of the place that the answer has seen, as its first call said; none may come between its calls. */
  commits?: string
}

/** A commit came between the calls of an answer. */
export class Moved extends Error {}

const assertUnmoved = (place: Place, commits: string): void => {
  if (place.commits === '') place.commits = commits
  if (place.commits !== undefined && place.commits !== commits) throw new Moved()
}

export const moveBehind = (stretch: Stretch, last: Buffer, isDown = false): void => {
  const bound = Buffer.concat([Buffer.from('('), last])
  if (isDown) stretch.to = bound
  else stretch.from = bound
}

export const countStretches = async (
  { connection, table, key }: Place,
  stretches: readonly Stretch[],
): Promise<number[]> => {
  const counts: number[] = []
  for (let at = 0; at < stretches.length; at += COUNT_STRETCHES) {
    const args = stretches.slice(at, at + COUNT_STRETCHES).flatMap(({ index, from, to }) => [index, from, to])
    const keys = [key, ...tableKeys(key, table)]
    counts.push(...((await connection.fcall('count', keys, [table.generation, ...args])) as number[]))
  }
  return counts
}

export async function* walkRows<R extends Row>(
  place: Place,
  walk: Omit<Walk, 'wanted'>,
): AsyncGenerator<{ id: string; row: R }> {
  // Behind the last row the walk goes on from the last entry, which need not be a row that passed.
  for await (const { ids, rows } of walkOn(place, { ...walk, wanted: 'rows' }))
    for (let i = 0; i < ids.length; i++) if (rows[i].length > 0) yield { id: ids[i], row: unpackRow<R>(rows[i]) }
}

/** The rows of these ids that are there. */
export async function* rowsOfIds<R extends Row>(
  place: Place,
  ids: readonly string[],
): AsyncGenerator<{ id: string; row: R }> {
  for (let at = 0; at < ids.length; at += READ_ROWS) {
    const part = ids.slice(at, at + READ_ROWS)
    const { rows, commits } = await readRows(place.connection, place.table, place.key, part)
    assertUnmoved(place, commits)
    for (const [i, bytes] of rows.entries()) if (bytes !== null) yield { id: part[i], row: unpackRow<R>(bytes) }
  }
}

/** Goes through all stretches, call by call. */
export async function* walkOn(place: Place, walk: Walk): AsyncGenerator<Walked> {
  for (let at = 0; at < walk.stretches.length; ) {
    const stretches = walk.stretches.slice(at, at + WALK_STRETCHES)
    for (;;) {
      const walked = await walkOnce(place, { ...walk, stretches })
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

export const walkOnce = async (place: Place, walk: Walk): Promise<Walked> => {
  const { connection, table, key } = place
  const { stretches, checks, isDown = false, wanted } = walk
  const looks = checks.reduce((sum, { values }) => sum + values.length, 1)
  const entries = Math.min(WALK_ENTRIES, Math.floor(WALK_LOOKS / looks))
  const most = Math.min(walk.most ?? Number.MAX_SAFE_INTEGER, wanted === 'rows' ? WALK_ROWS : WALK_ENTRIES)
  const bounds = stretches.flatMap(({ index, from, to }) => [index, from, to])
  const lists = checks.flatMap((check) => [check.index, String(check.values.length), ...check.values])
  const keys = [...placeKeys(key), ...tableKeys(key, table)]
  for (let tries = 0; ; tries++) {
    const head = [table.generation, howOf(tries), isDown ? '1' : '0', String(entries), String(most)]
    const args = [...head, wanted, String(stretches.length), ...bounds, ...lists]
    const answered = (await connection.fcall('walk', keys, args)) as unknown[]
    const status = String(answered[0])
    if (status === 'ended') await connection.fcall('sweep', keys, [table.generation, String(SWEEP_ROWS)])
    else if (status === 'busy') await pause(BUSY_MS)
    else {
      const [, done, last, count, ids, rows, commits] = answered as [
        0,
        number,
        Buffer,
        number,
        Buffer[],
        Buffer[],
        Buffer,
      ]
      assertUnmoved(place, String(commits))
      return { done, last, count, ids: ids.map(String), rows }
    }
  }
}
