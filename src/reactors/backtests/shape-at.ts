import type { EventLog } from '../../engines/event-log.ts'
import { geofenceStream } from '../../features/geofences/events.ts'
import { geofence } from '../../features/geofences/geofence.ts'
import type { ShapeInput } from '../../geo/shape.ts'
import { Failure } from '../../kernel/errors.ts'
import { foldStream } from '../../kit/commands/fold-stream.ts'

/** The shape of a geofence at a version, its number of events, so that a back-test stays the same over edits and restarts. @throws Failure not_found */
export const shapeAt = async (
  log: Pick<EventLog, 'read'>,
  geofenceId: string,
  version: number,
): Promise<ShapeInput> => {
  const state = await foldStream(log, geofenceStream(geofenceId), version - 1, geofence.initial, geofence.evolve)
  if (state.status !== 'live' || state.values === undefined)
    throw new Failure('not_found', { message: 'The geofence is not there any more.' })
  return state.values.shape
}
