import { breathe } from '../../kernel/breath.ts'
import { Failure } from '../../kernel/errors.ts'
import type { JsonObject, JsonSchema } from '../../kernel/json.ts'
import { idSource } from '../../kit/commands/ids.ts'
import { allWrote } from '../../kit/commands/wrote.ts'
import { idSchema } from '../../kit/http/list-query.ts'
import { DATE_TIME, envelope } from '../../kit/http/page-members.ts'
import { route, type Route, type Wrote } from '../../kit/http/route.ts'
import { assertValid, compileCheck } from '../../kit/http/validate.ts'
import { createSchema, type ResourceServices } from '../../kit/resource/declaration.ts'
import { findRow } from '../../kit/resource/show.ts'
import type { ResourceWriter } from '../../kit/resource/write.ts'
import { originOf } from '../../kit/resource/writes.ts'
import { eachDueAfter } from './recurrence.ts'
import { recurrenceOf, schedule } from './schedule.ts'

const BULK_MAX = 500
const PREVIEW_MAX = 1_000
const PREVIEW_DEFAULT = 10

/** Task schedules, what they will make, and many at once. */
export const scheduleRoutes = (services: ResourceServices): Route[] => {
  return [bulkRoute(schedule.writer(services)), previewRoute(services), ...schedule.routes(services)]
}

const SCHEDULE = createSchema(schedule.declaration)
const checkSchedule = compileCheck(SCHEDULE)

/** Each is checked by itself, so that one that is wrong leaves the others. */
const bulkSchema = (items: JsonSchema): JsonSchema => ({
  type: 'object',
  properties: { schedules: { type: 'array', minItems: 1, maxItems: BULK_MAX, items } },
  required: ['schedules'],
  additionalProperties: false,
})

const bulkRoute = (writer: ResourceWriter): Route =>
  route<object, { schedules: JsonObject[] }>({
    method: 'POST',
    path: '/task/schedules/bulk',
    operationId: 'createSchedules',
    summary: 'Create many task schedules; one that is refused leaves the others',
    tag: 'Task schedules',
    access: { permission: 'edit/schedule' },
    body: bulkSchema({}),
    bodyShown: bulkSchema(SCHEDULE),
    takesAnyNames: true,
    bodyExample: { schedules: [schedule.declaration.example] },
    bodyBytesMax: 4 * 1024 * 1024,
    answers: {
      200: {
        description: 'How many were made, and those that were refused.',
        schema: envelope({
          data: {
            type: 'object',
            properties: {
              created: { type: 'integer' },
              rejected: {
                type: 'array',
                items: {
                  type: 'object',
                  properties: { index: { type: 'integer' }, code: { type: 'string' }, message: { type: 'string' } },
                  required: ['index', 'code', 'message'],
                },
              },
            },
            required: ['created', 'rejected'],
          },
        }),
        example: { status: true, data: { created: 1, rejected: [] } },
      },
    },
    handler: async (request) => {
      const rejected: { index: number; code: string; message: string }[] = []
      const wrotes: (Wrote | undefined)[] = []
      for (const [index, body] of request.body.schedules.entries()) {
        await breathe() // working out a rule may take milliseconds
        // Each has ids of its own: what a repeated request finds made draws fewer than it did when it was made.
        const ids = idSource(request.now, Buffer.from(request.ids.next()), request.ids.isRepeat)
        try {
          assertValid(checkSchedule, body)
          wrotes.push((await writer.create({ ...originOf(request), ids }, body)).wrote)
        } catch (error) {
          if (!(error instanceof Failure) || error.status >= 500) throw error
          rejected.push({ index, code: error.code, message: error.message })
        }
      }
      return { body: { data: { created: wrotes.length, rejected } }, wrote: allWrote(...wrotes) }
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
      200: {
        description: 'The next due times.',
        schema: envelope({ data: { type: 'array', items: DATE_TIME } }),
        example: { status: true, data: ['2026-11-23T06:30:00.000Z'] },
      },
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
