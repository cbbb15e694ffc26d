import { isObject, type JsonObject, type JsonSchema } from '../../kernel/json.ts'
import { UUID } from '../../kit/http/page-members.ts'
import { userOf } from '../../kit/http/request-context.ts'
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
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import { assertExists } from '../../kit/resource/references.ts'
import type { WriteOrigin } from '../../kit/resource/writes.ts'
import { RecordWriter } from './record-writer.ts'
import { record } from './record.ts'
import { type SentRecord as Sent, type Upserted, upsertRecord } from './upsert-record.ts'
import { DATA_TYPES, type DataTypeRow } from './views.ts'

const MODES = ['insert', 'upsert'] as const

interface BulkBody {
  dataTypeId: string
  mode: (typeof MODES)[number]
  records: unknown[]
}

const RECORD: JsonSchema = {
  type: 'object',
  properties: { _id: UUID, values: record.declaration.fields.values.schema },
  required: ['values'],
  additionalProperties: false,
}
const checkRecord = compileCheck(RECORD)

const bodySchema = (items?: JsonSchema): JsonSchema => ({
  type: 'object',
  properties: {
    dataTypeId: { type: 'string', format: 'uuid' },
    mode: {
      type: 'string',
      enum: [...MODES],
      description:
        '`upsert` amends the record that has the `_id`, or without one the primary key, and makes it where there is none.',
    },
    records: bulkItems(items),
  },
  required: ['dataTypeId', 'mode', 'records'],
  additionalProperties: false,
})

/** Writes many records of one type in one request; a faulty record does not affect the others. */
export const recordBulkRoute = (services: ResourceServices): Route => {
  const writer = new RecordWriter(services)
  return route<object, BulkBody>({
    method: 'POST',
    path: '/data/bulk',
    operationId: 'writeDataBulk',
    summary:
      'Create many records of a data type, or change those that are there; one that is refused leaves the others',
    description: 'An upsert needs a role that sees the primary key, or `_id`s.',
    tag: 'Data',
    access: { permission: 'edit/data' },
    body: bodySchema(),
    bodyShown: bodySchema(RECORD),
    takesAnyNames: true,
    bodyExample: {
      dataTypeId: record.declaration.example.dataTypeId,
      mode: 'upsert',
      records: [{ values: record.declaration.example.values }],
    },
    bodyBytesMax: BULK_BYTES_MAX,
    answers: {
      200: bulkAnswer(
        'The ids of those that were made, with `upsert` of those that were there, and what was refused.',
        { created: BULK_IDS, changed: BULK_IDS },
        { created: ['0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6c'], changed: [] },
        ['changed'],
      ),
    },
    handler: async (request) => {
      const { dataTypeId, mode, records } = request.body
      const { organizationId } = userOf(request)
      const id = dataTypeId.toLowerCase()
      const type = await assertExists<DataTypeRow>(services.tables, DATA_TYPES, organizationId, id, '/dataTypeId')
      const write = async (item: unknown, origin: WriteOrigin): Promise<Upserted> => {
        assertPlainNames(item)
        assertValid(checkRecord, item)
        const sent = item as Sent
        if (mode === 'upsert') return upsertRecord(services, writer, type, origin, sent)
        return { ...(await writer.create(origin, { ...sent, dataTypeId: id })), isNew: true }
      }
      const keysOf = ({ _id, values }: JsonObject) => [_id, isObject(values) ? values[type.primaryKey] : undefined]
      const { done, rejected, wrote } = await writeEach(request, records, write, keysOf)
      const idsOf = (isNew: boolean) => done.filter((one) => one.isNew === isNew).map(({ row }) => row._id)
      const data = { created: idsOf(true), ...(mode === 'upsert' && { changed: idsOf(false) }), rejected }
      return { body: { data }, wrote }
    },
  })
}
