import { test } from 'tap'
import { LatestPartition } from '../../projections/latest-partition.ts'
import { LATEST_TRACKERS } from '../../src/features/locations/views.ts'
import { rowChangesOf } from '../../src/kernel/table.ts'
import type { OwnedCheckpoint } from '../../src/kit/consumers/checkpoint.ts'
import { batchOf } from '../support/batches.ts'
import { freshlySeeded } from '../support/random.ts'

/** A tracker is known by its place in the log alone: what its slot was before, and what a commit left undone, does not show. */
test('rows and the list of trackers follow points, deletions and commits in any order', (t) => {
  const random = freshlySeeded(t)
  const any = (below: number): number => Math.floor(random() * below)
  const partition = new LatestPartition(0, undefined as unknown as OwnedCheckpoint, -1)
  const known = new Map<string, number>()
  const stored = { rows: new Map<string, unknown>(), trackers: new Set<string>() }
  let [waiting, next]: [number[], number] = [[], 0]
  /** A part of what has changed, as it is committed, or fails. */
  const commit = (): void => {
    if (waiting.length === 0) waiting = partition.takeChanged()
    const slots = waiting.splice(0, 1 + any(20))
    const part = partition.partOf(slots)
    // Points and deletions come while the table stores.
    for (let i = any(4); i > 0; i--) happen()
    if (any(5) === 0) {
      for (const slot of [...slots, ...waiting.splice(0)]) partition.change(slot)
      return
    }
    const points = part.numbers === undefined ? [] : rowChangesOf(part.numbers)
    for (const { table, id, row } of [...part.changes, ...points]) {
      if (table === LATEST_TRACKERS.name) row === null ? stored.trackers.delete(id) : stored.trackers.add(id)
      else row === null ? stored.rows.delete(id) : stored.rows.set(id, row)
    }
    partition.stored(part)
  }
  const happen = (): void => {
    const trackerId = `tracker-${any(3) === 0 ? next++ : any(next + 1)}`
    if (any(3) > 0) {
      const recordedAt = any(1_000)
      const newest = known.get(trackerId)
      if (newest === undefined || recordedAt > newest) known.set(trackerId, recordedAt)
      partition.take(batchOf([{ trackerId, recordedAt, lat: recordedAt, lng: 0 }], recordedAt))
    } else {
      known.delete(trackerId)
      partition.forget({ organizationId: 'org', trackerId, at: 0 })
    }
  }
  for (let i = 0; i < 5_000; i++) any(4) === 0 ? commit() : happen()
  while (waiting.length > 0 || partition.changedCount > 0) commit()
  const expected = [...known].map(([trackerId, recordedAt]) => [trackerId, 'org', recordedAt]).sort()
  const shown = (row: unknown): unknown => {
    const { trackerId, organizationId, recordedAt } = row as { [member: string]: unknown }
    return [trackerId, organizationId, recordedAt]
  }
  t.same([...stored.rows.values()].map(shown).sort(), expected)
  t.same([...stored.trackers].sort(), [...known.keys()].sort())
  t.same([...known.keys()].map((id) => shown(partition.rowOf(id))).sort(), expected)
  t.end()
})
