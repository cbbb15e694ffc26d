import { DEFINITIONS } from '../clickhouse-sql/history-tables.ts'
import { localOf } from '../clickhouse-sql/layout.ts'
import type { ExaminedSetting } from '../examination.ts'
import type { HistoryStore } from '../history-store.ts'

type Store = Pick<HistoryStore, 'rows' | 'cluster'>

/** Asks the server for the settings of its writing sessions: names and values of `system.settings`. */
export type WriteSettings = (sql: string) => Promise<{ name: string; value: string }[]>

/** Settings that decide whether confirmed rows stay, and whether the service sees them all. */
export const examineHistory = async (store: Store, asWriter: WriteSettings): Promise<ExaminedSetting[]> => {
  const settings = [await flushed(store), ...(await writes(store, asWriter)), await policies(store)]
  if (store.cluster !== undefined) settings.push(await replicated(store.cluster, store), await replicas(store))
  return settings
}

const tablesOf = (store: Store): string[] => Object.keys(DEFINITIONS).map((table) => localOf(table, store))

const NO_TABLES = 'not set yet: the first start creates the tables'

const flushed = async (store: Store): Promise<ExaminedSetting> => {
  const found = await askedFor(
    store.rows<{ name: string; sql: string }>(
      'SELECT name, create_table_query AS sql FROM system.tables WHERE database = currentDatabase() AND name IN {names:Array(String)} ORDER BY name',
      { names: tablesOf(store) },
    ),
  )
  const unsafe = found?.filter(({ sql }) => !/\bfsync_after_insert = (1|true)\b/.test(sql)).map(({ name }) => name)
  return {
    name: 'fsync_after_insert',
    value: unsafe && (unsafe.length > 0 ? `off for ${unsafe.join(', ')}` : found?.length === 0 ? NO_TABLES : 'on'),
    isGood: unsafe?.length === 0,
    advice: `a power failure may lose rows that were confirmed; for each table: ALTER TABLE ${unsafe?.[0] ?? 'points'} MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1`,
  }
}

/** As in force for the service's writes, whatever the profile of its user says. */
const writes = async (store: Store, asWriter: WriteSettings): Promise<ExaminedSetting[]> => {
  const wanted: [string, string, string][] = [
    ['async_insert', '0', 'the server would confirm rows that are only in its memory'],
  ]
  if (store.cluster !== undefined)
    wanted.push(
      ['insert_quorum', 'auto', 'rows that only one replica has would be confirmed'],
      ['distributed_foreground_insert', '1', 'rows that still wait to be sent to their shard would be confirmed'],
    )
  const names = wanted.map(([name]) => `'${name}'`).join(', ')
  const found = await askedFor(asWriter(`SELECT name, value FROM system.settings WHERE name IN (${names})`))
  return wanted.map(([name, good, otherwise]) => {
    const value = found?.find((one) => one.name === name)?.value
    const advice = `${otherwise}: remove the constraint on ${name} from the settings profile of the service's user`
    return { name: `${name} of the service's inserts`, value, isGood: value === good, advice }
  })
}

interface Policy {
  name: string
  filter: string | null
  isRestrictive: number
  isOurs: number
}

const policies = async (store: Store): Promise<ExaminedSetting> => {
  const found = await askedFor(
    store.rows<Policy>(
      `SELECT name, select_filter AS filter, is_restrictive AS isRestrictive,
        if(apply_to_all, NOT hasAny(apply_to_except, us), hasAny(apply_to_list, us)) AS isOurs,
        arrayConcat([currentUser()], currentRoles()) AS us
      FROM system.row_policies WHERE database = currentDatabase() AND table IN {names:Array(String)}`,
      { names: [...tablesOf(store), ...Object.keys(DEFINITIONS)] },
    ),
  )
  const ours = found?.filter(({ isOurs }) => isOurs === 1) ?? []
  const hiding = ours.filter(({ filter, isRestrictive }) => filter !== '1' && (isRestrictive === 1 || !hasAll(ours)))
  const isAlone = found !== undefined && found.length > 0 && ours.length === 0
  const names = hiding.map(({ name }) => name).join(', ')
  const hidden = names === '' ? 'nothing' : `rows, by ${names}`
  const state = isAlone ? 'unclear: there are policies, but none for its user' : hidden
  return {
    name: 'what row policies hide from the service',
    value: found && state,
    isGood: hiding.length === 0 && !isAlone,
    advice:
      found === undefined
        ? "to have this checked: GRANT SHOW ROW POLICIES ON *.* TO the service's user"
        : 'the service may not see the whole history: CREATE ROW POLICY waymark_service … USING 1 TO its user, and remove restrictive policies from it (docs/analysis.md)',
  }
}

const hasAll = (ours: readonly Policy[]): boolean =>
  ours.some(({ filter, isRestrictive }) => filter === '1' && isRestrictive === 0)

const replicated = async (cluster: string, store: Store): Promise<ExaminedSetting> => {
  const [found] =
    (await askedFor(
      store.rows<{ shards: number; fewest: number; internal: number }>(
        `SELECT count() AS shards, min(replicas) AS fewest, min(internal) AS internal FROM (
          SELECT shard_num, count() AS replicas, min(internal_replication) AS internal
          FROM system.clusters WHERE cluster = {cluster:String} GROUP BY shard_num)`,
        { cluster },
      ),
    )) ?? []
  return {
    name: `cluster ${cluster}`,
    value:
      found &&
      `${found.shards} shards of ${found.fewest} replicas or more, internal_replication ${found.internal === 1 ? 'on' : 'off'}`,
    isGood: found?.internal === 1,
    advice:
      'set <internal_replication>true</internal_replication> for each shard in remote_servers: otherwise, a replica that was away lacks the rows that came meanwhile',
  }
}

/** On the node that answers. */
const replicas = async (store: Store): Promise<ExaminedSetting> => {
  const found = await askedFor(
    store.rows<{ name: string; readonly: number; active: number; total: number }>(
      `SELECT table AS name, is_readonly AS readonly, active_replicas AS active, total_replicas AS total
      FROM system.replicas WHERE database = currentDatabase() ORDER BY name`,
    ),
  )
  const ill = found?.filter(({ readonly, active, total }) => readonly === 1 || active < total)
  const said = ill?.map(
    ({ name, readonly, active, total }) =>
      `${name} (${active} of ${total} active${readonly === 1 ? ', read-only' : ''})`,
  )
  return {
    name: 'the list of replicas that are away or read-only',
    value: said && (said.length === 0 ? 'empty' : said.join(', ')),
    isGood: said?.length === 0,
    advice: 'check these nodes and the keeper; docs/clickhouse.md has the runbook',
  }
}

/** Undefined where the server refuses the question, for lack of a grant for instance. */
const askedFor = <Answer>(answer: Promise<Answer>): Promise<Answer | undefined> => answer.catch(() => undefined)
