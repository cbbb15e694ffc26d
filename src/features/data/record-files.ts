import type { UserCaller } from '../../kernel/caller.ts'
import { type AttachedFile, filesOf, type FileHolder } from '../../kit/files/attached-file.ts'
import type { Upload, Uploads } from '../../kit/files/uploads.ts'
import { idSchema } from '../../kit/http/list-query.ts'
import { BINARY, formSchema } from '../../kit/http/multipart.ts'
import { envelope } from '../../kit/http/page-members.ts'
import { formatTime, userOf } from '../../kit/http/request-context.ts'
import { route, type Route } from '../../kit/http/route.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import { findRow } from '../../kit/resource/show.ts'
import { originOf } from '../../kit/resource/writes.ts'
import { FILE_EXAMPLE, type FileHolders, fileSchema, shownFile } from '../files/views.ts'
import { assertFieldsShown } from './record-question.ts'
import type { RecordWriter } from './record-writer.ts'
import { record } from './record.ts'
import { DATA_TYPES, type DataTypeRow, RECORDS, type RecordRow } from './views.ts'

const { declaration } = record

const holderOf = (organizationId: string, id: string): FileHolder => ({ noun: declaration.noun, organizationId, id })

/** Attaching a file to a record, in one of its fields of the type `file`. */
export const recordUploadRoute = (services: ResourceServices, writer: RecordWriter, uploads: Uploads): Route =>
  route<object, Upload>({
    method: 'POST',
    path: '/data/{dataId}/files',
    operationId: 'createDataFile',
    summary: 'Attach a file to a record',
    description: `A form with the name of a field of the type \`file\`, and the file, of up to ${uploads.bytesMax} bytes. What it is, its bytes say. Its id is then in the value of the field.`,
    tag: declaration.tag,
    access: { permission: declaration.permissions.edit },
    params: { dataId: idSchema('The id of the record.') },
    rawBody: { contentTypes: ['multipart/form-data'] },
    bodyShown: formSchema({ field: { type: 'string', maxLength: 50 }, file: BINARY }, ['field', 'file']),
    bodyExample: { field: 'contract' },
    bodyBytesMax: uploads.bodyBytesMax,
    answers: {
      201: {
        description: 'The file.',
        schema: envelope({ data: fileSchema('DataFile', ['dataId', 'field']) }),
        example: {
          status: true,
          data: { ...FILE_EXAMPLE, dataId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a', field: 'contract' },
        },
      },
    },
    receive: async (request) => {
      const row = await findRow(declaration, services, request, request.params.dataId)
      return uploads.receive(request, holderOf(row.organizationId as string, row._id as string), 'field')
    },
    handler: async (request) => {
      const { fields, ...stored } = request.body
      const { field } = fields
      const dataId = request.params.dataId.toLowerCase()
      const file: AttachedFile = { _id: request.ids.next(), ...stored, createdAt: formatTime(request.now) }
      const { row, wrote } = await writer.attach(originOf(request), dataId, field, file)
      const kept = await uploads.keptBy(holderOf(userOf(request).organizationId, dataId), row, file)
      return { status: 201, body: { data: shownFile(kept, { dataId, field }) }, wrote }
    },
  })

/** Files of records, for reading and deleting them by their own ids. */
export const recordFiles = ({ tables }: Pick<ResourceServices, 'tables'>, writer: RecordWriter): FileHolders => ({
  permissions: declaration.permissions,
  find: async (caller: UserCaller, fileId, isRead) => {
    const { organizationId } = caller
    const { rows } = await tables.find<RecordRow>(RECORDS, organizationId, { where: { fileIds: fileId }, limit: 1 })
    const row = rows.at(0)?.row
    const file = row === undefined ? undefined : filesOf(row).find(({ _id }) => _id === fileId)
    if (row === undefined || file === undefined) return undefined
    const type = await tables.get<DataTypeRow>(DATA_TYPES, organizationId, row.dataTypeId)
    const field = type?.fields.find(({ _id }) => [row.values[_id]].flat().includes(fileId))
    // What no field holds any more is nowhere to be seen in the record either.
    if (type === undefined || field === undefined) return undefined
    if (isRead) assertFieldsShown(caller, [type], [field.name])
    return { holder: holderOf(organizationId, row._id), file, place: { dataId: row._id, field: field.name } }
  },
  detach: (origin, { holder, file }) => writer.detach(origin, holder.id, file._id),
})
