import type { TableStore } from '../../engines/table-store.ts'
import { toE7 } from '../../geo/coordinates.ts'
import { distanceMeters } from '../../geo/distance.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import type { LatestPositionRow } from '../locations/views.ts'
import { ROUTING_RESULTS, type RoutingRow } from '../routing/views.ts'
import { isOver, TASKS, type TaskRow } from '../tasks/views.ts'
import type { Roads, Way } from './roads.ts'
import { speedAlong, type TrackPoint } from './track.ts'

export interface Arrival {
  at: string
  distanceMeters: number
}

/** Assumed speed of a tracker that stands, or was not seen moving, m/s. */
const USUAL_SPEED = 8
const SLOW_SPEED = 1.5
const ROADS_FACTOR = 1.3

type LatLng = { lat: number; lng: number }

/** By road if there is a road server, else along the great circle at the speed of the last minutes. */
export const arrivalAt = async (
  goal: LatLng,
  row: LatestPositionRow,
  { now, roads, name }: { now: number; roads: Roads | undefined; name: string },
  lately: () => Promise<readonly TrackPoint[] | undefined>,
): Promise<Arrival> => {
  const here = { lat: row.lat / 1e7, lng: row.lng / 1e7 }
  const { meters, seconds } = (await roads?.way(name, here, goal)) ?? asTheCrowFlies(goal, row, await lately())
  const at = Math.max(now, row.recordedAt + seconds * 1000)
  return { at: formatTime(Math.round(at)), distanceMeters: Math.round(meters) }
}

const asTheCrowFlies = ({ lat, lng }: LatLng, row: LatestPositionRow, points: readonly TrackPoint[] = []): Way => {
  const lately = speedAlong(points) ?? 0
  const speed = lately < SLOW_SPEED ? USUAL_SPEED : lately
  const meters = distanceMeters(row.lng, row.lat, toE7(lng), toE7(lat)) * ROADS_FACTOR
  return { meters, seconds: meters / speed }
}

/** Open visits of the dispatched route before a task; undefined for a task in no route. */
export const visitsBefore = async (
  tables: Pick<TableStore, 'get' | 'getMany'>,
  { _id, organizationId, routingResultId, assigneeIds, state }: TaskRow,
): Promise<number | undefined> => {
  if (routingResultId === undefined || isOver({ state })) return undefined
  const result = await tables.get<RoutingRow>(ROUTING_RESULTS, organizationId, routingResultId)
  const route = result?.routes.find(({ visits }) => visits.some(({ taskId }) => taskId === _id))
  // Reassigned since, it is no longer a stop of this route.
  if (route === undefined || (route.userId !== undefined && !assigneeIds.includes(route.userId))) return undefined
  const ids = route.visits
    .slice(
      0,
      route.visits.findIndex(({ taskId }) => taskId === _id),
    )
    .map(({ taskId }) => taskId)
  const before = ids.length === 0 ? [] : await tables.getMany<TaskRow>(TASKS, organizationId, ids)
  return before.filter((task) => task !== undefined && !isOver(task) && task.routingResultId === routingResultId).length
}
