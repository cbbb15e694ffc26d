import type { JsonObject, JsonSchema } from '../../kernel/json.ts'
import { idSchema } from '../../kit/http/list-query.ts'
import { answered, DATE_TIME, UUID } from '../../kit/http/page-members.ts'
import { EXPORT_FORMATS } from './events.ts'
import { MEDIA_TYPES } from './write-rows.ts'

export const EXPORT_ID = idSchema('The id of the export.')
export const DECLARED = { tag: 'Export' } as const
export const STATES = ['queued', 'processing', 'completed', 'failed', 'cancelled'] as const

const COMMON: { [name: string]: JsonSchema } = {
  format: { type: 'string', enum: [...EXPORT_FORMATS], description: 'Left out, that of the config, else `csv`.' },
  exportConfigId: { ...UUID, description: 'What is left out here is as the config says; filters add to its own.' },
  fields: {
    type: 'array',
    minItems: 1,
    maxItems: 500,
    uniqueItems: true,
    items: { type: 'string', minLength: 1, maxLength: 200 },
    description: 'Columns in this order; one that your role hides is 403.',
  },
  mapping: {
    type: 'object',
    maxProperties: 500,
    additionalProperties: { type: 'string', minLength: 1, maxLength: 200 },
    description: 'Titles of columns by the names of fields.',
  },
  filter: {
    type: 'object',
    maxProperties: 50,
    additionalProperties: true,
    description: 'What the list takes: a value, or several as an array.',
  },
}

export const DATA_BODY: JsonSchema = {
  title: 'DataExport',
  type: 'object',
  properties: { dataTypeId: { ...UUID, description: 'Left out, that of the config.' }, ...COMMON },
  required: [],
  additionalProperties: false,
}

export const TASK_BODY: JsonSchema = {
  title: 'TaskExport',
  type: 'object',
  properties: COMMON,
  required: [],
  additionalProperties: false,
}

const COUNT: JsonSchema = { type: 'integer', minimum: 0 }

export const EXPORT_SCHEMA: JsonSchema = answered(
  'Export',
  {
    _id: UUID,
    organizationId: UUID,
    kind: { type: 'string', enum: ['data', 'task'] },
    format: { type: 'string', enum: [...EXPORT_FORMATS] },
    status: { type: 'string', enum: [...STATES] },
    rows: COUNT,
    size: { ...COUNT, description: 'Bytes; of files that are kept.' },
    dataTypeId: UUID,
    exportConfigId: UUID,
    error: answered(undefined, { code: { type: 'string' }, message: { type: 'string' } }),
    createdBy: UUID,
    createdAt: DATE_TIME,
    updatedAt: DATE_TIME,
    version: { type: 'integer' },
    expiresAt: { ...DATE_TIME, description: 'Until when the file can be downloaded.' },
    downloadPath: { type: 'string', description: 'For the user who asked; it needs no token.' },
  },
  ['size', 'dataTypeId', 'exportConfigId', 'error', 'expiresAt', 'downloadPath'],
)

export const EXPORT_EXAMPLE: JsonObject = {
  _id: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a',
  organizationId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6b',
  kind: 'task',
  format: 'csv',
  status: 'completed',
  rows: 12_000,
  size: 2_400_000,
  createdBy: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6d',
  createdAt: '2026-02-03T08:00:00.000Z',
  updatedAt: '2026-02-03T08:00:02.000Z',
  version: 3,
  expiresAt: '2026-02-10T08:00:02.000Z',
  downloadPath:
    '/api/v3/export-file/0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a?organization=0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6b&expires=1770710402000&signature=abc',
}

/** Media types of the file beside CSV. */
export const OTHER_TYPES = {
  [MEDIA_TYPES.xlsx]: undefined,
  [MEDIA_TYPES.json]: {
    type: 'array',
    items: { type: 'object' },
    description: 'The rows as the list answers them.',
    examples: [[{ _id: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6e', title: 'Delivery 17', state: 'new' }]],
  },
  [MEDIA_TYPES.geojson]: undefined,
  [MEDIA_TYPES.gpx]: undefined,
}
