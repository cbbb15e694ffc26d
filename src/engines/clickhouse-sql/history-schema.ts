import { Failure } from '../../kernel/errors.ts'
import type { HistoryStore } from '../history-store.ts'
import { assertLayout } from './cluster.ts'
import { DEFINITIONS, type Retention, TABLES, timeToLive } from './history-tables.ts'
import { createCopied, createTable, type Layout, layoutOf, localOf, MERGE_BASE_SETTING, shardsOf } from './layout.ts'
import { createSteps, STEP_STATE, STEP_TABLES } from './point-steps.ts'
import { createViews } from './views.ts'

/** The number of the schema that this version of the code reads and writes. */
export const SCHEMA = 9

/** Table with the schema of a history. */
const VERSIONS = 'schema_versions'

/**
 * Makes the tables of an empty history, and sets the retention of existing ones. Call it at each start, from one
 * process at a time; each statement may run a second time, because a crash may come before the number is stored.
 * @throws Error for a history of another version of the code, and for a cluster that cannot have it.
 */
export const openSchema = async (store: HistoryStore, retention: Retention): Promise<void> => {
  const layout = await layoutOf(store)
  const columns = "number UInt32, appliedAt DateTime64(3, 'UTC')"
  if (!(await assertLayout(store, layout, VERSIONS)))
    await store.command(createCopied(VERSIONS, columns, 'ORDER BY number', layout))
  const number = await schemaOf(store)
  if (number === 0) {
    for (const sql of statements(layout)) await make(store, sql)
    await store.command(`INSERT INTO ${VERSIONS} SELECT {number:UInt32}, now64(3)`, { number: SCHEMA })
  } else assertSchema(number, 'The history', 'start')
  await makeSteps(store, layout)
  await keep(store, layout, retention)
}

/** @throws Error that names the version that supports a history of another schema. */
export const assertSchema = (number: number, what: string, doing: 'start' | 'restore with'): void => {
  if (number === SCHEMA) return
  const age = number > SCHEMA ? 'a later' : 'an earlier'
  const way =
    number > SCHEMA ? `${doing} that version` : `${doing} the version before this one first, which upgrades it`
  throw new Error(`${what} has schema ${number}, of ${age} version; this one knows ${SCHEMA}: ${way}`)
}

const statements = (layout: Layout): string[] => [
  ...Object.entries(DEFINITIONS).flatMap(([table, definition]) => createTable(table, definition, layout)),
  ...createViews(layout),
]

/** @throws Error with the server's own words where it refuses, as it does for a user who lacks a right. */
const make = async (store: HistoryStore, sql: string): Promise<void> => {
  try {
    await store.command(sql)
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'internal' || !(error.cause instanceof Error)) throw error
    throw new Error(`The history refuses its schema: ${error.cause.message.split('\n')[0]}`, { cause: error })
  }
}

/** The number of a history's schema; 0 for one that has none yet. */
export const schemaOf = async (store: Pick<HistoryStore, 'rows'>): Promise<number> => {
  const [{ tables }] = await store.rows<{ tables: number }>(
    'SELECT count() AS tables FROM system.tables WHERE database = currentDatabase() AND name = {name:String}',
    { name: VERSIONS },
  )
  if (tables === 0) return 0
  const [{ number }] = await store.rows<{ number: number }>(`SELECT max(number) AS number FROM ${VERSIONS}`)
  return number
}

/** They are made of the points, so a history of any age gets them. */
const makeSteps = async (store: HistoryStore, layout: Layout): Promise<void> => {
  const [{ tables }] = await store.rows<{ tables: number }>(
    'SELECT count() AS tables FROM system.tables WHERE database = currentDatabase() AND name = {name:String}',
    { name: STEP_STATE },
  )
  if (tables === 0) for (const sql of createSteps(layout)) await make(store, sql)
}

/** Gives tables, whoever has made them, what they lack of the settings and of the retention of now. */
const keep = async (store: HistoryStore, layout: Layout, retention: Retention): Promise<void> => {
  const found = await store.rows<{ name: string; sql: string }>(
    'SELECT name, create_table_query AS sql FROM system.tables WHERE database = currentDatabase()',
  )
  const definitions = new Map(found.map(({ name, sql }) => [name, sql]))
  const has = (name: string, setting: string): boolean =>
    definitions.get(localOf(name, layout))?.includes(setting) === true
  for (const name of layout.hasMergeBase === true ? [...Object.keys(DEFINITIONS), ...STEP_TABLES] : [])
    if (!has(name, MERGE_BASE_SETTING))
      await store.command(`ALTER TABLE ${shardsOf(name, layout)} MODIFY SETTING ${MERGE_BASE_SETTING}`)
  const steps = STEP_TABLES.map((name) => ({ name, time: 'at', days: ({ days }: Retention) => days }))
  for (const { name, time, days } of [...TABLES, ...steps]) {
    if (has(name, `toIntervalDay(${days(retention)})`)) continue
    // Existing parts keep their rows until their own merges: nothing is rewritten at the start.
    const timeToKeep = timeToLive(time, days(retention))
    await store.command(
      `ALTER TABLE ${shardsOf(name, layout)} MODIFY TTL ${timeToKeep} SETTINGS materialize_ttl_after_modify = 0`,
    )
  }
}
