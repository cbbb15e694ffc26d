import type { TableStore } from '../engines/table-store.ts'
import type { Projection } from '../kit/consumers/projection.ts'
import { transitionStream } from '../features/transitions/events.ts'
import { dispatchCheckpoint } from '../reactors/dispatch/owed-table.ts'
import type { TransitionsApplied } from '../reactors/sweep/truncate-transitions.ts'
import { DECISIONS_HISTORY } from '../../projections/decisions-history.ts'
import { loadHistoryCheckpoint } from '../../projections/history-checkpoints.ts'

/** How far the slowest of those has come that follow the transitions of a partition and store where they stand. */
export const transitionsApplied =
  (tables: Pick<TableStore, 'checkpoint'>, projections: readonly Pick<Projection, 'name' | 'prefixes'>[]) =>
  async (partition: number): Promise<TransitionsApplied> => {
    const readers = projections.filter(({ prefixes }) =>
      prefixes.some((prefix) => transitionStream(partition).startsWith(prefix)),
    )
    const positions = await Promise.all(readers.map(async ({ name }) => (await tables.checkpoint(name))?.all ?? -1))
    const history = await loadHistoryCheckpoint(tables, DECISIONS_HISTORY, partition)
    const dispatched = (await tables.checkpoint(dispatchCheckpoint(partition)))?.source ?? -1
    return { revision: Math.min(history, dispatched), position: Math.min(...positions) }
  }
