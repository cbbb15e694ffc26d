import type { Row } from '../../kernel/table.ts'
import type { Route } from '../../kit/http/route.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import { lastSeenIn } from '../locations/views.ts'
import { ingestKey, tracker } from './declaration.ts'
import { rejectedPointsOf } from './rejected-points.ts'
import { forgotten, type TrackerWriter } from './tracker-writer.ts'
import { withStatus, type StatusAges } from './status.ts'

export interface TrackerApiServices extends ResourceServices {
  writer: TrackerWriter
  ages: StatusAges
  partitions: number
}

/** Trackers, with their present status, and the keys of gateways. */
export const trackerRoutes = (services: TrackerApiServices): Route[] => {
  const { writer, ages, tables, partitions } = services
  return [
    ...tracker.routes(services, {
      writes: writer,
      own: 'ownerId',
      present: async (rows, { caller, now, wants }) => {
        const [shown, rejected] = await Promise.all([
          withStatus(lastSeenIn(tables), ages, caller.organizationId, rows, now),
          wants('rejected') ? rejectedPointsOf(tables, idsOf(rows)) : [],
        ])
        return shown.map((row, i) => (rejected[i] === undefined ? row : { ...row, rejected: rejected[i] }))
      },
      settles: ({ id, kind }) => (kind === 'delete' ? forgotten(id, partitions) : []),
    }),
    ...ingestKey.routes(services),
  ]
}

const idsOf = (rows: readonly Row[]): string[] => rows.map(({ _id }) => _id as string)
