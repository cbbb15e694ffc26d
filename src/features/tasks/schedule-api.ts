import { breathe } from '../../kernel/breath.ts'
import type { JsonObject, JsonSchema } from '../../kernel/json.ts'
import { idSchema } from '../../kit/http/list-query.ts'
import { dataAnswer, DATE_TIME } from '../../kit/http/page-members.ts'
import { route, type Route } from '../../kit/http/route.ts'
import { assertValid, compileCheck } from '../../kit/http/validate.ts'
import { assertPlainNames, BULK_BYTES_MAX, bulkAnswer, bulkItems, writeEach } from '../../kit/resource/bulk.ts'
import { createSchema } from '../../kit/resource/schemas.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import { findRow } from '../../kit/resource/show.ts'
import type { ResourceWriter } from '../../kit/resource/write.ts'
import { eachDueAfter } from '../../kit/recurrence/recurrence.ts'
import { recurrenceOf, schedule } from './schedule.ts'

const PREVIEW_MAX = 1_000
const PREVIEW_DEFAULT = 10

/** Task schedules, previews of their tasks, and bulk creation. */
export const scheduleRoutes = (services: ResourceServices): Route[] => {
  return [bulkRoute(schedule.writer(services)), previewRoute(services), ...schedule.routes(services)]
}

const SCHEDULE = createSchema(schedule.declaration)
const checkSchedule = compileCheck(SCHEDULE)

/** Each item is validated by itself, so that a faulty one does not affect the others. */
const bulkSchema = (items?: JsonSchema): JsonSchema => ({
  type: 'object',
  properties: { schedules: bulkItems(items) },
  required: ['schedules'],
  additionalProperties: false,
})

const bulkRoute = (writer: ResourceWriter): Route =>
  route<object, { schedules: unknown[] }>({
    method: 'POST',
    path: '/task/schedules/bulk',
    operationId: 'createSchedules',
    summary: 'Create many task schedules; one that is refused leaves the others',
    tag: 'Task schedules',
    access: { permission: 'edit/schedule' },
    body: bulkSchema(),
    bodyShown: bulkSchema(SCHEDULE),
    takesAnyNames: true,
    bodyExample: { schedules: [schedule.declaration.example] },
    bodyBytesMax: BULK_BYTES_MAX,
    answers: {
      200: bulkAnswer(
        'How many were made, and those that were refused.',
        { created: { type: 'integer' } },
        { created: 1 },
      ),
    },
    handler: async (request) => {
      const { done, rejected, wrote } = await writeEach(request, request.body.schedules, async (body, origin) => {
        assertPlainNames(body)
        assertValid(checkSchedule, body)
        return writer.create(origin, body as JsonObject)
      })
      return { body: { data: { created: done.length, rejected } }, wrote }
    },
  })

const previewRoute = (services: ResourceServices): Route =>
  route<{ count?: number }>({
    method: 'GET',
    path: '/task/schedule/{scheduleId}/preview',
    operationId: 'previewSchedule',
    summary: 'Read when a task schedule is due next',
    tag: 'Task schedules',
    access: { permission: 'view/schedule' },
    params: { scheduleId: idSchema('The id of the schedule.') },
    query: {
      type: 'object',
      properties: {
        count: {
          type: 'integer',
          minimum: 1,
          maximum: PREVIEW_MAX,
          default: PREVIEW_DEFAULT,
          description: 'How many times.',
        },
      },
      additionalProperties: false,
    },
    answers: {
      200: dataAnswer('The next due times.', { type: 'array', items: DATE_TIME }, ['2026-11-23T06:30:00.000Z']),
    },
    handler: async (request) => {
      const row = await findRow(schedule.declaration, services, request, request.params.scheduleId)
      const { count = PREVIEW_DEFAULT } = request.query
      const dues: string[] = []
      for (const at of eachDueAfter(recurrenceOf(row as JsonObject), request.now)) {
        if (dues.push(new Date(at).toISOString()) === count) break
        await breathe()
      }
      return { body: { data: dues } }
    },
  })
