import { type EventLog, eventsOf } from '../engines/event-log.ts'
import { DELETION_PLACED, deletedTrackersStream, type DeletionPlaced } from '../features/locations/events.ts'
import type { NewestPoints } from '../features/locations/history/streams.ts'
import { trackerIdAt } from '../features/locations/history/point-rows.ts'
import { decodeJson } from '../kernel/event.ts'
import type { LogPlace, NewestPosition } from '../../projections/latest-rebuild.ts'

/** The history's newest points as rows of latest positions; the history does not have their times of logging. */
export async function* positionsOf(newest: AsyncIterable<NewestPoints>): AsyncGenerator<NewestPosition> {
  for await (const { rows, organizationIds, epochs, revisions } of newest) {
    for (let i = 0; i < rows.count; i++) {
      const { recordedAt, lat, lng, flags, accuracy, altitude, speed, heading, battery } = rows
      const values = {
        recordedAt: recordedAt[i],
        loggedAt: recordedAt[i],
        lat: lat[i],
        lng: lng[i],
        flags: flags[i],
        accuracy: accuracy[i],
        altitude: altitude[i],
        speed: speed[i],
        heading: heading[i],
        battery: battery[i],
      }
      yield {
        row: { trackerId: trackerIdAt(rows, i), organizationId: organizationIds[i], ...values },
        place: { epoch: epochs[i], revision: revisions[i] },
      }
    }
  }
}

/** Place of the last deletion of each tracker of a partition. */
export const deletionsOf = async (
  log: EventLog,
  partition: number,
  signal: AbortSignal,
): Promise<Map<string, LogPlace>> => {
  const deletions = new Map<string, LogPlace>()
  for await (const { type, data } of eventsOf(
    log,
    deletedTrackersStream(partition),
    0,
    Number.MAX_SAFE_INTEGER,
    signal,
  )) {
    if (type !== DELETION_PLACED) continue
    const { trackerId, epoch, revision } = decodeJson<DeletionPlaced>(data)
    deletions.set(trackerId, { epoch, revision }) // in order of deletion
  }
  return deletions
}
