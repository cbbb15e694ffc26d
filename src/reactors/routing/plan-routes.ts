import type { TravelTimes } from '../../engines/travel-times.ts'
import type { RoutingRequested } from '../../features/routing/events.ts'
import { withoutVehicles } from '../../features/routing/leaving.ts'
import { planInThread } from '../../features/routing/plan-thread.ts'
import { prepare, type Prepared, type TaskToPlan, type VehicleToPlan } from '../../features/routing/problem.ts'
import { RoutingWriter } from '../../features/routing/routing-writer.ts'
import { rowsOf, VEHICLES_TABLE } from '../../features/routing/check-plan.ts'
import { ROUTING, type RoutingJob, type RoutingValues } from '../../features/routing/views.ts'
import { TASKS } from '../../features/tasks/views.ts'
import { HUBS_TABLE, ORGANIZATIONS_TABLE } from '../../features/identity/views.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Failure } from '../../kernel/errors.ts'
import type { Row } from '../../kernel/table.ts'
import { idFrom } from '../../kit/commands/ids.ts'
import { loadState } from '../../kit/commands/load-state.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import type { JobRun, JobWork } from '../../kit/jobs/attempt.ts'
import { jobDecider } from '../../kit/jobs/life.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import type { WriteOrigin } from '../../kit/resource/writes.ts'
import type { Plan } from '../../planner/problem.ts'

export interface PlanServices extends ResourceServices {
  clock: Clock
  /** Left out: great circles. */
  travelTimes?: TravelTimes
}

/** The work of plannings: in a thread; a cancelled one keeps its best plan. */
export const planWork = (services: PlanServices): JobWork<RoutingRequested, RoutingJob> => {
  const writer = new RoutingWriter(services)
  return {
    kind: ROUTING,
    run: (run) => planOnce(services, writer, run),
    release: (id) => fail(services, writer, id),
  }
}

const planOnce = async (
  services: PlanServices,
  writer: RoutingWriter,
  run: JobRun<RoutingRequested>,
): Promise<{ processed: number; result?: RoutingJob['result'] }> => {
  const { id, asked } = run
  const before = await writer.load(asked.organizationId, id)
  if (before === undefined) throw new Failure('not_found', { message: 'The routing result is not there any more.' })
  if (before.state !== 'planning') return { processed: 100 }
  const ends = endsOf(services, run)
  try {
    return await planned(services, writer, run, before, ends)
  } catch (error) {
    const isLast = ROUTING.isFinal(error) || run.attempt >= ROUTING.attemptsMax
    if (ends.stop.aborted) await fail(services, writer, id, 'The planning was stopped before it had a first plan.')
    else if (isLast && !run.signal.aborted) await fail(services, writer, id, (error as Error).message)
    throw error
  }
}

const planned = async (
  services: PlanServices,
  writer: RoutingWriter,
  { id, asked, progress }: JobRun<RoutingRequested>,
  before: RoutingValues,
  { stop, end }: Ends,
): Promise<{ processed: number; result?: RoutingJob['result'] }> => {
  const prepared = await preparedFor(services, asked)
  const roads = await services.travelTimes?.table(prepared.places, AbortSignal.any([stop, end]))
  const { places, tasks, vehicles } = prepared
  const { seed, seconds } = asked
  // One that was stopped before it began makes only its first plan.
  const steps = before.isStopped === true ? 0 : asked.steps
  const plan = await planInThread(
    { places, tasks, vehicles, seed, seconds, ...(steps !== undefined && { steps }), ...(roads && { roads }) },
    {
      clock: services.clock,
      signal: end,
      stop,
      progress: (used) => void progress(Math.floor(used * 100)).catch(() => undefined),
    },
  )
  const made = plannedOf(plan, prepared, asked.startAt)
  const result = { ...made, ...withoutVehicles(made, await goneOf(services, asked)) }
  await writer.update(originOf(asked, id, services.clock.now()), id, ({ state }) =>
    state === 'planning' ? result : {},
  )
  const { routes, unassigned } = result
  return { processed: 100, result: { routes: routes.length, unassigned: unassigned.length, steps: plan.steps } }
}

/** Vehicles that were deleted while the routes were planned. */
const goneOf = async (
  { tables }: PlanServices,
  { organizationId, vehicleIds }: RoutingRequested,
): Promise<(vehicleId: string) => boolean> => {
  const rows = await rowsOf(tables, VEHICLES_TABLE, organizationId, vehicleIds)
  const gone = new Set(vehicleIds.filter((_, i) => rows[i] === undefined))
  return (vehicleId) => gone.has(vehicleId)
}

interface Ends {
  /** Requests the best plan so far. */
  stop: AbortSignal
  /** Ends the planning without a result. */
  end: AbortSignal
}

/** A cancelled job stops with its best plan; a deleted one, or one whose service stops, ends. */
const endsOf = ({ log }: PlanServices, { id, signal }: JobRun<RoutingRequested>): Ends => {
  const stop = new AbortController()
  const end = new AbortController()
  const tell = async (): Promise<void> => {
    const { row } = (await loadState(log, ROUTING.stream(id), jobDecider(ROUTING, id))).state
    if (row?.status === 'cancelled') stop.abort(new Error('stopped'))
    else end.abort(signal.reason)
  }
  const heard = (): void => void tell().catch((error: unknown) => end.abort(error))
  if (signal.aborted) heard()
  else signal.addEventListener('abort', heard, { once: true })
  return { stop: stop.signal, end: end.signal }
}

const preparedFor = async ({ tables, travelTimes }: PlanServices, asked: RoutingRequested): Promise<Prepared> => {
  const { organizationId, hubId, taskIds, vehicleIds, startAt, returnToHub } = asked
  const hub = await tables.get(HUBS_TABLE, organizationId, hubId)
  if (hub === undefined) throw new Failure('not_found', { message: 'The hub is not there any more.' })
  const organization = await tables.get(ORGANIZATIONS_TABLE, organizationId, organizationId)
  const { timeZone = 'UTC' } = (organization?.settings ?? {}) as { timeZone?: string }
  const isThere = (row: Row | undefined): row is Row => row !== undefined
  const tasks = (await rowsOf(tables, TASKS, organizationId, taskIds)).filter(isThere)
  const vehicles = (await rowsOf(tables, VEHICLES_TABLE, organizationId, vehicleIds)).filter(isThere)
  return prepare({
    hub: { lat: Number(hub.lat), lng: Number(hub.lng) },
    tasks: tasks as unknown as TaskToPlan[],
    vehicles: vehicles as unknown as VehicleToPlan[],
    startAt,
    timeZone,
    returnToHub,
    hasRoads: travelTimes !== undefined,
  })
}

const plannedOf = (
  plan: Plan,
  prepared: Prepared,
  startAt: number,
): Pick<RoutingValues, 'state' | 'routes' | 'unassigned'> => {
  const at = (seconds: number): string => formatTime(Math.round(startAt + seconds * 1000))
  const { taskIds, vehicleIds } = prepared
  return {
    state: 'planned',
    routes: plan.routes.map(({ vehicle, from, to, distance, visits }) => ({
      vehicleId: vehicleIds[vehicle],
      distanceMeters: Math.round(distance),
      durationSeconds: Math.round(to - from),
      visits: visits.map((visit) => ({
        taskId: taskIds[visit.task],
        arrivalAt: at(visit.from),
        departureAt: at(visit.to),
        distanceMeters: Math.round(visit.distance),
      })),
    })),
    unassigned: [
      ...plan.unassigned.map(({ task, reason }) => ({ taskId: taskIds[task], reason: reason as string })),
      ...prepared.unplaced.map((taskId) => ({ taskId, reason: 'noPlace' })),
    ],
  }
}

const originOf = (
  { organizationId }: Pick<RoutingRequested, 'organizationId'>,
  id: string,
  now: number,
): WriteOrigin => {
  let written = 0
  const ids = { next: () => idFrom('routing-plan', id, now, written++) }
  return { organizationId, now, ids, metadata: { organizationId, actor: `routing:${id}`, $correlationId: id } }
}

/** A result without a plan at its end has failed; its tasks are free again. */
const fail = async (
  { log, clock }: PlanServices,
  writer: RoutingWriter,
  id: string,
  message = 'The planning did not come to its end.',
): Promise<void> => {
  const { row } = (await loadState(log, ROUTING.stream(id), jobDecider(ROUTING, id))).state
  const organizationId = row?.organizationId
  if (organizationId === undefined || (await writer.load(organizationId, id))?.state !== 'planning') return
  const error = { code: 'failed', message: message.slice(0, 1_000) }
  await writer.update(originOf({ organizationId }, id, clock.now()), id, ({ state }) =>
    state === 'planning' ? { state: 'failed', error } : {},
  )
}
