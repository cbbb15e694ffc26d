import type { Route } from '../../kit/http/route.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import { lastSeenIn } from '../locations/views.ts'
import { ingestKey, tracker } from './declaration.ts'
import { forgotten, type TrackerWriter } from './tracker-writer.ts'
import { withStatus, type StatusAges } from './views.ts'

export interface TrackerApiServices extends ResourceServices {
  writer: TrackerWriter
  ages: StatusAges
  /** Number of partitions of the log. */
  partitions: number
}

/** Trackers, with their status as it is now, and the keys of gateways. */
export const trackerRoutes = (services: TrackerApiServices): Route[] => {
  const { writer, ages, tables, partitions } = services
  return [
    ...tracker.routes(services, {
      writes: writer,
      present: (rows, { caller, now }) => withStatus(lastSeenIn(tables), ages, caller.organizationId, rows, now),
      settles: ({ id, kind }) => (kind === 'delete' ? forgotten(id, partitions) : []),
    }),
    ...ingestKey.routes(services),
  ]
}
