import type { UserCaller } from '../../kernel/caller.ts'
import { filesOf } from '../../kit/files/attached-file.ts'
import { uploadRoute } from '../../kit/resource/upload-route.ts'
import type { Uploads } from '../../kit/files/uploads.ts'
import type { Route } from '../../kit/http/route.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import type { FileHolders } from '../files/views.ts'
import { assertFieldsShown } from './record-question.ts'
import type { RecordWriter } from './record-writer.ts'
import { record } from './record.ts'
import { DATA_TYPES, type DataTypeRow, RECORDS, type RecordRow } from './views.ts'

const { declaration } = record

/** Attaches a file to a record, in one of its fields of the type `file`. */
export const recordUploadRoute = (services: ResourceServices, writer: RecordWriter, uploads: Uploads): Route =>
  uploadRoute(declaration, services, uploads, {
    thing: 'record',
    operationId: 'createDataFile',
    description: `A form with the name of a field of the type \`file\`, and the file, of up to ${uploads.bytesMax} bytes. What it is, its bytes say. Its id is then in the value of the field.`,
    title: 'DataFile',
    place: ['field', 'contract'],
    attach: (origin, dataId, { field }, file) => writer.attach(origin, dataId, field, file),
  })

/** Files of records, read and deleted by their own ids. */
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
    // A file that no field holds any more is not shown in the record either.
    if (type === undefined || field === undefined) return undefined
    if (isRead) assertFieldsShown(caller, [type], [field.name])
    const holder = { noun: declaration.noun, organizationId, id: row._id }
    return { holder, file, place: { dataId: row._id, field: field.name } }
  },
  detach: (origin, { holder, file }) => writer.detach(origin, holder.id, file._id),
})
