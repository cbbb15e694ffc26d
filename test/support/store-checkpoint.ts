import type { Checkpoint, TableStore } from '../../src/engines/table-store.ts'
import { OwnedCheckpoint } from '../../src/kit/consumers/checkpoint.ts'
import type { RowChange } from '../../src/kernel/table.ts'

/** Takes the consumer over and puts it at a place, wherever it stood. */
export const storeCheckpoint = async (
  tables: Pick<TableStore, 'commit' | 'take'>,
  consumer: string,
  at: Checkpoint,
  changes: readonly RowChange[] = [],
): Promise<void> => (await OwnedCheckpoint.take(tables, consumer)).commit(changes, at)
