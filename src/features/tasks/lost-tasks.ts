import type { EventLog } from '../../engines/event-log.ts'
import type { TableStore } from '../../engines/table-store.ts'
import { Failure } from '../../kernel/errors.ts'
import type { JsonObject, JsonSchema } from '../../kernel/json.ts'
import { answered, DATE_TIME, UUID } from '../../kit/http/page-members.ts'
import { formatTime, userOf } from '../../kit/http/request-context.ts'
import type { Reply, Route, RouteRequest } from '../../kit/http/route.ts'
import { originOf, type WriteOrigin, type Written } from '../../kit/resource/writes.ts'
import { factsOf, type HeldSpan, heldSpans } from './held-spans.ts'
import { TASK_STATES, TASKS, type TaskRow } from './views.ts'

/** Takes a start or finish of who lost the task. @throws the refusal for what does not count */
export type LateWork = (
  origin: WriteOrigin,
  id: string,
  type: 'start' | 'finish',
  body: JsonObject,
  refusal: Error,
) => Promise<Written>

export interface LosersServices {
  log: Pick<EventLog, 'read'>
  tables: Pick<TableStore, 'get'>
  /** How long after it a task that was taken away is read, and what was done before is taken. */
  offlineMaxMs: number
  late: LateWork
}

type Lost = Required<HeldSpan> & { _id: string }

const ONE = '/task/{taskId}'
const MOVES = ['assign', 'move', 'start', 'finish', 'cancel', 'reopen'].map((type) => `${ONE}/${type}`)

/** A route of one task that also answers those from whom the task was taken, in place of 404. */
export const servingLosers = (route: Route, services: LosersServices): Route => {
  const isRead = route.method === 'GET' && route.path === ONE
  const isChange = route.method === 'PATCH' && route.path === ONE
  if (!isRead && !isChange && !MOVES.includes(route.path)) return route
  return {
    ...route,
    answers: isChange ? route.answers : withTakenAway(route.answers),
    handler: async (request) => {
      try {
        return await route.handler(request)
      } catch (error) {
        const lost =
          error instanceof Failure && error.code === 'not_found' ? await lostBy(services, request) : undefined
        if (lost === undefined) throw error
        return isRead ? { body: { data: shown(lost) } } : lateReply(services, route, request, lost)
      }
    },
  }
}

const lateReply = async (
  { late }: LosersServices,
  { path }: Route,
  request: RouteRequest,
  lost: Lost,
): Promise<Reply> => {
  const refusal = new Failure('taken_away', { extra: { data: shown(lost) } })
  const type = path.slice(ONE.length + 1)
  if (type !== 'start' && type !== 'finish') throw refusal
  const body = (request.body ?? {}) as JsonObject
  const { row, wrote } = await late(originOf(request), lost._id, type, body, refusal)
  const { state, finishedBy } = row as TaskRow
  const isOvertaken = type === 'start' || finishedBy !== userOf(request).userId
  return { body: { data: { ...shown(lost), state, ...(isOvertaken && { overtaken: true }) } }, wrote }
}

/** The loss of a task that the caller has no more. */
const lostBy = async (
  { log, tables, offlineMaxMs }: LosersServices,
  request: RouteRequest,
): Promise<Lost | undefined> => {
  const { organizationId, userId, hubIds } = userOf(request)
  const _id = request.params.taskId.toLowerCase()
  if ((await tables.get(TASKS, organizationId, _id)) === undefined) return undefined
  const spans = await heldSpans(log, await factsOf(log, _id), { userId, hasAllHubs: hubIds === 'all' })
  const last = spans.at(-1)
  if (last?.ended === undefined || last.toMs < request.now - offlineMaxMs) return undefined
  return { ...last, ended: last.ended, _id }
}

const shown = ({ _id, toMs, ended: { title, state, by } }: Lost) => ({
  _id,
  title,
  state,
  takenAway: { at: formatTime(toMs), by },
})

const TAKEN_AWAY: JsonSchema = answered(
  'TaskTakenAway',
  {
    _id: UUID,
    title: { type: 'string' },
    state: { type: 'string', enum: [...TASK_STATES] },
    takenAway: answered(undefined, {
      at: DATE_TIME,
      by: answered(undefined, { type: { type: 'string' }, id: { type: 'string' } }),
    }),
    overtaken: {
      const: true,
      description: 'The change that took it away stays in force, or somebody else finished it.',
    },
  },
  ['overtaken'],
)

const withTakenAway = (answers: Route['answers']): Route['answers'] => {
  const { 200: known, ...others } = answers
  const { properties, ...envelope } = known.schema as { properties: { data: JsonSchema } }
  const schema = { ...envelope, properties: { ...properties, data: { anyOf: [properties.data, TAKEN_AWAY] } } }
  return { ...others, 200: { ...known, schema } }
}
