import type { UserCaller } from '../../kernel/caller.ts'
import { invalid } from '../../kernel/errors.ts'
import { type AttachedFile, assertFits, assertRoom, filesOf, type FileHolder } from '../../kit/files/attached-file.ts'
import type { Upload, Uploads } from '../../kit/files/uploads.ts'
import { BINARY, formSchema } from '../../kit/http/multipart.ts'
import { envelope } from '../../kit/http/page-members.ts'
import { formatTime, userOf } from '../../kit/http/request-context.ts'
import { route, type Route } from '../../kit/http/route.ts'
import { idSchema, seesRow } from '../../kit/http/list-query.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import { findRow } from '../../kit/resource/show.ts'
import { originOf } from '../../kit/resource/writes.ts'
import { FILES } from '../../kit/values/value-type.ts'
import { valueIn } from '../data/views.ts'
import { FILE_EXAMPLE, type FileHolders, fileSchema, shownFile } from '../files/views.ts'
import { componentsOf, type FlowContent } from '../flows/views.ts'
import { task } from './task.ts'
import type { TaskWriter } from './task-writer.ts'
import { TASKS, type TaskRow, type TaskValues } from './views.ts'

const { declaration } = task

const holderOf = (organizationId: string, id: string): FileHolder => ({ noun: declaration.noun, organizationId, id })

/** Attaching a file to a task, in one of its components for photos, files and signatures. */
export const taskUploadRoute = (services: ResourceServices, writer: TaskWriter, uploads: Uploads): Route =>
  route<object, Upload>({
    method: 'POST',
    path: '/task/{taskId}/files',
    operationId: 'createTaskFile',
    summary: 'Attach a file to a task',
    description: `A form with the id of a component of the type \`photo\`, \`signature\` (pictures only) or \`file\`, and the file, of up to ${uploads.bytesMax} bytes. What it is, its bytes say. Its id is then in the value of the component.`,
    tag: declaration.tag,
    access: { permission: declaration.permissions.edit },
    params: { taskId: idSchema('The id of the task.') },
    rawBody: { contentTypes: ['multipart/form-data'] },
    bodyShown: formSchema({ componentId: { type: 'string', maxLength: 50 }, file: BINARY }, ['componentId', 'file']),
    bodyExample: { componentId: 'photo' },
    bodyBytesMax: uploads.bodyBytesMax,
    answers: {
      201: {
        description: 'The file.',
        schema: envelope({ data: fileSchema('TaskFile', ['taskId', 'componentId']) }),
        example: {
          status: true,
          data: { ...FILE_EXAMPLE, taskId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a', componentId: 'photo' },
        },
      },
    },
    receive: async (request) => {
      const row = await findRow(declaration, services, request, request.params.taskId)
      return uploads.receive(request, holderOf(row.organizationId as string, row._id as string), 'componentId')
    },
    handler: async (request) => {
      const { fields, ...stored } = request.body
      const { componentId } = fields
      const taskId = request.params.taskId.toLowerCase()
      const file: AttachedFile = { _id: request.ids.next(), ...stored, createdAt: formatTime(request.now) }
      const { row, wrote } = await writer.amend(originOf(request), taskId, (before, flow) =>
        attached(before, flow, componentId, file),
      )
      const kept = await uploads.keptBy(holderOf(userOf(request).organizationId, taskId), row, file)
      return { status: 201, body: { data: shownFile(kept, { taskId, componentId }) }, wrote }
    },
  })

/** A task with one more file. @throws Failure invalid with `/componentId`, unsupported_type */
export const attached = (
  before: TaskValues,
  flow: FlowContent,
  componentId: string,
  file: AttachedFile,
): TaskValues => {
  const files = filesOf(before)
  if (files.some(({ _id }) => _id === file._id)) return before
  const component = componentsOf(flow).find(({ id }) => id === componentId)
  if (component === undefined) throw invalid('/componentId', 'is not a component of the flow')
  if (!FILES.includes(component.type))
    throw invalid('/componentId', `is a ${component.type}: no files are attached to it`)
  if (component.readOnly === true) throw invalid('/componentId', 'is read only')
  const ids = (valueIn(before.components, componentId) ?? []) as string[]
  assertFits(component, ids.length, file, '/componentId')
  assertRoom(files)
  return {
    ...before,
    components: { ...before.components, [componentId]: [...ids, file._id] },
    files: [...files, file],
  }
}

/** A task without a file. */
const detached = (before: TaskValues, fileId: string): TaskValues => {
  const components = Object.entries(before.components).flatMap(([id, value]) => {
    if (!Array.isArray(value) || !value.includes(fileId)) return [[id, value] as const]
    const left = value.filter((one) => one !== fileId)
    return left.length === 0 ? [] : [[id, left] as const]
  })
  return { ...before, components: Object.fromEntries(components) }
}

/** Files of tasks, for reading and deleting them by their own ids. */
export const taskFiles = (services: Pick<ResourceServices, 'tables'>, writer: TaskWriter): FileHolders => ({
  permissions: declaration.permissions,
  find: async (caller: UserCaller, fileId) => {
    const { organizationId } = caller
    const { rows } = await services.tables.find<TaskRow>(TASKS, organizationId, {
      where: { fileIds: fileId },
      limit: 1,
    })
    const row = rows.at(0)?.row
    const file = row === undefined ? undefined : filesOf(row).find(({ _id }) => _id === fileId)
    if (row === undefined || file === undefined) return undefined
    if (!seesRow(caller, row, declaration.hubField) || declaration.sees?.(caller, row) === false) return undefined
    const [componentId = ''] =
      Object.entries(row.components).find(([, value]) => Array.isArray(value) && value.includes(fileId)) ?? []
    return { holder: holderOf(organizationId, row._id), file, place: { taskId: row._id, componentId } }
  },
  detach: (origin, { holder, file }) => writer.amend(origin, holder.id, (before) => detached(before, file._id)),
})
