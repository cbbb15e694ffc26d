import type { Checkpoint, TableStore } from '../src/engines/table-store.ts'

/** Each partition has a checkpoint of its own: partitions may be followed by different processes. */
const nameOf = (consumer: string, partition: number): string => `${consumer}-${partition}`

/** Revision of the last event of the partition that is in the history for good, -1 for none. */
export const loadHistoryCheckpoint = async (
  tables: Pick<TableStore, 'checkpoint'>,
  consumer: string,
  partition: number,
): Promise<number> => (await tables.checkpoint(nameOf(consumer, partition)))?.[partition] ?? -1

/** Stores how far each of these partitions is. */
export const storeHistoryCheckpoints = async (
  tables: Pick<TableStore, 'commit'>,
  consumer: string,
  at: ReadonlyMap<number, number>,
): Promise<void> => {
  await Promise.all(
    [...at].map(([partition, revision]) =>
      tables.commit([], { consumer: nameOf(consumer, partition), at: { [partition]: revision } }),
    ),
  )
}

/** How far every partition is, for whoever truncates streams or rebuilds; partitions without a checkpoint are absent. */
export const historyCheckpoint = async (
  tables: Pick<TableStore, 'checkpoint'>,
  consumer: string,
  partitions: number,
): Promise<Checkpoint> => {
  const all = await Promise.all(
    Array.from({ length: partitions }, (_, partition) => tables.checkpoint(nameOf(consumer, partition))),
  )
  return Object.assign({}, ...all) as Checkpoint
}
