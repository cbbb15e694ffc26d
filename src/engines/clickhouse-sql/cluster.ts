import type { HistoryStore } from '../history-store.ts'
import { DEFINITIONS, POINTS } from './history-tables.ts'
import { type Layout, localOf, quoted } from './layout.ts'

/**
 * Checks the existing tables against the requested layout.
 * @param copied a table that every node has whole
 * @returns whether `copied` exists
 * @throws Error with advice: no such cluster; tables of one server where a cluster is requested, or the reverse; a node
 * without the tables of the others, which would get tables of its own beside theirs.
 */
export const assertLayout = async (
  store: Pick<HistoryStore, 'rows'>,
  layout: Layout,
  copied: string,
): Promise<boolean> => {
  const { database, cluster } = layout
  if (cluster !== undefined) await assertNodes(store, layout, cluster, copied)
  const found = await store.rows<{ name: string; engine: string }>(
    'SELECT name, engine FROM system.tables WHERE database = currentDatabase() AND name IN {names:Array(String)}',
    { names: [copied, POINTS] },
  )
  const points = found.find(({ name }) => name === POINTS)
  if (points?.engine === 'Distributed' && cluster === undefined)
    throw new Error(`The history in ${database} is spread over a cluster: name it in --history with ?cluster=.`)
  if (points !== undefined && points.engine !== 'Distributed' && cluster !== undefined)
    throw new Error(
      `The history in ${database} is one server's: the cluster ${cluster} needs another database (docs/clickhouse.md, "A cluster").`,
    )
  return found.some(({ name }) => name === copied)
}

/** Nodes that lack tables of others, and nodes whose tables of the same name are not replicas of the others'. */
const assertNodes = async (
  store: Pick<HistoryStore, 'rows'>,
  layout: Layout,
  cluster: string,
  copied: string,
): Promise<void> => {
  const [{ known }] = await store.rows<{ known: number }>(
    'SELECT count() AS known FROM system.clusters WHERE cluster = {cluster:String}',
    { cluster },
  )
  if (known === 0) throw new Error(`--history names the cluster ${cluster}, which the server does not know.`)
  const every = (table: string): string => `clusterAllReplicas(${quoted(cluster)}, ${table})`
  // A node that is down must not keep the service from starting.
  const those = 'SETTINGS skip_unavailable_shards = 1'
  const [{ nodes }] = await store.rows<{ nodes: number }>(
    `SELECT count() AS nodes FROM ${every('system.one')} ${those}`,
  )
  const tables = Object.keys(DEFINITIONS).map((table) => localOf(table, layout))
  const uneven = await store.rows<{ name: string; there: number; kinds: number }>(
    `SELECT name, count() AS there, uniqExact(uuid) AS kinds FROM ${every('system.tables')}
    WHERE database = {database:String} AND name IN {names:Array(String)} GROUP BY name
    HAVING there != {nodes:UInt64} OR kinds != 1 ORDER BY name ${those}`,
    { database: layout.database, names: [copied, ...tables], nodes },
  )
  if (uneven.length === 0) return
  const names = uneven.map(({ name, there }) => `${name} (${there})`).join(', ')
  throw new Error(
    `Of the ${nodes} nodes of the cluster ${cluster}, not all have the same tables: ${names}. See docs/clickhouse.md, "Adding a node".`,
  )
}
