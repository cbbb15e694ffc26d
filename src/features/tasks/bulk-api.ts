import { Failure, invalid } from '../../kernel/errors.ts'
import type { JsonObject, JsonSchema } from '../../kernel/json.ts'
import { id, list, objectSchema, optional } from '../../kernel/schema.ts'
import { UUID } from '../../kit/http/page-members.ts'
import { route, type Route } from '../../kit/http/route.ts'
import { assertValid, compileCheck } from '../../kit/http/validate.ts'
import {
  assertPlainNames,
  BULK_BYTES_MAX,
  BULK_IDS,
  bulkAnswer,
  bulkItems,
  writeEach,
} from '../../kit/resource/bulk.ts'
import { createSchema } from '../../kit/resource/schemas.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import { findRow } from '../../kit/resource/show.ts'
import { originOf } from '../../kit/resource/writes.ts'
import { keptIds } from './assignees.ts'
import type { Move } from './moves.ts'
import { assertDispatches } from './task-rights.ts'
import type { TaskWriter } from './task-writer.ts'
import { ASSIGNEES_MAX, task } from './task.ts'
import type { TaskRow } from './views.ts'

const EXAMPLE_ID = '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6c'

/** Creates or assigns many tasks in one request; a faulty one does not affect the others. */
export const taskBulkRoutes = (services: ResourceServices, writer: TaskWriter): Route[] => [
  createRoute(writer),
  assignRoute(services, writer),
]

const TASK = createSchema(task.declaration)
const checkTask = compileCheck(TASK)
const checkId = compileCheck(UUID)

const createBody = (items?: JsonSchema): JsonSchema => ({
  type: 'object',
  properties: { tasks: bulkItems(items) },
  required: ['tasks'],
  additionalProperties: false,
})

const createRoute = (writer: TaskWriter): Route =>
  route<object, { tasks: unknown[] }>({
    method: 'POST',
    path: '/tasks/bulk',
    operationId: 'createTasks',
    summary: 'Create many tasks; one that is refused leaves the others',
    description: 'Needs `dispatch/task` too. `created` has the ids in the order of the request.',
    tag: 'Tasks',
    access: { permission: 'edit/task' },
    body: createBody(),
    bodyShown: createBody(TASK),
    takesAnyNames: true,
    bodyExample: { tasks: [task.declaration.example] },
    bodyBytesMax: BULK_BYTES_MAX,
    answers: {
      200: bulkAnswer(
        'The ids of those that were made, and what was refused.',
        { created: BULK_IDS },
        { created: [EXAMPLE_ID] },
      ),
    },
    handler: async (request) => {
      assertDispatches(originOf(request))
      const { done, rejected, wrote } = await writeEach(request, request.body.tasks, async (body, origin) => {
        assertPlainNames(body)
        assertValid(checkTask, body)
        return writer.create(origin, body as JsonObject)
      })
      return { body: { data: { created: done.map(({ row }) => row._id), rejected } }, wrote }
    },
  })

const assignBody = (items?: JsonSchema): JsonSchema => ({
  ...objectSchema({
    assigneeIds: optional(list(id(), { max: ASSIGNEES_MAX, unique: true })),
    teamId: optional({ schema: { ...id().schema, type: ['string', 'null'] } }),
    taskIds: { schema: bulkItems(items) },
  }),
})

interface AssignBody {
  taskIds: unknown[]
  assigneeIds?: string[]
  teamId?: string | null
}

const assignRoute = (services: ResourceServices, writer: TaskWriter): Route =>
  route<object, AssignBody>({
    method: 'POST',
    path: '/tasks/assign',
    operationId: 'assignTasks',
    summary: 'Assign many tasks to the same users or team, or to nobody; one that is refused leaves the others',
    description: 'Needs `dispatch/task` too. `changed` has the ids of all that are assigned so now, each once.',
    tag: 'Tasks',
    access: { permission: 'edit/task' },
    body: assignBody(),
    bodyShown: assignBody(UUID),
    bodyExample: { taskIds: [EXAMPLE_ID], assigneeIds: [EXAMPLE_ID] },
    answers: {
      200: bulkAnswer(
        'The ids of those that are assigned so, and what was refused.',
        { changed: BULK_IDS },
        { changed: [EXAMPLE_ID] },
      ),
    },
    handler: async (request) => {
      assertDispatches(originOf(request))
      const move = assignmentOf(request.body)
      const { done, rejected, wrote } = await writeEach(request, request.body.taskIds, async (taskId, origin) => {
        assertValid(checkId, taskId)
        const row = (await findRow(task.declaration, services, request, taskId as string).catch((error: unknown) => {
          throw error instanceof Failure && error.code === 'not_found' ? noTask(taskId as string) : error
        })) as TaskRow
        return writer.move(origin, row._id, row.createdAt, move)
      })
      const changed = new Set(done.map(({ row }) => row._id))
      return { body: { data: { changed: [...changed], rejected } }, wrote }
    },
  })

/** One answer for a task that never was, that is another organization's, and that the caller does not see. */
const noTask = (taskId: string): Failure => new Failure('not_found', { message: `There is no task ${taskId}.` })

const assignmentOf = ({ assigneeIds, teamId }: AssignBody): Move => {
  if (assigneeIds === undefined && teamId === undefined)
    throw invalid('/assigneeIds', 'is required where there is no teamId')
  return {
    type: 'assign',
    ...(assigneeIds !== undefined && { assigneeIds: keptIds(assigneeIds) }),
    ...(teamId !== undefined && { teamId: teamId === null ? null : teamId.toLowerCase() }),
  }
}
