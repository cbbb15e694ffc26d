import type { EventLog } from '../engines/event-log.ts'
import { POINTS } from '../engines/clickhouse-sql/history-tables.ts'
import type { HistoryStore } from '../engines/history-store.ts'
import type { TableStore } from '../engines/table-store.ts'
import { runsStream } from '../features/automations/events.ts'
import { AUDIT } from '../features/audit/views.ts'
import { locationStream } from '../features/locations/events.ts'
import { transitionStream } from '../features/transitions/events.ts'
import { DECISIONS_HISTORY } from '../../projections/decisions-history.ts'
import { historyCheckpoint, historyConsumer } from '../../projections/history-checkpoints.ts'
import { LOCATION_HISTORY } from '../../projections/location-history.ts'
import { RUNS_HISTORY } from '../../projections/runs-history.ts'
import { PROJECTIONS } from '../product-parts.ts'

const FED: [string, (partition: number) => string][] = [
  [LOCATION_HISTORY, locationStream],
  [DECISIONS_HISTORY, transitionStream],
  [RUNS_HISTORY, runsStream],
]

/**
 * A log that was restored from an older copy, or begins anew, would be followed from checkpoints ahead of it: new
 * events would never reach tables and history.
 * @throws Error with this reason and the remedy
 */
export const assertLogReaches = async (
  log: Pick<EventLog, 'head' | 'headPosition'>,
  tables: Pick<TableStore, 'checkpoint'>,
  partitions: number,
): Promise<void> => {
  for (const name of [...PROJECTIONS.map((projection) => projection.name), AUDIT]) {
    const at = (await tables.checkpoint(name))?.all ?? -1
    if (at >= 0 && at > (await log.headPosition())) throw ahead(name, 'position', at)
  }
  for (let partition = 0; partition < partitions; partition++)
    for (const [name, streamOf] of FED) {
      const at = (await tables.checkpoint(historyConsumer(name, partition)))?.[partition] ?? -1
      if (at >= 0 && at > (await log.head(streamOf(partition))))
        throw ahead(name, `revision of ${streamOf(partition)}`, at)
    }
}

/** Whether tables note stored points, but the history lacks even their table: it is another one, or was lost. */
export const lacksHistory = async (
  history: Pick<HistoryStore, 'rows'>,
  tables: Pick<TableStore, 'checkpoint'>,
  partitions: number,
): Promise<boolean> => {
  // The table of points is older than the schema's version numbers.
  const sql = 'SELECT count() AS count FROM system.tables WHERE database = currentDatabase() AND name = {name:String}'
  const [{ count }] = await history.rows<{ count: number }>(sql, { name: POINTS })
  if (count > 0) return false
  const stored = await historyCheckpoint(tables, LOCATION_HISTORY, partitions)
  return Object.values(stored).some((revision) => revision >= 0)
}

const ahead = (name: string, place: string, at: number): Error =>
  new Error(
    `The log ends before what the tables were made of: ${name} stands at ${place} ${at}. Where --log names the wrong log, name the right one. Where it was restored from an older copy, or lost and begins anew, empty the tables (delete <data>/tables, for Redis FLUSHDB or another ?prefix=) and start again: they are built from the log and the history.`,
  )
