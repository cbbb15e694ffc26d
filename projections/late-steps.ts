import { createHash } from 'node:crypto'
import { LATE, lateBlock, STEP_MS } from '../src/engines/clickhouse-sql/point-steps.ts'
import type { PointBatch } from '../src/features/locations/events.ts'
import type { HistoryBlock } from './history-consumer.ts'

/**
 * Shortest time from a step's end to its roll-up. Points that come in the first quarter of that are inserted before the
 * roll-up, however long their insert takes; later ones mark their step before they are inserted.
 */
export const ROLLED_AFTER_MS = 3_600_000
const LATE_AFTER_MS = ROLLED_AFTER_MS / 4

interface Mark {
  organizationId: string
  trackerId: string
  at: number
}

/** The steps of late points, which have to be marked before them. */
export class LateSteps {
  private readonly now: () => number
  private batches: PointBatch[] = []

  constructor(now: () => number) {
    this.now = now
  }

  add(batch: PointBatch): void {
    this.batches.push(batch)
  }

  /** Made again for each attempt: earlier marks may have been worked off, and points once in time may be late. */
  blocks(): HistoryBlock[] {
    const markedAt = this.now()
    const marks = new Map<string, Mark>()
    for (const batch of this.batches) addLate(batch, markedAt - LATE_AFTER_MS, marks)
    if (marks.size === 0) return []
    const block = lateBlock([...marks.values()], markedAt)
    return [{ table: LATE, block, token: createHash('sha256').update(block).digest('base64url') }]
  }

  clear(): void {
    this.batches = []
  }
}

/** Marks the steps that had ended by `by`. */
const addLate = (batch: PointBatch, by: number, marks: Map<string, Mark>): void => {
  let last = Number.NaN
  for (let i = 0; i < batch.count; i++) {
    if (batch.recordedAt[i] > by) continue
    const at = Math.floor(batch.recordedAt[i] / STEP_MS) * STEP_MS
    if (at + STEP_MS > by || (at === last && batch.tracker[i] === batch.tracker[i - 1])) continue
    last = at
    const { organizationId, trackerId } = batch.trackers[batch.tracker[i]]
    marks.set(`${trackerId} ${at}`, { organizationId, trackerId, at })
  }
}
