import type { HistoryStore } from '../history-store.ts'
import { MIGRATIONS, type Retention, TABLES, timeToLive } from './history-tables.ts'

/** Which changes of the schema a history has. */
const VERSIONS = `
CREATE TABLE IF NOT EXISTS schema_versions (number UInt32, appliedAt DateTime64(3, 'UTC'))
ENGINE = MergeTree ORDER BY number SETTINGS fsync_after_insert = 1`

/**
 * Brings the schema of the history to what this version of the code reads and writes, and gives its tables the retention.
 * To be called at each start, by one process at a time; what was done is not done again.
 * @throws Error for a history that a later version of the code has changed.
 */
export const migrateHistory = async (store: HistoryStore, retention: Retention): Promise<void> => {
  await store.command(VERSIONS)
  const done = await versionOfSchema(store)
  if (done > MIGRATIONS.length)
    throw new Error(
      `The history has schema ${done}, of a later version; this one knows ${MIGRATIONS.length}. Start the later version.`,
    )
  for (let number = done + 1; number <= MIGRATIONS.length; number++) {
    for (const sql of MIGRATIONS[number - 1](retention)) await store.command(sql)
    await store.command('INSERT INTO schema_versions SELECT {number:UInt32}, now64(3)', { number })
  }
  await keep(store, retention)
}

export const versionOfSchema = async (store: HistoryStore): Promise<number> => {
  const [{ done }] = await store.rows<{ done: number }>('SELECT max(number) AS done FROM schema_versions')
  return done
}

const keep = async (store: HistoryStore, retention: Retention): Promise<void> => {
  for (const { name, time, days } of TABLES) {
    const [found] = await store.rows<{ sql: string }>(
      'SELECT create_table_query AS sql FROM system.tables WHERE database = currentDatabase() AND name = {name:String}',
      { name },
    )
    if (found?.sql.includes(`toIntervalDay(${days(retention)})`)) continue
    // The parts that are there keep their rows until their own merges look at them: nothing is rewritten at the start.
    const timeToKeep = timeToLive(time, days(retention))
    await store.command(`ALTER TABLE ${name} MODIFY TTL ${timeToKeep} SETTINGS materialize_ttl_after_modify = 0`)
  }
}
