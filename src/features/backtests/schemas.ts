import type { JsonObject, JsonSchema } from '../../kernel/json.ts'
import { idSchema } from '../../kit/http/list-query.ts'
import { answered, DATE_TIME, UUID } from '../../kit/http/page-members.ts'

export const GEOFENCE_ID = idSchema('The id of the geofence.')
export const BACKTEST_ID = idSchema('The id of the back-test.')
export const DECLARED = { tag: 'Geofences', access: { permission: 'view/geofence' }, rollout: 'geofences' } as const

const TIME: JsonSchema = {
  type: ['string', 'integer'],
  format: 'date-time',
  description: 'RFC 3339, or ms since the epoch.',
}

const RULES: { [name: string]: JsonSchema } = {
  maxAccuracy: { type: 'number', minimum: 0, maximum: 1_000_000, description: 'Metres; left out, that of the group.' },
  debounce: {
    type: 'object',
    properties: {
      fixes: { type: 'integer', minimum: 1, maximum: 1_000 },
      seconds: { type: 'number', minimum: 0, maximum: 86_400 },
    },
    additionalProperties: false,
  },
}

export const BACKTEST_BODY: JsonSchema = {
  title: 'BacktestQuestion',
  type: 'object',
  properties: {
    from: TIME,
    to: TIME,
    trackerIds: { type: 'array', items: UUID, minItems: 1, maxItems: 10_000 },
    ...RULES,
  },
  required: ['from', 'to'],
  additionalProperties: false,
}

export const BODY_EXAMPLE = { from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z', debounce: { fixes: 3 } }

export const JOB_SCHEMA: JsonSchema = answered(
  'Backtest',
  {
    _id: UUID,
    organizationId: UUID,
    geofenceId: UUID,
    geofenceGroupId: UUID,
    userId: { ...UUID, description: 'The user who asked for it.' },
    status: {
      type: 'string',
      enum: ['queued', 'processing', 'completed', 'failed', 'cancelled'],
      description: '`cancelled` is told on the live channel alone: what was cancelled is not there any more.',
    },
    total: { type: 'integer', description: 'Points to be read: about, until it is completed.' },
    processed: { type: 'integer', description: 'Points read so far.' },
    transitions: { type: 'integer', description: 'How many were found; once it is completed.' },
    error: {
      ...answered(undefined, { code: { type: 'string' }, message: { type: 'string' } }),
      description: 'Why it failed.',
    },
    from: DATE_TIME,
    to: DATE_TIME,
    trackers: { type: 'integer', description: 'How many trackers were named.' },
    maxAccuracy: { ...RULES.maxAccuracy, description: 'Metres, as it counts.' },
    debounce: RULES.debounce,
    createdAt: DATE_TIME,
    updatedAt: DATE_TIME,
    version: { type: 'integer' },
  },
  ['transitions', 'error', 'trackers', 'maxAccuracy', 'debounce'],
)

export const JOB_EXAMPLE: JsonObject = {
  _id: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a',
  organizationId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6b',
  geofenceId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6c',
  geofenceGroupId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6d',
  userId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6e',
  status: 'processing',
  total: 48_000_000,
  processed: 12_000_000,
  from: '2026-01-01T00:00:00.000Z',
  to: '2026-02-01T00:00:00.000Z',
  debounce: { fixes: 3 },
  createdAt: '2026-02-03T08:00:00.000Z',
  updatedAt: '2026-02-03T08:00:09.000Z',
  version: 9,
}
