import type { TableStore } from '../engines/table-store.ts'
import { dispatcherOf } from '../reactors/dispatch/owed-rows.ts'
import { DECISIONS_HISTORY } from '../../projections/decisions-history.ts'
import { loadHistoryCheckpoint } from '../../projections/history-checkpoints.ts'

/** Revision up to which each of those has come that follow the transitions of a partition and store where they stand; -1 for none. */
export const transitionsApplied =
  (tables: Pick<TableStore, 'checkpoint'>) =>
  async (partition: number): Promise<number> => {
    const history = await loadHistoryCheckpoint(tables, DECISIONS_HISTORY, partition)
    const dispatched = (await tables.checkpoint(dispatcherOf(partition)))?.source ?? -1
    return Math.min(history, dispatched)
  }
