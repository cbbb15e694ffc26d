import type { JsonObject, JsonSchema } from '../../kernel/json.ts'
import { bool, id, integer, list, number, objectSchema, optional, time } from '../../kernel/schema.ts'
import { idSchema } from '../../kit/http/list-query.ts'
import { answered, DATE_TIME, UUID } from '../../kit/http/page-members.ts'
import { TASKS_MAX } from './result.ts'

export const ROUTING_ID = idSchema('The id of the routing result.')

export const VEHICLES_MAX = 200
export const STEPS_MAX = 1_000_000
export const SECONDS_DEFAULT = 10
const SECONDS_MAX = 60

export const ROUTING_BODY: JsonSchema = {
  title: 'RoutingQuestion',
  ...objectSchema({
    hubId: id(),
    taskIds: list(id(), { max: TASKS_MAX, min: 1 }),
    vehicleIds: list(id(), { max: VEHICLES_MAX, min: 1 }),
    startAt: time(),
    returnToHub: optional(bool()),
    seconds: optional(number({ min: 0.1, max: SECONDS_MAX })),
    steps: optional(integer({ min: 1, max: STEPS_MAX })),
    seed: optional(integer({ min: 0, max: 2 ** 31 - 1 })),
  }),
}

export const ROUTING_EXAMPLE: JsonObject = {
  hubId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6c',
  taskIds: ['0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6e'],
  vehicleIds: ['0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6d'],
  startAt: '2026-11-20T07:00:00.000Z',
  seconds: 10,
}

export const JOB_SCHEMA: JsonSchema = answered(
  'Routing',
  {
    _id: UUID,
    organizationId: UUID,
    routingResultId: { ...UUID, description: 'The routing result that it fills; the same id.' },
    hubId: UUID,
    userId: { ...UUID, description: 'Who asked for it.' },
    status: { type: 'string', enum: ['queued', 'processing', 'completed', 'failed', 'cancelled'] },
    total: { type: 'integer', description: 'Always 100.' },
    processed: { type: 'integer', description: 'Per cent of its budget that are used.' },
    routes: { type: 'integer', description: 'How many routes the plan has; once it has ended.' },
    unassigned: { type: 'integer', description: 'How many tasks are in none.' },
    steps: { type: 'integer', description: 'Steps of the search.' },
    error: {
      ...answered(undefined, { code: { type: 'string' }, message: { type: 'string' } }),
      description: 'Why it failed.',
    },
    createdAt: DATE_TIME,
    updatedAt: DATE_TIME,
    version: { type: 'integer' },
  },
  ['routes', 'unassigned', 'steps', 'error'],
)

export const JOB_EXAMPLE: JsonObject = {
  _id: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a',
  organizationId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6b',
  routingResultId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a',
  hubId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6c',
  userId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6e',
  status: 'completed',
  total: 100,
  processed: 100,
  routes: 3,
  unassigned: 0,
  steps: 412_000,
  createdAt: '2026-11-20T06:00:00.000Z',
  updatedAt: '2026-11-20T06:00:11.000Z',
  version: 14,
}
