import type { JsonObject, JsonSchema } from '../../kernel/json.ts'
import { idSchema } from '../../kit/http/list-query.ts'
import { BINARY, formSchema } from '../../kit/http/multipart.ts'
import { answered, DATE_TIME, UUID } from '../../kit/http/page-members.ts'
import { IMPORT_TYPES } from './events.ts'

export const IMPORT_ID = idSchema('The id of the import.')
export const DECLARED = { tag: 'Import', access: { permission: 'import/data' } } as const

export const STATES = ['queued', 'processing', 'completed', 'completedWithErrors', 'failed', 'cancelled'] as const

export const FORM_FIELDS = [
  'type',
  'dataTypeId',
  'flowId',
  'hubId',
  'mapping',
  'mode',
  'dryRun',
  'sheet',
  'timeZone',
  'dateOrder',
] as const

const FIELDS: { [name: string]: JsonSchema } = {
  type: { type: 'string', enum: [...IMPORT_TYPES] },
  dataTypeId: { ...UUID, description: 'Required with `datasource`.' },
  flowId: { ...UUID, description: 'Required with `task` and `visit`.' },
  hubId: { ...UUID, description: 'Hub of tasks whose row names none; nothing to routes.' },
  mapping: {
    type: 'object',
    maxProperties: 1_000,
    additionalProperties: { type: 'string', maxLength: 200 },
    description: 'Fields by columns, as JSON. Left out, columns are matched by name, label and case.',
  },
  mode: { type: 'string', enum: ['insert', 'upsert'], default: 'insert' },
  dryRun: { type: 'boolean', default: false, description: 'Checks every row and writes nothing.' },
  sheet: { type: 'string', minLength: 1, maxLength: 100, description: 'Left out, the first sheet that is not hidden.' },
  timeZone: {
    type: 'string',
    format: 'time-zone',
    description: 'Of times without one; left out, that of the organization.',
  },
  dateOrder: {
    type: 'string',
    enum: ['dmy', 'mdy', 'ymd'],
    description: 'Of dates in digits; left out, as the column shows it.',
  },
}

/** Fields of the form besides the file, once `mapping` is parsed. */
export const FORM: JsonSchema = {
  type: 'object',
  properties: FIELDS,
  required: ['type'],
  additionalProperties: false,
}

export const FORM_SHOWN = formSchema({ file: BINARY, ...FIELDS }, ['file', 'type'])

const ERROR: JsonSchema = answered('ImportError', {
  row: { type: 'integer', description: 'As a spreadsheet numbers it.' },
  column: { type: ['string', 'null'] },
  code: { type: 'string' },
  message: { type: 'string' },
})
const COUNT: JsonSchema = { type: 'integer', minimum: 0 }

export const IMPORT_SCHEMA: JsonSchema = answered(
  'Import',
  {
    _id: UUID,
    organizationId: UUID,
    type: FIELDS.type,
    mode: FIELDS.mode,
    fileName: { type: 'string' },
    size: COUNT,
    status: { type: 'string', enum: [...STATES] },
    total: { ...COUNT, description: 'Rows; 0 until the file has been read once.' },
    processed: COUNT,
    succeeded: COUNT,
    failed: COUNT,
    errors: { type: 'array', items: ERROR, maxItems: 100, description: 'The first 100.' },
    dryRun: { type: 'boolean' },
    dataTypeId: UUID,
    flowId: UUID,
    hubId: UUID,
    mapping: { type: 'object', additionalProperties: { type: 'string' } },
    userId: { ...UUID, description: 'The user who sent the file.' },
    hasReport: { type: 'boolean', description: 'Whether there is a file of the rows that were refused.' },
    error: answered(undefined, { code: { type: 'string' }, message: { type: 'string' } }),
    startedAt: DATE_TIME,
    finishedAt: DATE_TIME,
    undoneAt: DATE_TIME,
    undo: answered(undefined, { undone: COUNT, kept: COUNT, errors: { type: 'array', items: ERROR } }),
    createdAt: DATE_TIME,
    updatedAt: DATE_TIME,
    version: { type: 'integer' },
  },
  ['dataTypeId', 'flowId', 'hubId', 'error', 'startedAt', 'finishedAt', 'undoneAt', 'undo'],
)

export const IMPORT_EXAMPLE: JsonObject = {
  _id: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a',
  organizationId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6b',
  type: 'datasource',
  mode: 'insert',
  fileName: 'customers.csv',
  size: 5120,
  status: 'completedWithErrors',
  total: 100,
  processed: 100,
  succeeded: 99,
  failed: 1,
  errors: [{ row: 7, column: 'Price', code: 'invalid', message: '"abc" must be a number' }],
  dryRun: false,
  dataTypeId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6c',
  mapping: { Price: 'price' },
  userId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6d',
  hasReport: true,
  startedAt: '2026-02-03T08:00:01.000Z',
  finishedAt: '2026-02-03T08:00:02.000Z',
  createdAt: '2026-02-03T08:00:00.000Z',
  updatedAt: '2026-02-03T08:00:02.000Z',
  version: 3,
}

export const PREVIEW: JsonSchema = answered('ImportPreview', {
  columns: { type: 'array', items: { type: 'string' } },
  rows: { type: 'array', maxItems: 20, items: { type: 'array', items: { type: 'string' } } },
  mapping: { type: 'object', additionalProperties: { type: 'string' } },
  encoding: { type: ['string', 'null'] },
  delimiter: { type: ['string', 'null'] },
  sheets: { type: 'array', items: { type: 'string' } },
})

export const PREVIEW_EXAMPLE: JsonObject = {
  columns: ['number', 'Price'],
  rows: [['A-1', '12.50']],
  mapping: { number: 'number', Price: 'price' },
  encoding: 'UTF-8',
  delimiter: ',',
  sheets: [],
}
