import { assertNoFaults, Failure, invalid } from '../../kernel/errors.ts'
import type { Clock } from '../../kernel/clock.ts'
import { askedBefore, endJob, inPlace, type JobPlaces, requestJob } from '../../kit/jobs/asking.ts'
import { jobDecider } from '../../kit/jobs/life.ts'
import { handleCommand } from '../../kit/commands/handle-command.ts'
import { loadState } from '../../kit/commands/load-state.ts'
import { allWrote } from '../../kit/commands/wrote.ts'
import { formatTime, userOf } from '../../kit/http/request-context.ts'
import { type Reply, type Route, route } from '../../kit/http/route.ts'
import { rowAnswer, rowReply } from '../../kit/resource/answers.ts'
import type {
  ActionContext,
  ResourceAction,
  ResourceDeclaration,
  ResourceServices,
} from '../../kit/resource/declaration.ts'
import { assertExists, assertHubs } from '../../kit/resource/references.ts'
import { findRow } from '../../kit/resource/show.ts'
import { asService, originOf, type WriteOrigin, type Written } from '../../kit/resource/writes.ts'
import { taskFaults, vehiclesFaults } from './check-plan.ts'
import { dispatchOf } from './dispatch.ts'
import { DISPATCH_ROUTES } from './processes.ts'
import { listShape } from '../../kit/resource/rows.ts'
import { shownRow } from '../../kit/http/list-query.ts'
import type { Row } from '../../kernel/table.ts'
import { routingResult } from './result.ts'
import { RoutingWriter } from './routing-writer.ts'
import { ROUTING_BODY, ROUTING_EXAMPLE, ROUTING_ID, SECONDS_DEFAULT } from './schemas.ts'
import { ROUTING } from './views.ts'

export interface RoutingServices extends ResourceServices {
  clock: Clock
  places: JobPlaces
  /** Adds arrivals and departures of vehicles from the location history. */
  present?: ResourceDeclaration['present']
}

interface RoutingBody {
  hubId: string
  taskIds: string[]
  vehicleIds: string[]
  startAt: string | number
  returnToHub?: boolean
  seconds?: number
  steps?: number
  seed?: number
}

export const routingRoutes = (services: RoutingServices): Route[] => {
  const writer = new RoutingWriter(services)
  const { present } = services
  const actions = [stopAction(services, writer), dispatchAction(services, writer)]
  return [
    askRoute(services, writer),
    endRoute(services, writer),
    ...routingResult.routes(services, { writes: withoutJob(services, writer), actions, present }),
  ]
}

const askRoute = (services: RoutingServices, writer: RoutingWriter): Route =>
  route<never, RoutingBody>({
    method: 'POST',
    path: '/routing',
    operationId: 'planRoutes',
    summary: 'Plan routes for tasks and vehicles of a hub',
    description:
      'A job: the live channel `job` tells how it goes, and the result is `planned` at its end. Bounded by `seconds`, or else by `steps`, never both: the same tasks, vehicles, steps and seed make the same plan. Twenty of an organization may wait; more are 429.',
    tag: 'Routing',
    access: { permission: 'edit/routing' },
    body: ROUTING_BODY,
    bodyExample: ROUTING_EXAMPLE,
    answers: { 202: { ...rowAnswer(routingResult.declaration), description: 'The result that is being planned.' } },
    handler: async (request) => {
      const origin = originOf(request)
      const id = request.ids.next()
      const before = request.ids.isRepeat === true ? await askedBefore(services.log, ROUTING, id) : undefined
      if (before === undefined) await assertQuestion(services, origin, request.body)
      const { body } = request
      const taskIds = [...new Set(body.taskIds.map(lower))]
      const asked = {
        organizationId: origin.organizationId,
        hubId: lower(body.hubId),
        userId: userOf(request).userId,
        taskIds,
        vehicleIds: [...new Set(body.vehicleIds.map(lower))],
        startAt: typeof body.startAt === 'number' ? body.startAt : Date.parse(body.startAt),
        returnToHub: body.returnToHub ?? true,
        seconds: body.seconds ?? SECONDS_DEFAULT,
        ...(body.steps !== undefined && { steps: body.steps }),
        seed: body.seed ?? 1,
        at: request.now,
      }
      // First of all the place: a job is requested for each result that is made.
      return inPlace(services.places, asked.organizationId, id, async () => {
        const { row, wrote } = await writer.begin(origin, id, asked)
        try {
          const job = await requestJob(services.log, ROUTING, request, id, asked)
          return { ...accepted(row), wrote: allWrote(wrote, job.wrote) }
        } catch (error) {
          // Its tasks are free again; a repeated request starts over.
          await writer.delete(asService(origin), { id })
          throw error
        }
      })
    },
  })

const shown = shownRow(listShape(routingResult.declaration), undefined, { permissionDetails: [] })

const accepted = (row: Row): Reply => rowReply(shown(row), row, undefined, 202)

const assertQuestion = async (services: ResourceServices, origin: WriteOrigin, body: RoutingBody): Promise<void> => {
  const { organizationId, caller } = origin
  const hubId = lower(body.hubId)
  await assertExists(services.tables, 'hubs', organizationId, hubId, '/hubId')
  if (caller !== undefined) assertHubs(caller, { hubId }, 'hubId')
  const tasks = body.taskIds.map((taskId, i) => ({ taskId: lower(taskId), path: `/taskIds/${i}` }))
  const vehicles = body.vehicleIds.map((vehicleId, i) => ({ vehicleId: lower(vehicleId), path: `/vehicleIds/${i}` }))
  const scope = { organizationId, hubId, ...(caller !== undefined && { caller }) }
  if (body.seconds !== undefined && body.steps !== undefined)
    throw invalid('/steps', 'must not be sent together with seconds')
  assertNoFaults(
    [
      ...(await taskFaults(services.tables, scope, tasks)),
      ...(await vehiclesFaults(services.tables, scope, vehicles)),
    ].slice(0, 50),
  )
}

const lower = (id: string): string => id.toLowerCase()

type Asking = Parameters<typeof originOf>[0] & Parameters<typeof endJob>[2]

const STOP_WAIT_MS = 5_000
const STOP_LOOK_MS = 50

/** Ends the planning of a result; resolves with it once it has its plan, or after five seconds. */
const stopPlanning = async (
  { log, clock }: RoutingServices,
  writer: RoutingWriter,
  request: Asking,
  id: string,
): Promise<Written> => {
  const origin = asService(originOf(request))
  const { organizationId } = origin
  const stopped = await writer.update(origin, id, ({ state, source }) => {
    if (source !== 'planner') throw new Failure('conflict', { message: 'The routing result was not planned here.' })
    return state === 'planning' ? { isStopped: true } : {}
  })
  // A waiting job makes only its first plan; a running one keeps its best.
  const { row: job } = (await loadState(log, ROUTING.stream(id), jobDecider(ROUTING, id))).state
  if (job?.status === 'processing') await endJob(log, ROUTING, request, { _id: id, organizationId }, 'cancel')
  for (const until = clock.monotonic() + STOP_WAIT_MS; clock.monotonic() < until; ) {
    if ((await writer.load(organizationId, id))?.state !== 'planning') break
    await new Promise<void>((resolve) => void clock.after(STOP_LOOK_MS, resolve))
  }
  const { row, wrote } = await writer.now(id)
  return { row, wrote: allWrote(stopped.wrote, wrote) }
}

const stopAction = (services: RoutingServices, writer: RoutingWriter): ResourceAction => ({
  path: 'stop',
  operationId: 'stopRouting',
  summary: 'End the planning of a routing result, and keep the best plan so far',
  run: ({ request, id }) => stopPlanning(services, writer, request, id),
})

const endRoute = (services: RoutingServices, writer: RoutingWriter): Route =>
  route({
    method: 'DELETE',
    path: '/routing-result/{routingResultId}/planning',
    operationId: 'endRouting',
    summary: 'End the planning of a routing result, as stopping it does',
    tag: 'Routing',
    access: { permission: 'edit/routing' },
    params: { routingResultId: ROUTING_ID },
    answers: { 200: { description: 'It has ended; the routing result keeps the best plan.' } },
    handler: async (request) => {
      const { routingResultId: id } = request.params
      await findRow(routingResult.declaration, services, request, id)
      return { wrote: (await stopPlanning(services, writer, request, id)).wrote }
    },
  })

const dispatchAction = (services: RoutingServices, writer: RoutingWriter): ResourceAction => ({
  path: 'dispatch',
  operationId: 'dispatchRoutes',
  summary: 'Assign the tasks of a routing result to the users who have its vehicles now',
  permission: 'edit/routing',
  run: async ({ origin, id }: ActionContext): Promise<Written> => {
    if (!origin.caller.permissions.has('dispatch/task'))
      throw new Failure('forbidden', {
        message: 'Dispatching routes assigns tasks, which needs the permission dispatch/task.',
      })
    const { organizationId } = origin
    const service = asService(origin)
    const wrote = await services.processes.run(DISPATCH_ROUTES, id, service, async () => {
      const values = await writer.load(organizationId, id)
      if (values === undefined) throw new Failure('not_found')
      // Dispatched by this same request, whose answer was lost.
      if (values.dispatchedAt === formatTime(origin.now)) return undefined
      return dispatchOf(services, organizationId, id, values)
    })
    const now = await writer.now(id)
    // Already dispatched: the answer waits until tables show it.
    return wrote === undefined ? now : { row: now.row, wrote }
  },
})

/** A deletion also ends the planning. */
const withoutJob = (services: RoutingServices, writer: RoutingWriter) => ({
  create: writer.create.bind(writer),
  change: writer.change.bind(writer),
  delete: async (origin: WriteOrigin, deletion: { id: string }): Promise<Written> => {
    const written = await writer.delete(origin, deletion)
    const { row: job } = (await loadState(services.log, ROUTING.stream(deletion.id), jobDecider(ROUTING, deletion.id)))
      .state
    if (job === undefined || job.status === 'completed') return written
    const command = { kind: 'delete', organizationId: origin.organizationId, at: origin.now } as const
    await handleCommand(services.log, ROUTING.stream(deletion.id), jobDecider(ROUTING, deletion.id), command, origin)
    return written
  },
})
