import type { Json, JsonObject } from '../../kernel/json.ts'
import { anyObject, bool, list, reference, type Field } from '../../kernel/schema.ts'
import { fileIdsOf } from '../../kit/files/attached-file.ts'
import type { UniqueValue } from '../../kit/resource/declaration.ts'
import { defineResource } from '../../kit/resource/resource.ts'
import { recordRows } from './record-rows.ts'
import { DATA_TYPES, RECORDS } from './views.ts'

/** More than the largest body that a type allows. */
const BODY_BYTES_MAX = 256 * 1024

const values: Field = {
  ...anyObject(),
  schema: {
    type: 'object',
    additionalProperties: true,
    maxProperties: 200,
    description: 'By the names of the fields of its data type.',
  },
}

const claims: Field = { schema: { type: 'array', items: { type: 'object' } } }

const uniquesOf = ({ uniques }: JsonObject): UniqueValue[] => (uniques ?? []) as unknown as UniqueValue[]

/** A record of a data type. Reads and lists are in read-records.ts, writes in record-writer.ts. */
export const record = defineResource(
  {
    noun: 'data',
    plural: RECORDS,
    tag: 'Data',
    paths: { one: '/data', many: '/data' },
    verbs: ['create', 'replace', 'amend', 'delete'],
    fields: { dataTypeId: reference(DATA_TYPES), values },
    fixed: ['dataTypeId'],
    internal: {
      recordIds: list(reference(RECORDS), { max: 200 }),
      files: { schema: { type: 'array', items: { type: 'object' } } },
      /** Unique values that the record has claimed. */
      uniques: claims,
      /** It has dangling references, and changes have left them so. */
      isDangling: bool(),
    },
    body: { paths: { recordIds: '/values' }, bytesMax: BODY_BYTES_MAX },
    permissions: { view: 'view/data', edit: 'edit/data' },
    table: { version: 5, indexes: { equality: ['fileIds'] }, derived: fileIdsOf },
    unique: {
      values: uniquesOf,
      without: (values, field) => ({
        ...values,
        uniques: uniquesOf(values).filter((one) => one.field !== field) as unknown as Json,
      }),
    },
    example: {
      dataTypeId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6d',
      values: { number: 'C-1001', name: 'Corner shop', phone: '+48 22 123 45 67', kind: 'shop' },
    },
  },
  recordRows,
)
