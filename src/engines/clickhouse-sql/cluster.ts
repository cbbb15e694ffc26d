import type { HistoryStore } from '../history-store.ts'
import { type Layout, quoted } from './layout.ts'

/**
 * Holds the tables that are there to the layout that is asked for.
 * @param copied a table that every layout has, first of all
 * @returns whether it is there
 * @throws Error that says what to do: no such cluster; tables of one server where a cluster is asked for, or the reverse;
 * a node without the tables that the others have, which would get tables of its own beside theirs.
 */
export const assertCluster = async (
  store: Pick<HistoryStore, 'rows'>,
  layout: Layout,
  copied: string,
): Promise<boolean> => {
  const [found] = await store.rows<{ engine: string }>(
    'SELECT engine FROM system.tables WHERE database = currentDatabase() AND name = {copied:String}',
    { copied },
  )
  const isReplicated = found?.engine.startsWith('Replicated') === true
  if (layout.cluster === undefined) {
    if (isReplicated) throw new Error('The history is spread over a cluster; name it in --history with ?cluster=.')
    return found !== undefined
  }
  await assertNodes(store, layout, layout.cluster)
  if (found !== undefined && !isReplicated)
    throw new Error(
      `The history in ${layout.database} is one server's; the cluster ${layout.cluster} needs a database of its own (docs/clickhouse.md).`,
    )
  return found !== undefined
}

/** Nodes that lack tables of others, and nodes whose tables of the same name are not replicas of the others'. */
const assertNodes = async (store: Pick<HistoryStore, 'rows'>, { database }: Layout, cluster: string): Promise<void> => {
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
  const uneven = await store.rows<{ name: string; there: number; kinds: number }>(
    `SELECT name, count() AS there, uniqExact(uuid) AS kinds FROM ${every('system.tables')}
    WHERE database = {database:String} AND engine LIKE 'Replicated%' GROUP BY name
    HAVING there != {nodes:UInt64} OR kinds != 1 ORDER BY name ${those}`,
    { database, nodes },
  )
  if (uneven.length === 0) return
  const names = uneven.map(({ name, there }) => `${name} (${there})`).join(', ')
  throw new Error(
    `Of the ${nodes} nodes of the cluster ${cluster}, not all have the same tables: ${names}. See docs/clickhouse.md, "Adding a node".`,
  )
}
