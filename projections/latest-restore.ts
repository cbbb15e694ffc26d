import type { Checkpoint, TableStore } from '../src/engines/table-store.ts'
import { partitionOf } from '../src/features/locations/events.ts'
import { LATEST_POSITIONS, type LatestPositionRow } from '../src/features/locations/views.ts'
import type { Clock } from '../src/kernel/clock.ts'

type Restored = Map<string, LatestPositionRow & { organizationId: string }>

/** Each partition has a checkpoint of its own: partitions may run in different processes. */
export const checkpointName = (partition: number): string => `latest-position-${partition}`

/** Up to which revision of each partition's stream the rows are kept, for whoever reads rows first and the log then. */
export const latestCheckpoint = async (
  tables: Pick<TableStore, 'checkpoint'>,
  partitions: number,
): Promise<Checkpoint> => {
  const all = await Promise.all(
    Array.from({ length: partitions }, (_, partition) => tables.checkpoint(checkpointName(partition))),
  )
  return Object.assign({}, ...all)
}

/** One scan of the table serves every partition that is loaded within this time. */
const SCAN_AGE_MS = 30_000

/** Gives partitions their rows back: one scan of the table for all that start together, with the checkpoints of before it. */
export class LatestRestore {
  private readonly options: { tables: TableStore; clock: Clock; partitions: number }
  private scanned: { atMs: number; checkpoint: Checkpoint; rows: Map<number, Restored> } | undefined
  private scanning: Promise<void> | undefined

  constructor(options: { tables: TableStore; clock: Clock; partitions: number }) {
    this.options = options
  }

  async partition(partition: number): Promise<{ at: number; rows: Restored }> {
    await this.scanning
    const age =
      this.scanned === undefined ? Number.POSITIVE_INFINITY : this.options.clock.monotonic() - this.scanned.atMs
    // A partition that comes twice was committed to meanwhile.
    if (age > SCAN_AGE_MS || !this.scanned?.rows.has(partition)) await (this.scanning ??= this.scan())
    const { checkpoint, rows } = this.scanned as NonNullable<typeof this.scanned>
    const own = rows.get(partition) ?? new Map()
    rows.delete(partition)
    if (rows.size === 0) this.scanned = undefined
    return { at: checkpoint[partition] ?? -1, rows: own }
  }

  private async scan(): Promise<void> {
    try {
      const { tables, clock, partitions } = this.options
      await tables.declare(LATEST_POSITIONS)
      const atMs = clock.monotonic()
      const checkpoint = await latestCheckpoint(tables, partitions)
      const rows = new Map<number, Restored>(
        Array.from({ length: partitions }, (_, partition) => [partition, new Map()]),
      )
      for await (const { scope, id, row } of tables.scanAll<LatestPositionRow>(LATEST_POSITIONS.name)) {
        rows.get(partitionOf(id, partitions))?.set(id, { ...row, organizationId: scope })
      }
      const scanned = { atMs, checkpoint, rows }
      this.scanned = scanned
      clock.after(SCAN_AGE_MS, () => {
        if (this.scanned === scanned) this.scanned = undefined
      })
    } finally {
      this.scanning = undefined
    }
  }
}
