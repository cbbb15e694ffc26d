import type { ImportError, ImportPlace, ImportRequested } from '../../features/imports/events.ts'
import { madeRouteId } from '../../features/imports/views.ts'
import { routingResult } from '../../features/routing/result.ts'
import { RoutingWriter } from '../../features/routing/routing-writer.ts'
import type { RouteValues, RoutingValues } from '../../features/routing/views.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { Failure } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { grouped } from '../../kernel/grouped.ts'
import { idFrom } from '../../kit/commands/ids.ts'
import type { JobRun } from '../../kit/jobs/attempt.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import type { WriteOrigin } from '../../kit/resource/writes.ts'
import { WouldWrite } from './dry-log.ts'
import { routesWritten } from './route-places.ts'

/** Each try refuses the rows that the one before named, 20 at most. */
const TRIES_MAX = 200

interface Writing {
  services: ResourceServices
  writer: RoutingWriter
  run: JobRun<ImportRequested>
  origin: WriteOrigin
}

/**
 * Writes the routing results in which rows have been given places: an existing one is changed, others are made whole,
 * so that each is announced once. A fault found now refuses the rows that it concerns. Repeating it changes nothing.
 */
export const writeRoutes = async (
  services: ResourceServices,
  caller: UserCaller,
  run: JobRun<ImportRequested>,
  groups: readonly (readonly ImportPlace[])[],
  now: number,
): Promise<ImportError[]> => {
  const { organizationId } = run.asked
  const metadata = { organizationId, actor: `import:${run.id}`, $correlationId: run.id, $causationId: run.id }
  const errors: ImportError[] = []
  for (const [index, group] of groups.entries()) {
    if (run.signal.aborted) break
    let drawn = 0
    const next = () => idFrom('import-route-event', run.id, index, drawn++)
    const origin = { organizationId, caller, now, ids: { next, isRepeat: run.attempt > 1 }, metadata }
    errors.push(...(await writeGroup({ services, writer: new RoutingWriter(services), run, origin }, group)))
  }
  return errors.sort((a, b) => a.row - b.row)
}

const writeGroup = async (writing: Writing, group: readonly ImportPlace[]): Promise<ImportError[]> => {
  const { services, run } = writing
  const [{ routingResultId }] = group
  const written = run.attempt > 1 ? await routesWritten(services.log, routingResultId, run.id) : undefined
  if (written !== undefined)
    return group
      .filter(({ taskId }) => !written.has(taskId))
      .map((place) => refusal(place, new Failure('conflict', { message: 'The task could not be given its place.' })))
  const errors: ImportError[] = []
  let left = group
  for (let tries = 1; left.length > 0; tries++) {
    const plan = await planOf(writing, left)
    try {
      await plan.write()
      break
    } catch (error) {
      if (error instanceof WouldWrite) break
      if (!(error instanceof Failure) || error.status >= 500) throw error
      if (error.code === 'stale_version' && tries < TRIES_MAX) continue
      const named = tries < TRIES_MAX ? concerned(left, plan.routes, error) : new Set<ImportPlace>()
      const refused = named.size > 0 ? named : new Set(left)
      errors.push(...[...refused].map((place) => refusal(place, error)))
      left = left.filter((place) => !refused.has(place))
    }
  }
  return errors
}

const refusal = ({ row, route }: ImportPlace, { code, message }: Failure): ImportError => ({
  row,
  column: null,
  code,
  message: `No place in ${route}: ${message}`.slice(0, 300),
})

interface Plan {
  routes: RouteValues[]
  write(): Promise<unknown>
}

const planOf = async ({ services, writer, run, origin }: Writing, group: readonly ImportPlace[]): Promise<Plan> => {
  const [{ routingResultId: id, route: name, hubId }] = group
  const known = new Set(group.flatMap(({ isNew, taskId }) => (isNew ? [taskId] : [])))
  if (id === madeRouteId(run.id, hubId, name)) {
    const routes = routesWith([], group)
    const body = { _id: id, name, hubId, source: 'import', routes } as unknown as JsonObject
    return { routes, write: () => writer.create(origin, body, known) }
  }
  const { state, version } = await routingResult.writer(services).load(id)
  const before = state.values as unknown as RoutingValues
  const routes = routesWith(before.routes, group)
  const placed = new Set(group.map(({ taskId }) => taskId))
  const unassigned = before.unassigned.filter(({ taskId }) => !placed.has(taskId))
  const body = { routes, unassigned } as unknown as JsonObject
  return {
    routes,
    write: () => writer.change(origin, { id, kind: 'amend', body, expectedVersion: version }, known),
  }
}

/**
 * Routes with these places: by sequence, those without one after the others, and existing visits in their order, the
 * first one counting as sequence 1. A changed route has no distance and no duration any more.
 */
const routesWith = (before: readonly RouteValues[], places: readonly ImportPlace[]): RouteValues[] => {
  const placed = new Set(places.map(({ taskId }) => taskId))
  const byVehicle = grouped(places, ({ vehicleId }) => vehicleId)
  const kept = before.flatMap((route) => {
    const left = route.visits.filter(({ taskId }) => !placed.has(taskId))
    const further = byVehicle.get(route.vehicleId) ?? []
    byVehicle.delete(route.vehicleId)
    if (left.length === route.visits.length && further.length === 0) return [route]
    const { distanceMeters: _distance, durationSeconds: _duration, ...rest } = route
    const visits = inSequence(left, further)
    return visits.length === 0 ? [] : [{ ...rest, visits }]
  })
  return [...kept, ...[...byVehicle].map(([vehicleId, further]) => ({ vehicleId, visits: inSequence([], further) }))]
}

const inSequence = (before: RouteValues['visits'], further: readonly ImportPlace[]): RouteValues['visits'] =>
  [
    ...further.map(({ taskId, sequence }) => ({ sequence: sequence ?? Number.POSITIVE_INFINITY, visit: { taskId } })),
    ...before.map((visit, i) => ({ sequence: i + 1, visit })),
  ]
    .sort((a, b) => (a.sequence === b.sequence ? 0 : a.sequence - b.sequence))
    .map(({ visit }) => visit)

/** The places that a failure names by a path into the routes, or by its task; none where it concerns the whole. */
const concerned = (
  group: readonly ImportPlace[],
  routes: readonly RouteValues[],
  { details }: Failure,
): ReadonlySet<ImportPlace> => {
  const named = new Set<ImportPlace>()
  const taskId = details.extra?.taskId
  for (const place of group) if (place.taskId === taskId) named.add(place)
  for (const { path } of details.errors ?? []) {
    const [, i, j] = /^\/routes\/(\d+)(?:\/visits\/(\d+))?/.exec(path) ?? []
    if (i === undefined) continue
    const route = routes.at(Number(i))
    const visit = j === undefined ? undefined : route?.visits.at(Number(j))
    for (const place of group)
      if (visit === undefined ? place.vehicleId === route?.vehicleId : place.taskId === visit.taskId) named.add(place)
  }
  return named
}
