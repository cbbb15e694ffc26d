import { AUDIT, DEFINITIONS, POINTS, type Retention, RUNS, type TableName } from './history-tables.ts'
import { TABLES, TRANSITIONS, TRIPS, timeToLive } from './history-tables.ts'
import { alterTable, createTable, type Layout, MERGE_SETTINGS, shardsOf } from './layout.ts'
import { createViews } from './views.ts'

/** What a change of the schema depends on. */
export interface Schema extends Retention, Layout {}

const create = (table: TableName, schema: Schema): string[] => {
  const expiring = TABLES.find(({ name }) => name === table)
  const ttl = expiring && timeToLive(expiring.time, expiring.days(schema))
  return createTable(table, { ...DEFINITIONS[table], timeToLive: ttl }, schema)
}

/**
 * Changes of the schema, each by its number, from 1 without gaps. One that was released never changes again: what comes
 * later is a new one. Each statement may run a second time, because a crash may come before its number is stored.
 */
export const MIGRATIONS: readonly ((schema: Schema) => string[])[] = [
  (schema) => [...create(POINTS, schema), ...create(TRANSITIONS, schema), ...create(TRIPS, schema)],
  // Where a transition stands in its own stream: positions of the whole log are nothing to count with.
  (schema) => [
    ...alterTable(TRANSITIONS, 'RENAME COLUMN IF EXISTS position TO revision', schema),
    ...alterTable(TRANSITIONS, 'ADD COLUMN IF NOT EXISTS partition UInt16 CODEC(ZSTD(3)) AFTER point', schema),
  ],
  (schema) => create(RUNS, schema),
  // Runs are about tasks, records and routing results, too.
  (schema) => alterTable(RUNS, 'RENAME COLUMN IF EXISTS trackerId TO subjectId', schema),
  (schema) => create(AUDIT, schema),
  createViews,
  // Lists of whoever does not see all hubs: worked out of what was inserted, also for rows from before.
  (schema) =>
    alterTable(
      RUNS,
      `ADD COLUMN IF NOT EXISTS audience SimpleAggregateFunction(max, String) MATERIALIZED ${AUDIENCE_SQL} CODEC(ZSTD(3))`,
      schema,
    ),
  // Forced after two minutes, merges wrote a whole month again at each lull.
  (schema) =>
    Object.keys(DEFINITIONS).map((table) => `ALTER TABLE ${shardsOf(table, schema)} MODIFY SETTING ${MERGE_SETTINGS}`),
  // What runs were owed for, as lists ask for it.
  (schema) =>
    alterTable(
      RUNS,
      `ADD COLUMN IF NOT EXISTS event SimpleAggregateFunction(max, String) MATERIALIZED JSONExtractString(trigger, 'event') CODEC(ZSTD(3))`,
      schema,
    ),
]

const SUBJECT = (member: string): string => `JSONExtractString(trigger, 'subject', '${member}')`

/** Of runs about a tracker its id, about a record `records`, about a task the hub that it was in. */
const AUDIENCE_SQL = `multiIf(${SUBJECT('type')} = 'tracker', ${SUBJECT('id')}, ${SUBJECT('type')} = 'record', 'records', ${SUBJECT('hubId')})`
