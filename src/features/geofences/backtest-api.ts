import { userOf } from '../../kit/request-context.ts'
import { envelope } from '../../kit/resource-routes.ts'
import { type Route, route, type RouteRequest } from '../../kit/route.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { invalid } from '../../kernel/errors.ts'
import type { JsonSchema } from '../../kernel/json.ts'
import type { Row } from '../../kernel/table.ts'
import type { GroupRules } from './events.ts'

export interface BacktestBody extends GroupRules {
  from: string | number
  to: string | number
  trackerIds?: string[]
}

/** Which transitions a geofence would have made over history. */
export interface BacktestQuestion {
  caller: UserCaller
  geofenceId: string
  geofenceGroupId: string
  /** ms since the epoch, inclusive. */
  from: number
  to: number
  trackerIds?: readonly string[]
  /** Left out: those of the geofence's group. */
  rules: GroupRules
  signal: AbortSignal
}

/** Answers the transitions, oldest first, as `GET /geofence-events` shows them. @throws Failure too_large, overloaded. */
export type RunBacktest = (question: BacktestQuestion) => Promise<object[]>

const TIME: JsonSchema = { type: ['string', 'integer'], format: 'date-time', description: 'RFC 3339, or ms since the epoch.' }

const BODY: JsonSchema = {
  type: 'object',
  properties: {
    from: TIME,
    to: TIME,
    trackerIds: { type: 'array', items: { type: 'string', format: 'uuid' }, minItems: 1, maxItems: 10_000 },
    maxAccuracy: { type: 'number', minimum: 0, maximum: 1_000_000, description: 'Metres; left out, that of the group.' },
    debounce: {
      type: 'object',
      properties: { fixes: { type: 'integer', minimum: 1, maximum: 1_000 }, seconds: { type: 'number', minimum: 0, maximum: 86_400 } },
      additionalProperties: false,
    },
  },
  required: ['from', 'to'],
  additionalProperties: false,
}

export const backtestRoute = (
  runBacktest: RunBacktest,
  find: (request: RouteRequest<never, BacktestBody>, geofenceId: string) => Promise<Row>,
): Route =>
  route<never, BacktestBody>({
    method: 'POST',
    path: '/geofence/{geofenceId}/backtest',
    operationId: 'backtestGeofence',
    summary: 'Ask which transitions a geofence would have made over history',
    tag: 'Geofences',
    access: { permission: 'view/geofence' },
    params: { geofenceId: { type: 'string', minLength: 1, maxLength: 100 } },
    body: BODY,
    bodyExample: { from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z', debounce: { fixes: 3 } },
    answers: { 200: { description: 'The transitions that it would have made; none are made.', schema: envelope({ data: { type: 'array', items: { type: 'object' } } }), example: { status: true, data: [] } } },
    handler: async (request) => {
      const { from, to, trackerIds, maxAccuracy, debounce } = request.body
      const question = { from: timeOf(from), to: timeOf(to), trackerIds, rules: { maxAccuracy, debounce } }
      if (question.from > question.to) throw invalid('/to', 'must not be before from')
      const row = await find(request, request.params.geofenceId)
      const { signal } = request
      const caller = userOf(request)
      return { body: { data: await runBacktest({ ...question, caller, geofenceId: row._id as string, geofenceGroupId: row.geofenceGroupId as string, signal }) } }
    },
  })

const timeOf = (value: string | number): number => (typeof value === 'number' ? value : Date.parse(value))
