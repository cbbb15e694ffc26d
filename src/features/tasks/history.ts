import { isDeepStrictEqual } from 'node:util'
import type { Json, JsonObject, JsonSchema } from '../../kernel/json.ts'
import { decodeJson, type RecordedEvent } from '../../kernel/event.ts'
import type { Row } from '../../kernel/table.ts'
import type { ResourceData } from '../../kit/commands/declared-event.ts'
import { filesOf } from '../../kit/files/attached-file.ts'
import { chooseFields, FIELDS_QUERY, idSchema } from '../../kit/http/list-query.ts'
import { answered, envelope } from '../../kit/http/page-members.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import { route, type Route } from '../../kit/http/route.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import { findRow } from '../../kit/resource/show.ts'
import { shownFile } from '../files/views.ts'
import { task } from './task.ts'
import { type Actor, TASK, type TaskValues } from './views.ts'

const TYPES = ['created', 'assigned', 'moved', 'started', 'finished', 'cancelled', 'changed'] as const
type EntryType = (typeof TYPES)[number]

interface Entry extends Row {
  at: string
  loggedAt: string
  type: EntryType
  actor: Actor
  changes: { [field: string]: { from?: Json; to?: Json } }
}

const PAGE_EVENTS = 200
/** Nobody writes a task so often; what is older is left out. */
const EVENTS_MAX = 2_000

const TIME: JsonSchema = { type: 'string', format: 'date-time' }

const ENTRY = answered('TaskHistoryEntry', {
  at: { ...TIME, description: 'When it happened, at the device.' },
  loggedAt: { ...TIME, description: 'When the service heard of it.' },
  type: { type: 'string', enum: [...TYPES] },
  actor: answered('TaskActor', { type: { type: 'string' }, id: { type: 'string' } }),
  changes: {
    type: 'object',
    additionalProperties: { type: 'object', properties: { from: {}, to: {} }, additionalProperties: false },
  },
})

/** What happened to a task, oldest first. */
export const historyRoute = (services: ResourceServices): Route =>
  route<{ fields?: string }>({
    method: 'GET',
    path: '/task/{taskId}/history',
    operationId: 'readTaskHistory',
    summary: 'Read what happened to a task',
    tag: 'Tasks',
    access: { permission: 'view/task' },
    params: { taskId: idSchema('The id of the task.') },
    query: FIELDS_QUERY,
    answers: {
      200: {
        description: 'Its history, oldest first.',
        schema: envelope({ data: { type: 'array', items: ENTRY } }),
        example: {
          status: true,
          data: [
            {
              at: '2026-01-01T08:00:00.000Z',
              loggedAt: '2026-01-01T08:00:01.000Z',
              type: 'started',
              actor: { type: 'user', id: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a' },
              changes: { state: { from: 'assigned', to: 'inProgress' } },
            },
          ],
        },
      },
    },
    handler: async (request) => {
      const row = await findRow(task.declaration, services, request, request.params.taskId)
      const show = chooseFields(Object.keys(ENTRY.properties as object), request.query.fields, 'at')
      const entries: readonly Row[] = await historyOf(services, row._id as string)
      return { body: { data: entries.map(show) } }
    },
  })

const historyOf = async ({ log }: Pick<ResourceServices, 'log'>, taskId: string): Promise<Entry[]> => {
  const entries: Entry[] = []
  let before: JsonObject = {}
  for (let revision = 0; revision < EVENTS_MAX; revision += PAGE_EVENTS) {
    const events = await log.read(`task-${taskId}`, revision, PAGE_EVENTS)
    for (const event of events) {
      if (event.type !== TASK.created && event.type !== TASK.changed) continue
      const { values: kept, at } = decodeJson<ResourceData>(event.data)
      const values = withShownFiles(kept)
      const entry = entryOf(event, at, before, values)
      if (entry !== undefined) entries.push(entry)
      before = values
    }
    if (events.length < PAGE_EVENTS) break
  }
  return entries
}

/** Attached files by name, without where their bytes are. */
const withShownFiles = (values: JsonObject): JsonObject => {
  const files = filesOf(values).map((file) => shownFile(file, {}))
  return files.length === 0 ? values : { ...values, files: files as JsonObject[] }
}

/** Undefined for an event that only keeps others from writing at its place. */
const entryOf = (event: RecordedEvent, asked: string, before: JsonObject, after: JsonObject): Entry | undefined => {
  const changes = changesOf(before, after)
  const isCreated = event.type === TASK.created
  if (!isCreated && Object.keys(changes).length === 0) return undefined
  const type = isCreated ? 'created' : typeOf(before as unknown as TaskValues, after as unknown as TaskValues)
  const moment = MOMENTS[type]
  return {
    at: moment === undefined ? asked : ((after[moment] as string | undefined) ?? asked),
    loggedAt: formatTime(event.loggedAt),
    type,
    actor: actorOf(event.metadata.actor),
    changes: isCreated ? {} : changes,
  }
}

const MOMENTS: { [type in EntryType]?: keyof TaskValues } = {
  started: 'startedAt',
  finished: 'finishedAt',
  cancelled: 'cancelledAt',
}

const typeOf = (before: TaskValues, after: TaskValues): EntryType => {
  if (after.state === 'finished' && before.state !== 'finished') return 'finished'
  if (after.state === 'cancelled' && before.state !== 'cancelled') return 'cancelled'
  if (after.startedAt !== before.startedAt) return 'started'
  if (after.hubId !== before.hubId) return 'moved'
  const isSame = after.teamId === before.teamId && isDeepStrictEqual(after.assigneeIds, before.assigneeIds)
  return isSame && after.state === before.state ? 'changed' : 'assigned'
}

const changesOf = (before: JsonObject, after: JsonObject): Entry['changes'] =>
  Object.fromEntries(
    [...new Set([...Object.keys(before), ...Object.keys(after)])]
      .filter((name) => !isDeepStrictEqual(before[name], after[name]))
      .map((name) => [
        name,
        {
          ...(before[name] !== undefined && { from: before[name] }),
          ...(after[name] !== undefined && { to: after[name] }),
        },
      ]),
  )

const actorOf = (actor = 'service'): Actor => {
  const colon = actor.indexOf(':')
  return colon < 0 ? { type: actor, id: '' } : { type: actor.slice(0, colon), id: actor.slice(colon + 1) }
}
