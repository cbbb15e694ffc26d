import { type Checkpoint, StaleCommit, type TableStore } from '../src/engines/table-store.ts'
import { OwnedCheckpoint } from '../src/kit/consumers/checkpoint.ts'

/** Each partition has a checkpoint of its own: partitions may be followed by different processes. */
export const historyConsumer = (consumer: string, partition: number): string => `${consumer}-${partition}`

/** The source of checkpoints that tells how far erased rows have left the history. */
export const ERASURES = 'erasures'

/** A partition in the hands of its owner. */
export interface OwnedPlace {
  checkpoint: OwnedCheckpoint
  /** Revision in the stream of erasures through which none of its erased rows are left; stored with its checkpoint. */
  erased: number
}

/** Names the entries of an insert: its deduplication token. */
export const revisionsToken = (
  epoch: number | string,
  from: ReadonlyMap<number, number>,
  to: ReadonlyMap<number, number>,
): string =>
  `${epoch}:${[...from]
    .map(([partition, first]) => `${partition}.${first}-${to.get(partition)}`)
    .sort()
    .join(',')}`

/** Durable progress of a consumer's partitions in the history; a partition belongs to it from `take` on. */
export class HistoryCheckpoints {
  private readonly tables: Pick<TableStore, 'commit' | 'take'>
  private readonly consumer: string
  private readonly owned = new Map<number, OwnedPlace>()

  constructor(tables: Pick<TableStore, 'commit' | 'take'>, consumer: string) {
    this.tables = tables
    this.consumer = consumer
  }

  /** Revision of the partition's last event in the history, -1 for none. */
  async take(partition: number): Promise<number> {
    const checkpoint = await OwnedCheckpoint.take(this.tables, historyConsumer(this.consumer, partition))
    this.owned.set(partition, { checkpoint, erased: checkpoint.at?.[ERASURES] ?? -1 })
    return this.storedAt(partition)
  }

  /** As `take`, for the stored state. */
  storedAt(partition: number): number {
    return this.owned.get(partition)?.checkpoint.at?.[partition] ?? -1
  }

  erasedAt(partition: number): number {
    return this.owned.get(partition)?.erased ?? -1
  }

  notErased(through: number): OwnedPlace[] {
    return [...this.owned.values()].filter(({ erased }) => erased < through)
  }

  /** Stores nothing more of the partition. */
  leave(partition: number): void {
    this.owned.delete(partition)
  }

  has(partition: number): boolean {
    return this.owned.has(partition)
  }

  /** Stores the progress of each of these partitions; answers those that now have another owner. */
  async store(at: ReadonlyMap<number, number>): Promise<number[]> {
    const lost: number[] = []
    await Promise.all(
      [...at].map(async ([partition, revision]) => {
        const owned = this.owned.get(partition)
        if (owned === undefined) return
        try {
          await owned.checkpoint.commit([], {
            [partition]: revision,
            ...(owned.erased >= 0 && { [ERASURES]: owned.erased }),
          })
        } catch (error) {
          if (!(error instanceof StaleCommit)) throw error
          this.owned.delete(partition)
          lost.push(partition)
        }
      }),
    )
    return lost
  }
}

/** Revision of the partition's last event that is durable in the history, -1 for none. */
export const loadHistoryCheckpoint = async (
  tables: Pick<TableStore, 'checkpoint'>,
  consumer: string,
  partition: number,
): Promise<number> => (await tables.checkpoint(historyConsumer(consumer, partition)))?.[partition] ?? -1

/** Progress of every partition, for truncation and rebuilds; partitions without a checkpoint are absent. */
export const historyCheckpoint = async (
  tables: Pick<TableStore, 'checkpoint'>,
  consumer: string,
  partitions: number,
): Promise<Checkpoint> => {
  const all = await Promise.all(
    Array.from({ length: partitions }, (_, partition) => tables.checkpoint(historyConsumer(consumer, partition))),
  )
  return Object.assign({}, ...all) as Checkpoint
}
