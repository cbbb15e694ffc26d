import { POINTS } from '../src/engines/clickhouse-sql/history-tables.ts'
import { AHEAD, type LocationEntry, type PointBatch } from '../src/features/locations/events.ts'
import type { Erased } from './erasures.ts'
import { type HistoryBlock, HistoryConsumer, type HistoryServices, type RowBuffer } from './history-consumer.ts'
import { PointBlock } from './location-history-block.ts'
import { LateSteps } from './late-steps.ts'

export const LOCATION_HISTORY = 'location-history'

const BLOCK_ROWS = 50_000
/** Initial rows of a block: room for all rows takes 3.7 MB, and there are always two. */
const FIRST_ROWS = 4_096
const BLOCK_AGE_MS = 500

export class LocationHistory extends HistoryConsumer<LocationEntry> {
  /** @param blockRowsMax points of one insert */
  constructor({ blockRowsMax = BLOCK_ROWS, ...services }: HistoryServices & { blockRowsMax?: number }) {
    super({
      ...services,
      name: LOCATION_HISTORY,
      buffer: () =>
        new PointBuffer(
          services.epoch,
          services.erasures.known,
          blockRowsMax,
          new LateSteps(() => services.clock.now()),
        ),
      ageMsMax: BLOCK_AGE_MS,
    })
  }
}

/** Points go from the batch into the columns of a block at once. */
export class PointBuffer implements RowBuffer<LocationEntry> {
  private readonly block: PointBlock
  private readonly epoch: number
  private readonly erased: Erased
  private readonly rowsMax: number
  private readonly late: LateSteps | undefined

  /** @param late left out where the steps of inserted points are marked otherwise */
  constructor(epoch: number, erased: Erased, rowsMax = BLOCK_ROWS, late?: LateSteps) {
    this.block = new PointBlock(Math.min(rowsMax, FIRST_ROWS))
    this.epoch = epoch
    this.erased = erased
    this.rowsMax = rowsMax
    this.late = late
  }

  get rows(): number {
    return this.block.rows
  }

  get isFull(): boolean {
    return this.rows >= this.rowsMax
  }

  add(entry: LocationEntry): void {
    if (entry.kind !== 'points') return
    const batch = withoutErased(entry.batch, this.erased)
    this.block.add(batch, this.epoch, entry.revision)
    this.late?.add(batch)
  }

  blocks(): HistoryBlock[] {
    if (this.block.rows === 0) return []
    return [...(this.late?.blocks() ?? []), { table: POINTS, block: this.block.encode() }]
  }

  clear(): void {
    this.block.clear()
    this.late?.clear()
  }
}

/** The batch, or the rest of it where some of its trackers are erased. */
const withoutErased = (batch: PointBatch, erased: Erased): PointBatch => {
  if (erased.isEmpty || !batch.trackers.some((one) => erased.hasOf(one.organizationId, one.trackerId))) return batch
  const kept = Array.from({ length: batch.count }, (_, i) => i).filter((i) => {
    const { organizationId, trackerId } = batch.trackers[batch.tracker[i]]
    // A point that was ahead of the clock was logged before its time.
    const at = (batch.flags[i] & AHEAD) === 0 ? batch.recordedAt[i] : Math.min(batch.recordedAt[i], batch.loggedAt)
    return !erased.has(organizationId, trackerId, at)
  })
  return {
    ...batch,
    count: kept.length,
    tracker: Uint16Array.from(kept, (i) => batch.tracker[i]),
    recordedAt: Float64Array.from(kept, (i) => batch.recordedAt[i]),
    lat: Int32Array.from(kept, (i) => batch.lat[i]),
    lng: Int32Array.from(kept, (i) => batch.lng[i]),
    flags: Uint16Array.from(kept, (i) => batch.flags[i]),
    accuracy: Int32Array.from(kept, (i) => batch.accuracy[i]),
    altitude: Int32Array.from(kept, (i) => batch.altitude[i]),
    speed: Int32Array.from(kept, (i) => batch.speed[i]),
    heading: Uint16Array.from(kept, (i) => batch.heading[i]),
    battery: Uint8Array.from(kept, (i) => batch.battery[i]),
    attributes: new Map(
      kept.flatMap((i, at): [number, string][] => {
        const text = batch.attributes.get(i)
        return text === undefined ? [] : [[at, text]]
      }),
    ),
  }
}
