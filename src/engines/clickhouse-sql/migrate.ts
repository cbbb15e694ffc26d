import { Failure } from '../../kernel/errors.ts'
import type { HistoryStore } from '../history-store.ts'
import { assertLayout } from './cluster.ts'
import { type Retention, TABLES, timeToLive } from './history-tables.ts'
import { createCopied, type Layout, layoutOf, localOf, shardsOf } from './layout.ts'
import { MIGRATIONS } from './migrations.ts'

/** Which changes of the schema a history has. */
const VERSIONS = 'schema_versions'

/**
 * Brings the schema of the history to what this version of the code reads and writes, and gives its tables the retention.
 * To be called at each start, by one process at a time; what was done is not done again. `through`: no further than this
 * change, for rows of a version that knew no later one.
 * @throws Error for a history that a later version of the code has changed, and for a cluster that cannot have it.
 */
export const migrateHistory = async (
  store: HistoryStore,
  retention: Retention,
  through = MIGRATIONS.length,
): Promise<void> => {
  const layout = await layoutOf(store)
  const columns = "number UInt32, appliedAt DateTime64(3, 'UTC')"
  if (!(await assertLayout(store, layout, VERSIONS)))
    await store.command(createCopied(VERSIONS, columns, 'ORDER BY number', layout))
  const done = await versionOfSchema(store)
  if (done > MIGRATIONS.length)
    throw new Error(
      `The history has schema ${done}, of a later version; this one knows ${MIGRATIONS.length}. Start the later version.`,
    )
  for (let number = done + 1; number <= through; number++) {
    for (const sql of MIGRATIONS[number - 1]({ ...retention, ...layout })) await change(store, number, sql)
    await store.command(`INSERT INTO ${VERSIONS} SELECT {number:UInt32}, now64(3)`, { number })
  }
  await keep(store, layout, retention)
}

/** @throws Error with the server's own words where it refuses, as it does for a user who lacks a right. */
const change = async (store: HistoryStore, number: number, sql: string): Promise<void> => {
  try {
    await store.command(sql)
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'internal' || !(error.cause instanceof Error)) throw error
    throw new Error(`The history refuses change ${number} of its schema: ${error.cause.message.split('\n')[0]}`, {
      cause: error,
    })
  }
}

export const versionOfSchema = async (store: Pick<HistoryStore, 'rows'>): Promise<number> => {
  const [{ done }] = await store.rows<{ done: number }>(`SELECT max(number) AS done FROM ${VERSIONS}`)
  return done
}

const keep = async (store: HistoryStore, layout: Layout, retention: Retention): Promise<void> => {
  for (const { name, time, days } of TABLES) {
    const [found] = await store.rows<{ sql: string }>(
      'SELECT create_table_query AS sql FROM system.tables WHERE database = currentDatabase() AND name = {name:String}',
      { name: localOf(name, layout) },
    )
    if (found?.sql.includes(`toIntervalDay(${days(retention)})`)) continue
    // The parts that are there keep their rows until their own merges look at them: nothing is rewritten at the start.
    const timeToKeep = timeToLive(time, days(retention))
    await store.command(
      `ALTER TABLE ${shardsOf(name, layout)} MODIFY TTL ${timeToKeep} SETTINGS materialize_ttl_after_modify = 0`,
    )
  }
}

/** How many changes of the schema a history has, undefined for none, and how many this version of the code knows. */
export const migrationsOf = async (
  store: Pick<HistoryStore, 'rows'>,
): Promise<{ done: number | undefined; known: number }> => {
  const [{ tables }] = await store.rows<{ tables: number }>(
    'SELECT count() AS tables FROM system.tables WHERE database = currentDatabase() AND name = {name:String}',
    { name: VERSIONS },
  )
  return { done: tables === 0 ? undefined : await versionOfSchema(store), known: MIGRATIONS.length }
}
