import type { JsonObject } from '../../kernel/json.ts'
import {
  anyObject,
  bool,
  type Field,
  id,
  list,
  newName,
  number,
  object,
  oneOf,
  optional,
  reference,
  text,
  time,
  withDefault,
} from '../../kernel/schema.ts'
import { defineResource } from '../../kit/resource/resource.ts'
import { heldTaskIds, ROUTING_RESULTS, ROUTING_STATES, type RouteValues, type RoutingValues } from './views.ts'

export const ROUTES_MAX = 500
export const TASKS_MAX = 2_000

const EXAMPLE_ID = '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6c'
const nonNegative = { min: 0, max: 1e12 }

const visit = object({
  taskId: id(),
  arrivalAt: optional(time()),
  departureAt: optional(time()),
  actualArrivalAt: optional(time()),
  actualDepartureAt: optional(time()),
  distanceMeters: optional(number(nonNegative)),
})

const route = object({
  vehicleId: id(),
  userId: optional(id()),
  distanceMeters: optional(number(nonNegative)),
  durationSeconds: optional(number(nonNegative)),
  visits: list(visit, { max: TASKS_MAX }),
})

const routes: Field = { ...list(route, { max: ROUTES_MAX }), normalize: keptRoutes }

const unassigned: Field = {
  ...list(object({ taskId: id(), reason: text({ max: 200 }) }), { max: TASKS_MAX }),
  normalize: (value) => (value as JsonObject[]).map((one) => ({ ...one, taskId: String(one.taskId).toLowerCase() })),
}

/** A plan of routes. Its writes are in routing-writer.ts. */
export const routingResult = defineResource({
  noun: 'routingResult',
  plural: ROUTING_RESULTS,
  tag: 'Routing',
  paths: { one: '/routing-result', many: '/routing-results' },
  fields: {
    name: optional(newName({ max: 200 })),
    hubId: reference('hubs'),
    source: withDefault(oneOf('planner', 'import', 'external'), 'external'),
    routes: withDefault(routes, []),
    unassigned: withDefault(unassigned, []),
  },
  fixed: ['source'],
  readOnly: {
    state: withDefault(oneOf(...ROUTING_STATES), 'planned'),
    error: optional(object({ code: text({ max: 50 }), message: text({ max: 1_000 }) })),
    dispatchedAt: optional(time()),
    completedAt: optional(time()),
  },
  guarded: {
    state:
      'is changed by the operations dispatch and stop, such as POST /routing-result/{id}/dispatch, and by the last visit done',
  },
  internal: {
    taskIds: { schema: { type: 'array', items: { type: 'string' } } },
    isStopped: optional(bool()),
    asked: optional(anyObject()),
  },
  permissions: { view: 'view/routing', edit: 'edit/routing' },
  hubField: 'hubId',
  deletion: { whenReferenced: 'takeOut' },
  table: { indexes: { equality: ['state', 'source', 'name', 'taskIds'], range: ['name'], text: ['name'] } },
  list: {
    filters: {
      taskId: {
        schema: { type: 'string', format: 'uuid', description: 'Results that name this task.' },
        several: true,
        where: (value) => ({ taskIds: (value as string[]).map((one) => one.toLowerCase()) }),
      },
    },
  },
  unique: {
    // A task is in one result at most until its work is done.
    values: (values) =>
      heldTaskIds(values as unknown as RoutingValues).map((taskId) => ({
        key: 'task',
        value: taskId,
        field: 'routes',
      })),
  },
  body: { bytesMax: 1024 * 1024 },
  example: {
    name: 'Monday',
    hubId: EXAMPLE_ID,
    routes: [
      {
        vehicleId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6d',
        distanceMeters: 12_400,
        durationSeconds: 5_400,
        visits: [
          {
            taskId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6e',
            arrivalAt: '2026-11-20T08:20:00.000Z',
            departureAt: '2026-11-20T08:30:00.000Z',
            distanceMeters: 6_200,
          },
        ],
      },
    ],
    unassigned: [{ taskId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6f', reason: 'noRoom' }],
  },
})

/** All tasks of the routes, and the unassigned ones. */
export const taskIdsOf = (
  values: Pick<{ routes: RouteValues[]; unassigned: { taskId: string }[] }, 'routes' | 'unassigned'>,
): string[] => [
  ...values.routes.flatMap(({ visits }) => visits.map(({ taskId }) => taskId)),
  ...values.unassigned.map(({ taskId }) => taskId),
]

/** Drops values derived from the history, so that an answer can be written back. */
function keptRoutes(value: unknown): JsonObject[] {
  return (value as RouteValues[]).map(({ visits, vehicleId, userId, ...own }) => ({
    ...own,
    vehicleId: vehicleId.toLowerCase(),
    ...(userId !== undefined && { userId: userId.toLowerCase() }),
    visits: visits.map(({ taskId, arrivalAt, departureAt, distanceMeters }) => ({
      taskId: taskId.toLowerCase(),
      ...(arrivalAt !== undefined && { arrivalAt: new Date(arrivalAt).toISOString() }),
      ...(departureAt !== undefined && { departureAt: new Date(departureAt).toISOString() }),
      ...(distanceMeters !== undefined && { distanceMeters }),
    })),
  }))
}
