import type { Checkpoint, TableStore } from '../src/engines/table-store.ts'
import { partitionOf } from '../src/features/locations/events.ts'
import { LATEST_POSITIONS, latestPositionCheckpoint, type LatestPositionRow } from '../src/features/locations/views.ts'

type Restored = Map<string, LatestPositionRow & { organizationId: string }>

/** Up to which revision of each partition's stream the rows are kept, for whoever reads rows first and the log then. */
export const latestCheckpoint = async (
  tables: Pick<TableStore, 'checkpoint'>,
  partitions: number,
): Promise<Checkpoint> => {
  const all = await Promise.all(
    Array.from({ length: partitions }, (_, partition) => tables.checkpoint(latestPositionCheckpoint(partition))),
  )
  return Object.assign({}, ...all)
}

/** Gives partitions their rows back: one scan of the table for all that ask in the same turn, with the checkpoints of before it. */
export class LatestRestore {
  private readonly options: { tables: TableStore; partitions: number }
  private asked: { partitions: Set<number>; restored: Promise<Map<number, { at: number; rows: Restored }>> } | undefined

  constructor(options: { tables: TableStore; partitions: number }) {
    this.options = options
  }

  /** The rows as they are after the call: whoever kept the partition before has stored all of its own by then. */
  async partition(partition: number): Promise<{ at: number; rows: Restored }> {
    if (this.asked === undefined) {
      const asked = new Set<number>()
      this.asked = { partitions: asked, restored: this.scanSoon(asked) }
    }
    this.asked.partitions.add(partition)
    return (await this.asked.restored).get(partition) as { at: number; rows: Restored }
  }

  private async scanSoon(asked: ReadonlySet<number>): Promise<Map<number, { at: number; rows: Restored }>> {
    await new Promise((resume) => setImmediate(resume))
    this.asked = undefined
    const { tables, partitions } = this.options
    await tables.declare(LATEST_POSITIONS)
    const checkpoint = await latestCheckpoint(tables, partitions)
    const restored = new Map(
      [...asked].map((partition) => [partition, { at: checkpoint[partition] ?? -1, rows: new Map() as Restored }]),
    )
    for await (const { scope, id, row } of tables.scanAll<LatestPositionRow>(LATEST_POSITIONS.name))
      restored.get(partitionOf(id, partitions))?.rows.set(id, { ...row, organizationId: scope })
    return restored
  }
}
