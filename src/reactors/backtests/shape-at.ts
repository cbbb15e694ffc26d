import type { EventLog } from '../../engines/event-log.ts'
import { geofenceStream } from '../../features/geofences/events.ts'
import { geofence } from '../../features/geofences/geofence.ts'
import type { ShapeInput } from '../../geo/shape.ts'
import { Failure } from '../../kernel/errors.ts'
import { factOf } from '../../kernel/event.ts'

const PAGE_EVENTS = 100

/** The shape of a geofence when its stream had so many events, so that a back-test stays the same over edits and restarts. @throws Failure not_found */
export const shapeAt = async (log: Pick<EventLog, 'read'>, geofenceId: string, version: number): Promise<ShapeInput> => {
  let state = geofence.initial
  for (let revision = 0; revision < version; ) {
    const events = await log.read(geofenceStream(geofenceId), revision, Math.min(PAGE_EVENTS, version - revision))
    if (events.length === 0) break
    for (const event of events) state = geofence.evolve(state, factOf(event) as never)
    revision += events.length
  }
  if (state.status !== 'live' || state.values === undefined) throw new Failure('not_found', { message: 'The geofence is not there any more.' })
  return state.values.shape
}
