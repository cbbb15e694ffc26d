import type { UserCaller } from '../../kernel/caller.ts'
import { invalid } from '../../kernel/errors.ts'
import { type AttachedFile, assertFits, assertRoom, filesOf } from '../../kit/files/attached-file.ts'
import { time } from '../../kernel/schema.ts'
import { timeParameter } from '../../kit/http/time-parameter.ts'
import { findRow } from '../../kit/resource/show.ts'
import { originOf } from '../../kit/resource/writes.ts'
import { uploadRoute } from '../../kit/resource/upload-route.ts'
import type { Uploads } from '../../kit/files/uploads.ts'
import type { Route } from '../../kit/http/route.ts'
import { seesRow } from '../../kit/http/list-query.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import { FILES } from '../../kit/values/value-type.ts'
import { valueIn } from '../data/views.ts'
import type { FileHolders } from '../files/views.ts'
import { componentsOf, type FlowContent } from '../flows/views.ts'
import { lostIn, type LosersServices, takenAway } from './lost-tasks.ts'
import type { Amendment } from './offline-work.ts'
import { task } from './task.ts'
import type { TaskWriter } from './task-writer.ts'
import { TASKS, type TaskRow, type TaskValues } from './views.ts'

const { declaration } = task

/** Attaches a file to a task, in one of its components for photos, files and signatures. */
export const taskUploadRoute = (
  services: ResourceServices & LosersServices,
  writer: TaskWriter,
  uploads: Uploads,
): Route =>
  uploadRoute(declaration, services, uploads, {
    thing: 'task',
    operationId: 'createTaskFile',
    description: `A form with the id of a component of the type \`photo\`, \`signature\` (pictures only) or \`file\`, and the file, of up to ${uploads.bytesMax} bytes. What it is, its bytes say. Its id is then in the value of the component. What was taken without a connection says when: \`at\`; it is taken also when the task is no longer yours, or cancelled, if it was yours then.`,
    title: 'TaskFile',
    place: ['componentId', 'photo'],
    further: { at: { ...time().schema, type: 'string', description: 'When it was taken, at the device.' } },
    find: async (request, id) => {
      try {
        await findRow(declaration, services, request, id)
      } catch (error) {
        await lostIn(error, services, originOf(request), id)
      }
    },
    attach: async (origin, taskId, { componentId, at: said }, file) => {
      const amendment: Amendment = (before, flow) => attached(before, flow, componentId, file)
      const at = timeParameter('/at', said)
      try {
        return await writer.amend(origin, taskId, amendment, at)
      } catch (error) {
        const lost = await lostIn(error, services, origin, taskId)
        return writer.late(origin, taskId, { type: 'amend', amendment, at }, takenAway(lost))
      }
    },
  })

/** A task with one more file. @throws Failure invalid with `/componentId`, unsupported_type */
const attached = (before: TaskValues, flow: FlowContent, componentId: string, file: AttachedFile): TaskValues => {
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

const detached = (before: TaskValues, fileId: string): TaskValues => {
  const components = Object.entries(before.components).flatMap(([id, value]) => {
    if (!Array.isArray(value) || !value.includes(fileId)) return [[id, value] as const]
    const left = value.filter((one) => one !== fileId)
    return left.length === 0 ? [] : [[id, left] as const]
  })
  return { ...before, components: Object.fromEntries(components) }
}

/** Files of tasks, read and deleted by their own ids. */
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
    if (!seesRow(caller, row, declaration)) return undefined
    const [componentId = ''] =
      Object.entries(row.components).find(([, value]) => Array.isArray(value) && value.includes(fileId)) ?? []
    const holder = { noun: declaration.noun, organizationId, id: row._id }
    return { holder, file, place: { taskId: row._id, componentId } }
  },
  detach: (origin, { holder, file }) => writer.amend(origin, holder.id, (before) => detached(before, file._id)),
})
