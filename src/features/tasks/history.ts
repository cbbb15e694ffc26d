import { isDeepStrictEqual } from 'node:util'
import type { Json, JsonObject, JsonSchema } from '../../kernel/json.ts'
import { invalid } from '../../kernel/errors.ts'
import { decodeJson, type RecordedEvent } from '../../kernel/event.ts'
import type { Row } from '../../kernel/table.ts'
import type { ResourceData } from '../../kit/commands/declared-event.ts'
import { filesOf } from '../../kit/files/attached-file.ts'
import { shownFile } from '../../kit/resource/upload-route.ts'
import { chooseFields, FIELDS_QUERY, idSchema } from '../../kit/http/list-query.ts'
import { nextLink } from '../../kit/http/next-link.ts'
import { answered, DATE_TIME, envelope, STREAM_PAGE_MEMBERS } from '../../kit/http/page-members.ts'
import { fingerprintOf, openCursor, sealCursor } from '../../kit/http/question-cursor.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import { route, type Route } from '../../kit/http/route.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import { findRow } from '../../kit/resource/show.ts'
import { filledAt } from './filled-at.ts'
import { task } from './task.ts'
import { type Actor, actorOf, isOver, type LateStep, TASK, TASK_INTERNAL, type TaskValues } from './views.ts'

const TYPES = ['created', 'assigned', 'moved', 'started', 'finished', 'cancelled', 'reopened', 'changed'] as const
type EntryType = (typeof TYPES)[number]

interface Entry extends Row {
  at: string
  loggedAt: string
  type: EntryType
  actor: Actor
  changes: { [field: string]: { from?: Json; to?: Json } }
  overtaken?: true
}

/** Events read at a time: each has all values of the task, at most some 256 KiB. */
const BATCH_EVENTS = 50
const LIMIT_MAX = 500
/** Most bytes read for one page, whatever its limit. */
const PAGE_BYTES_MAX = 4 * 1024 * 1024

const ENTRY = answered(
  'TaskHistoryEntry',
  {
    at: { ...DATE_TIME, description: 'When it happened, at the device.' },
    loggedAt: { ...DATE_TIME, description: 'When the service heard of it.' },
    type: { type: 'string', enum: [...TYPES] },
    actor: answered('TaskActor', { type: { type: 'string' }, id: { type: 'string' } }),
    changes: {
      type: 'object',
      additionalProperties: { type: 'object', properties: { from: {}, to: {} }, additionalProperties: false },
    },
    overtaken: {
      const: true,
      description:
        'It does not hold: what was done before it, and came later, does; or it came after a change that holds.',
    },
  },
  ['overtaken'],
)

interface HistoryQuery {
  fields?: string
  limit?: number
  cursor?: string
}

const QUERY: JsonSchema = {
  ...FIELDS_QUERY,
  properties: {
    ...(FIELDS_QUERY.properties as object),
    limit: {
      type: 'integer',
      minimum: 1,
      maximum: LIMIT_MAX,
      default: LIMIT_MAX,
      description: 'Entries of a page; fewer where they are large.',
    },
    cursor: { type: 'string', maxLength: 400, description: '`nextCursor` of the page before.' },
  },
}

export const historyRoute = (services: ResourceServices): Route =>
  route<HistoryQuery>({
    method: 'GET',
    path: '/task/{taskId}/history',
    operationId: 'readTaskHistory',
    summary: 'Read what happened to a task',
    tag: 'Tasks',
    access: { permission: 'view/task' },
    params: { taskId: idSchema('The id of the task.') },
    query: QUERY,
    answers: {
      200: {
        description: 'A page of its history, oldest first.',
        schema: envelope({ data: { type: 'array', items: ENTRY }, ...STREAM_PAGE_MEMBERS }),
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
          page: null,
          limit: LIMIT_MAX,
          nextCursor: null,
        },
      },
    },
    handler: async (request) => {
      const { query } = request
      const row = await findRow(task.declaration, services, request, request.params.taskId)
      const show = chooseFields(Object.keys(ENTRY.properties as object), query.fields, 'at')
      const { limit = LIMIT_MAX, cursor } = query
      const _id = row._id as string
      const after = cursor === undefined ? -1 : placeOf(cursor, _id)
      const overtaken = (row as unknown as TaskValues).overtaken ?? []
      const { entries, shownTo } = await pageOf(services, { taskId: _id, overtaken }, after, limit)
      const nextCursor = shownTo === undefined ? null : sealCursor(String(shownTo), fingerprintOf(_id))
      const data = (entries as readonly Row[]).map(show)
      const path = `/api/v3/task/${_id}/history`
      const headers = nextCursor === null ? undefined : { link: nextLink(path, { ...query }, nextCursor) }
      return { body: { data, page: null, limit, nextCursor }, headers }
    },
  })

const placeOf = (cursor: string, taskId: string): number => {
  const place = openCursor(cursor, fingerprintOf(taskId))
  if (!/^\d{1,15}$/.test(place)) throw invalid('/cursor', 'is not a cursor of this history')
  return Number(place)
}

/** Entries after a revision, and the revision that precedes the next page, if any. */
const pageOf = async (
  { log }: Pick<ResourceServices, 'log'>,
  { taskId, overtaken }: { taskId: string; overtaken: readonly number[] },
  after: number,
  limit: number,
): Promise<{ entries: Entry[]; shownTo?: number }> => {
  const entries: Entry[] = []
  let before: JsonObject = {}
  let shownTo = after
  let bytes = 0
  // The last one shown is read again: the next is shown as a change from it.
  for (let from = Math.max(0, after); ; ) {
    const events = await log.read(`task-${taskId}`, from, BATCH_EVENTS)
    for (const event of events) {
      from = event.revision + 1
      if (event.type !== TASK.created && event.type !== TASK.changed) continue
      const { values: kept, at } = decodeJson<ResourceData>(event.data)
      const values = withShownFiles(kept)
      const found = event.revision > after ? entryOf(event, at, before, values) : undefined
      const entry = found && overtaken.includes(event.revision) ? { ...found, overtaken: true as const } : found
      bytes += event.data.length
      if (entry !== undefined) {
        if (entries.length === limit || (entries.length > 0 && bytes > PAGE_BYTES_MAX)) return { entries, shownTo }
        entries.push(entry)
      }
      before = values
      shownTo = event.revision
    }
    if (events.length < BATCH_EVENTS) return { entries }
  }
}

/** Attached files by name, without their storage keys. */
const withShownFiles = (values: JsonObject): JsonObject => {
  const files = filesOf(values).map((file) => shownFile(file, {}))
  return files.length === 0 ? values : { ...values, files: files as JsonObject[] }
}

/** Undefined for an event that only keeps others from writing at its place. */
const entryOf = (event: RecordedEvent, asked: string, before: JsonObject, after: JsonObject): Entry | undefined => {
  const changes = changesOf(before, after)
  const isCreated = event.type === TASK.created
  if (!isCreated && isDeepStrictEqual(before, after)) return undefined
  const late = lateStepOf(before as unknown as TaskValues, after as unknown as TaskValues)
  if (late !== undefined)
    return {
      at: late.at,
      loggedAt: formatTime(event.loggedAt),
      type: late.type === 'start' ? 'started' : 'finished',
      actor: actorOf(event.metadata.actor),
      changes,
      overtaken: true,
    }
  const type = isCreated ? 'created' : typeOf(before as unknown as TaskValues, after as unknown as TaskValues)
  return {
    at: momentOf(type, before as unknown as TaskValues, after as unknown as TaskValues) ?? asked,
    loggedAt: formatTime(event.loggedAt),
    type,
    actor: actorOf(event.metadata.actor),
    changes: isCreated ? {} : changes,
  }
}

/** The late step that an event adds, which left the task unchanged. */
const lateStepOf = (before: TaskValues, after: TaskValues): LateStep | undefined =>
  (after.late?.length ?? 0) > (before.late?.length ?? 0) ? after.late?.at(-1) : undefined

const momentOf = (type: EntryType, before: TaskValues, after: TaskValues): string | undefined => {
  const moment = MOMENTS[type]
  if (moment !== undefined) return after[moment] as string | undefined
  if (type === 'assigned' && after.handedAt !== before.handedAt) return after.handedAt
  const filled = type === 'changed' ? filledAt(before, after) : undefined
  return filled === undefined ? undefined : formatTime(filled)
}

const MOMENTS: { [type in EntryType]?: keyof TaskValues } = {
  started: 'startedAt',
  finished: 'finishedAt',
  cancelled: 'cancelledAt',
}

const typeOf = (before: TaskValues, after: TaskValues): EntryType => {
  if (after.state === 'finished' && before.state !== 'finished') return 'finished'
  if (after.state === 'cancelled' && before.state !== 'cancelled') return 'cancelled'
  if (isOver(before) && !isOver(after)) return 'reopened'
  if (after.startedAt !== before.startedAt) return 'started'
  if (after.hubId !== before.hubId) return 'moved'
  const isSame = after.teamId === before.teamId && isDeepStrictEqual(after.assigneeIds, before.assigneeIds)
  return isSame && after.state === before.state ? 'changed' : 'assigned'
}

const INTERNAL: readonly string[] = TASK_INTERNAL

const changesOf = (before: JsonObject, after: JsonObject): Entry['changes'] =>
  Object.fromEntries(
    [...new Set([...Object.keys(before), ...Object.keys(after)])]
      .filter((name) => !INTERNAL.includes(name))
      .filter((name) => !isDeepStrictEqual(before[name], after[name]))
      .map((name) => [
        name,
        {
          ...(before[name] !== undefined && { from: before[name] }),
          ...(after[name] !== undefined && { to: after[name] }),
        },
      ]),
  )
