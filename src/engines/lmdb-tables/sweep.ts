import type { RowWriter } from './apply.ts'
import { type Binary, bufferOf, spaceKey, type TableEnvironment, type TableRecord, time6 } from './layout.ts'
import { NOTHING } from './terms.ts'

/*
 * Frees the space of data already invisible to readers, in steps that a transaction can bear: each function does one
 * step inside the caller's transaction and answers whether more may be left.
 */
const STEP = 500
const GARBAGE_PREFIX = 'garbage:'

export const hasSweep = (env: TableEnvironment, now: number, mayClear: boolean): boolean =>
  dueKeys(env, 0, now, 1).length > 0 || dueKeys(env, 2, now, 1).length > 0 || (mayClear && garbageOf(env) !== undefined)

export const sweepExpired = (
  env: TableEnvironment,
  records: Iterable<TableRecord>,
  now: number,
  rows: RowWriter,
): boolean => {
  const byNumber = new Map([...records].map((record) => [record.number, record]))
  const due = dueKeys(env, 0, now, STEP)
  for (const key of due) {
    const space = Buffer.from(key.subarray(7, 15))
    const record = byNumber.get(space.readUInt32BE(0))
    if (record !== undefined) rows.expire(record, space, key.readUInt32BE(15), key.readUIntBE(1, 6))
    env.expiry.removeSync(key)
  }
  return due.length === STEP
}

export const sweepCounters = (env: TableEnvironment, now: number): boolean => {
  const due = dueKeys(env, 2, now, STEP)
  for (const key of due) {
    env.counters.removeSync(key.subarray(7))
    env.expiry.removeSync(key)
  }
  return due.length === STEP
}

/** Marks a table that is no longer named. */
export const markGarbage = (env: TableEnvironment, table: number): void => {
  env.meta.putSync(Buffer.from(`${GARBAGE_PREFIX}${table}`), NOTHING)
}

export const sweepGarbage = (env: TableEnvironment, rows: RowWriter): boolean => {
  const table = garbageOf(env)
  if (table === undefined) return false
  const [start, end] = [spaceKey(table, 0), spaceKey(table + 1, 0)]
  const ranges: [Binary, Buffer, Buffer][] = [env.rows, env.docs, env.postings, env.order, env.spaces, env.changes].map(
    (database) => [database, start, end],
  )
  ranges.push([env.expiry, Buffer.concat([Buffer.of(1), start]), Buffer.concat([Buffer.of(1), end])])
  for (const [database, from, to] of ranges) {
    const keys = [...database.getKeys({ start: from, end: to, limit: STEP })]
    if (database === env.rows) for (const key of keys) rows.forget(key)
    for (const key of keys) database.removeSync(key)
    if (keys.length > 0) return true
  }
  env.meta.removeSync(Buffer.from(`${GARBAGE_PREFIX}${table}`))
  return true
}

const dueKeys = (env: TableEnvironment, kind: number, now: number, limit: number): Buffer[] =>
  [...env.expiry.getKeys({ start: Buffer.of(kind), end: Buffer.concat([Buffer.of(kind), time6(now + 1)]), limit })].map(
    bufferOf,
  )

const garbageOf = (env: TableEnvironment): number | undefined => {
  for (const key of env.meta.getKeys({
    start: Buffer.from(GARBAGE_PREFIX),
    end: Buffer.from(`${GARBAGE_PREFIX}~`),
    limit: 1,
  })) {
    return Number(bufferOf(key).toString('utf8').slice(GARBAGE_PREFIX.length))
  }
  return undefined
}
