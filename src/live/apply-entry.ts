import type { LocationEntry, PointBatch } from '../features/locations/events.ts'
import type { Fleet } from './fleet.ts'

/** Calls `visit` for each tracker's points of a batch. */
export const forEachRun = (
  batch: PointBatch,
  visit: (organizationId: string, from: number, to: number) => void,
): void => {
  for (let from = 0; from < batch.count; ) {
    const tracker = batch.tracker[from]
    let to = from + 1
    while (to < batch.count && batch.tracker[to] === tracker) to++
    visit(batch.trackers[tracker].organizationId, from, to)
    from = to
  }
}

/** Applies an entry of the log to one organization's fleet. */
export const applyEntry = (organizationId: string, fleet: Fleet, entry: LocationEntry): void => {
  if (entry.kind === 'trackerDeleted' && entry.deletion.organizationId === organizationId)
    fleet.forget(entry.deletion.trackerId)
  if (entry.kind !== 'points') return
  forEachRun(entry.batch, (id, from, to) => {
    if (id === organizationId) fleet.take(entry.batch, from, to)
  })
}
