import type { EventLog } from '../../engines/event-log.ts'
import type { TableStore } from '../../engines/table-store.ts'
import { Failure } from '../../kernel/errors.ts'
import type { JsonObject, JsonSchema } from '../../kernel/json.ts'
import { answered, DATE_TIME, UUID } from '../../kit/http/page-members.ts'
import { formatTime, userOf } from '../../kit/http/request-context.ts'
import type { Reply, Route, RouteRequest } from '../../kit/http/route.ts'
import { originOf, versionOf, type WriteOrigin } from '../../kit/resource/writes.ts'
import { factsOf, type HeldSpan, heldSpans } from './held-spans.ts'
import type { Work } from './offline-work.ts'
import { placeOf } from './place.ts'
import { task } from './task.ts'
import { timeIn } from './task-values.ts'
import type { TaskWriter } from './task-writer.ts'
import { TASK_STATES, TASKS, type TaskRow } from './views.ts'

export interface LosersServices {
  log: Pick<EventLog, 'read'>
  tables: Pick<TableStore, 'get'>
  /** Period after the loss of a task in which it can be read, and earlier work is accepted. */
  offlineMaxMs: number
}

/** A task that a user no longer has. */
export type Lost = Required<HeldSpan> & { _id: string }

const ONE = '/task/{taskId}'
const MOVES = ['assign', 'move', 'start', 'finish', 'cancel', 'reopen'].map((type) => `POST ${ONE}/${type}`)
const CHANGES = [`PUT ${ONE}`, `PATCH ${ONE}`, ...MOVES]

type Serving = LosersServices & { writer: Pick<TaskWriter, 'late'> }

/** A route of one task that also answers former assignees, instead of 404, and says which late work does not count. */
export const servingLosers = (route: Route, services: Serving): Route => {
  const isRead = route.method === 'GET' && route.path === ONE
  if (!isRead && !CHANGES.includes(`${route.method} ${route.path}`)) return route
  return {
    ...route,
    answers: withTakenAway(route.answers, isStep(route)),
    handler: async (request) => {
      try {
        const reply = await route.handler(request)
        return isStep(route) ? withOvertaken(route, request, reply) : reply
      } catch (error) {
        const lost = await lostIn(error, services, originOf(request), request.params.taskId)
        return isRead ? { body: { data: shown(lost) } } : lateReply(services.writer, route, request, lost)
      }
    },
  }
}

/**
 * The loss of a task that is not found.
 * @throws the error if the task was never theirs, or was lost too long ago
 */
export const lostIn = async (
  error: unknown,
  services: LosersServices,
  origin: WriteOrigin,
  taskId: string,
): Promise<Lost> => {
  const isAbsent = error instanceof Failure && error.code === 'not_found'
  const lost = isAbsent ? await lostBy(services, origin, taskId.toLowerCase()) : undefined
  if (lost === undefined) throw error
  return lost
}

/** Answer to a user who lost a task, if their work on it does not count. */
export const takenAway = (lost: Lost): Failure => new Failure('taken_away', { extra: { data: shown(lost) } })

const lateReply = async (
  writer: Pick<TaskWriter, 'late'>,
  { method, path }: Route,
  request: RouteRequest,
  lost: Lost,
): Promise<Reply> => {
  const refusal = takenAway(lost)
  const body = (request.body ?? {}) as JsonObject
  const work = workOf(method === 'PATCH' ? 'fill' : path.slice(ONE.length + 1), body)
  if (work === undefined) throw refusal
  const version = work.type === 'fill' ? versionOf(request, body) : undefined
  const { row, wrote } = await writer.late(originOf(request), lost._id, work, refusal, version)
  const { state, finishedBy } = row as TaskRow
  const isOvertaken = work.type === 'start' || (work.type === 'finish' && finishedBy !== userOf(request).userId)
  return { body: { data: { ...shown(lost), state, ...(isOvertaken && { overtaken: true }) } }, wrote }
}

const isStep = ({ path }: Route): boolean => path === `${ONE}/start` || path === `${ONE}/finish`

/** A step that is only noted: the task was cancelled, or a colleague had started or finished it. */
const withOvertaken = ({ path }: Route, request: RouteRequest, reply: Reply): Reply => {
  const { userId, isService } = userOf(request)
  const { data } = reply.body as { data: TaskRow }
  const by = path.endsWith('/finish') ? data.finishedBy : data.startedBy
  const counts = by === userId && !(path.endsWith('/start') && data.state === 'cancelled')
  return counts || isService === true ? reply : { ...reply, body: { data: { ...data, overtaken: true } } }
}

/** Work possibly done before the task was lost; undefined for an action of the office. */
const workOf = (type: string, body: JsonObject): Work | undefined => {
  const at = timeIn(body)
  const time = at === undefined ? {} : { at }
  const components = (body.components ?? {}) as JsonObject
  if (type === 'start' || type === 'finish') return { type, ...time, ...placeOf(body), components }
  const others = Object.keys(task.declaration.fields).filter((name) => name !== 'components' && name in body)
  return type === 'fill' && others.length === 0 ? { type, ...time, components } : undefined
}

/** The loss of a task that the caller no longer has. */
const lostBy = async (
  { log, tables, offlineMaxMs }: LosersServices,
  { organizationId, caller, now }: WriteOrigin,
  _id: string,
): Promise<Lost | undefined> => {
  if (caller === undefined) return undefined
  const { userId, hubIds } = caller
  if ((await tables.get(TASKS, organizationId, _id)) === undefined) return undefined
  const spans = await heldSpans(log, await factsOf(log, _id), { userId, hasAllHubs: hubIds === 'all' })
  const last = spans.at(-1)
  if (last?.ended === undefined || last.toMs < now - offlineMaxMs) return undefined
  return { ...last, ended: last.ended, _id }
}

const shown = ({ _id, toMs, ended: { title, state, by } }: Lost) => ({
  _id,
  title,
  state,
  takenAway: { at: formatTime(toMs), by },
})

const OVERTAKEN: JsonSchema = {
  const: true,
  description: 'Noted in the history only: a later change of the office stands, or what somebody else did.',
}

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
    overtaken: OVERTAKEN,
  },
  ['overtaken'],
)

const withTakenAway = (answers: Route['answers'], isStep: boolean): Route['answers'] => {
  const { 200: known, ...others } = answers
  const { properties, ...envelope } = known.schema as { properties: { data: JsonSchema } }
  const own = isStep
    ? { allOf: [properties.data, answered(undefined, { overtaken: OVERTAKEN }, ['overtaken'])] }
    : properties.data
  const schema = { ...envelope, properties: { ...properties, data: { anyOf: [own, TAKEN_AWAY] } } }
  return { ...others, 200: { ...known, schema } }
}
