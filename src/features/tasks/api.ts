import type { JsonObject } from '../../kernel/json.ts'
import { anyObject, id, latitude, lines, list, longitude, optional, time, type Field } from '../../kernel/schema.ts'
import type { Uploads } from '../../kit/files/uploads.ts'
import type { Route } from '../../kit/http/route.ts'
import type { ActionContext, ResourceAction, ResourceServices } from '../../kit/resource/declaration.ts'
import type { Written } from '../../kit/resource/writes.ts'
import { keptIds } from './assignees.ts'
import { taskBulkRoutes } from './bulk-api.ts'
import { taskConditions } from './conditions.ts'
import { historyRoute } from './history.ts'
import { servingLosers } from './lost-tasks.ts'
import type { Move } from './moves.ts'
import { placeOf } from './place.ts'
import { task } from './task.ts'
import { summaryRoute } from './summary.ts'
import { taskUploadRoute } from './task-files.ts'
import { timeIn } from './task-values.ts'
import { TaskWriter } from './task-writer.ts'
import type { TaskRow } from './views.ts'

export const taskRoutes = (
  services: ResourceServices & { uploads: Uploads; config: { offlineMaxMs: number } },
): Route[] => {
  const { offlineMaxMs } = services.config
  const writer = new TaskWriter(services, offlineMaxMs)
  const routes = [
    ...task.routes(services, { writes: writer, conditions: taskConditions(services), actions: moves(writer) }),
    ...taskBulkRoutes(services, writer),
    historyRoute(services),
    summaryRoute(services),
    taskUploadRoute({ ...services, offlineMaxMs }, writer, services.uploads),
  ]
  return routes.map((one) => servingLosers(one, { ...services, offlineMaxMs, writer }))
}

const orNull = ({ schema, ...field }: Field): Field => ({ ...field, schema: { ...schema, type: ['string', 'null'] } })

const AT = { at: optional(time()) }
const PLACE = { lat: optional(latitude()), lng: optional(longitude()) }

const moves = (writer: TaskWriter): ResourceAction[] => {
  const action = (...parts: MoveParts): ResourceAction => actionOf(writer, ...parts)
  return [...handings(action), ...steps(action)]
}

type ActionMaker = (...parts: MoveParts) => ResourceAction

/** Actions that assign or relocate a task. */
const handings = (action: ActionMaker): ResourceAction[] => {
  return [
    action(
      'assign',
      'Assign a task to users and a team, or to nobody',
      { ...AT, assigneeIds: optional(list(id(), { max: 50, unique: true })), teamId: optional(orNull(id())) },
      { assigneeIds: ['0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6c'] },
      ({ at, assigneeIds, teamId }) => ({
        type: 'assign',
        ...(at !== undefined && timeOf({ at })),
        ...(assigneeIds !== undefined && { assigneeIds: keptIds(assigneeIds as string[]) }),
        ...(teamId !== undefined && { teamId: typeof teamId === 'string' ? teamId.toLowerCase() : null }),
      }),
    ),
    action(
      'move',
      'Move a task to another hub',
      { hubId: id() },
      { hubId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6c' },
      ({ hubId }) => ({ type: 'move', hubId: String(hubId).toLowerCase() }),
    ),
  ]
}

/** Actions that change a task's state. */
const steps = (action: ActionMaker): ResourceAction[] => {
  return [
    action('start', 'Start a task', { ...AT, ...PLACE }, { lat: 52.23, lng: 20.98 }, (body) => ({
      type: 'start',
      ...timeOf(body),
      ...placeOf(body),
    })),
    action(
      'finish',
      'Finish a task; its required components must have values',
      {
        ...AT,
        ...PLACE,
        components: optional({
          ...anyObject(),
          schema: { type: 'object', additionalProperties: true, maxProperties: 200 },
        }),
      },
      { lat: 52.23, lng: 20.98, components: { receiver: 'Ada' } },
      (body) => ({ type: 'finish', ...timeOf(body), ...placeOf(body) }),
    ),
    action(
      'cancel',
      'Cancel a task',
      { ...AT, reason: optional(lines({ max: 500 })) },
      { reason: 'Nobody there' },
      (body) => ({
        type: 'cancel',
        ...timeOf(body),
        ...reasonOf(body),
      }),
    ),
    action(
      'reopen',
      'Have a task that is over done again',
      { reason: optional(lines({ max: 500 })) },
      { reason: 'The photo is of another door' },
      (body) => ({ type: 'reopen', ...reasonOf(body) }),
    ),
  ]
}

type MoveParts = [
  type: Move['type'],
  summary: string,
  body: ResourceAction['body'],
  bodyExample: JsonObject,
  moveOf: (body: JsonObject) => Move,
]

const actionOf = (writer: TaskWriter, ...[type, summary, body, bodyExample, moveOf]: MoveParts): ResourceAction => ({
  path: type,
  operationId: `${type}Task`,
  summary,
  body,
  bodyExample,
  run: ({ request, body: sent, origin, row }: ActionContext): Promise<Written> =>
    writer.move(
      origin,
      (row as TaskRow)._id,
      (row as TaskRow).createdAt,
      moveOf({ ...request.body, ...sent }),
      (sent.components ?? {}) as JsonObject,
    ),
})

const timeOf = (body: JsonObject): { at?: number } => {
  const at = timeIn(body)
  return at === undefined ? {} : { at }
}

const reasonOf = ({ reason }: JsonObject): { reason?: string } =>
  reason === undefined ? {} : { reason: String(reason) }
