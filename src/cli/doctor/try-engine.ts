import { SCHEMA, schemaOf } from '../../engines/clickhouse-sql/history-schema.ts'
import { encodeNativeBlock } from '../../engines/clickhouse-sql/native-block.ts'
import type { EventLog } from '../../engines/event-log.ts'
import { type Examination, TRIAL_STREAM } from '../../engines/examination.ts'
import type { FileStore } from '../../engines/file-store.ts'
import type { HistoryStore } from '../../engines/history-store.ts'
import type { TableStore } from '../../engines/table-store.ts'
import type { Clock } from '../../kernel/clock.ts'
import { encodeJson } from '../../kernel/event.ts'
import type { TableDeclaration } from '../../kernel/table.ts'
import { readLogOrigin } from '../../kit/consumers/log-origin.ts'

/** Results of asking, writing to and reading an engine. */
export interface Tried extends Examination {
  latencyMs: number
  /** Whether a service was ever started on a log. */
  hasBegun?: boolean
}

export interface TryServices {
  clock: Clock
  newId(): string
}

const DOCTOR: TableDeclaration = { name: 'doctor', version: 1, lives: 'row' }
const ROW_MS = 60_000
const PINGS = 3

/** Appends to a separate stream, reads it back and erases it. */
export const tryLog = async (log: EventLog, { clock, newId }: TryServices): Promise<Tried> => {
  const latencyMs = await latencyOf(log, clock)
  const id = newId()
  const event = { id, type: 'written', data: encodeJson({}), isJson: true, metadata: {} }
  const { revision } = await log.append(TRIAL_STREAM, [event], 'any')
  const [read] = await log.read(TRIAL_STREAM, revision, 1)
  await log.erase(TRIAL_STREAM)
  if (read?.id !== id) throw new Error('an event that was written did not come back')
  const examination = await log.examine?.()
  const hasBegun = (await readLogOrigin(log)) !== undefined
  return { settings: [], ...examination, ...(examination && { now: read.loggedAt }), latencyMs, hasBegun }
}

/** Stores a row in a separate table, reads it back and deletes it. */
export const tryTables = async (tables: TableStore, { clock, newId }: TryServices): Promise<Tried> => {
  const latencyMs = await latencyOf(tables, clock)
  const id = newId()
  await tables.declare(DOCTOR)
  const place = { table: DOCTOR.name, scope: '-', id }
  await tables.putIfAbsent({ ...place, row: { id }, expiresAt: clock.now() + ROW_MS })
  const row = await tables.get(DOCTOR.name, '-', id)
  await tables.commit([{ ...place, row: null }])
  if (row?.id !== id) throw new Error('a row that was stored did not come back')
  return { settings: [], ...(await tables.examine?.()), latencyMs }
}

/** Creates, fills, reads and drops a separate table; compares the schema with the one this version knows. */
export const tryHistory = async (history: HistoryStore, { clock, newId }: TryServices): Promise<Tried> => {
  const latencyMs = await latencyOf(history, clock)
  const table = `waymark_doctor_${newId().replaceAll('-', '')}`
  await history.command(`CREATE TABLE ${table} (n UInt64) ENGINE = MergeTree ORDER BY n`)
  try {
    const block = encodeNativeBlock([{ name: 'n', type: 'UInt64', values: BigUint64Array.of(7n) }], 1)
    await history.insert(table, block, table)
    const [read] = await history.rows<{ n: number }>(`SELECT n FROM ${table}`)
    if (read?.n !== 7) throw new Error('a row that was inserted did not come back')
  } finally {
    await history.command(`DROP TABLE IF EXISTS ${table}`)
  }
  const [{ version, now }] = await history.rows<{ version: string; now: number }>(
    'SELECT version() AS version, toUnixTimestamp64Milli(now64(3)) AS now',
  )
  const schema = await schemaOf(history)
  const setting = {
    name: 'schema',
    value: schema === 0 ? 'none yet: the first start creates it' : `${schema} of ${SCHEMA}`,
    isGood: schema === 0 || schema === SCHEMA,
    advice:
      schema > SCHEMA
        ? 'a later version of Waymark has changed it: start that version'
        : 'of an earlier version of Waymark: start the version before this one first, which upgrades it',
  }
  const examined = await history.examine?.()
  return { version, now, settings: [setting, ...(examined?.settings ?? [])], latencyMs }
}

/** Puts a file, reads it back and deletes it. */
export const tryFiles = async (files: FileStore, { clock, newId }: TryServices): Promise<Tried> => {
  const latencyMs = await latencyOf(files, clock)
  const key = `doctor/${newId()}`
  const bytes = Buffer.from(key)
  const source = async function* () {
    yield bytes
  }
  await files.put(key, source(), bytes.length)
  const parts: Uint8Array[] = []
  for await (const part of (await files.get(key))?.stream ?? []) parts.push(part)
  await files.delete(key)
  if (!Buffer.concat(parts).equals(bytes)) throw new Error('a file that was put did not come back')
  return { settings: [], latencyMs }
}

/** The fastest of a few answers: the first opens connections. */
const latencyOf = async (engine: { ping(): Promise<void> }, clock: Clock): Promise<number> => {
  let best = Number.POSITIVE_INFINITY
  for (let i = 0; i < PINGS; i++) {
    const begun = clock.monotonic()
    await engine.ping()
    best = Math.min(best, clock.monotonic() - begun)
  }
  return best
}
