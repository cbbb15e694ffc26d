import type { JsonSchema } from '../../kernel/json.ts'
import { answered, DATE_TIME, UUID } from '../../kit/http/page-members.ts'
import { POINT_ROW } from '../locations/schemas.ts'

/** Subject of a run: the members that its event has. */
const SUBJECTS: { [name: string]: JsonSchema } = {
  trackerId: UUID,
  taskId: UUID,
  dataId: UUID,
  routingResultId: UUID,
  geofenceId: UUID,
  geofenceGroupId: UUID,
  transitionId: UUID,
  tripId: UUID,
  point: POINT_ROW,
}

export const RUN = answered(
  'AutomationRun',
  {
    _id: { ...UUID, description: 'Also the webhook-id of its deliveries.' },
    organizationId: UUID,
    automationId: UUID,
    event: { type: 'string' },
    at: { ...DATE_TIME, description: 'When the event happened.' },
    ...SUBJECTS,
    sequence: { type: 'integer', description: 'Rises with each run of the automation for the same subject.' },
    status: {
      type: 'string',
      enum: ['pending', 'succeeded', 'dead', 'skipped'],
      description: '`pending` also between attempts.',
    },
    reason: {
      type: 'string',
      enum: ['historical', 'loop', 'overflow', 'deactivated', 'hidden'],
      description: 'Why it was skipped.',
    },
    attempts: {
      type: 'array',
      items: answered(
        'AutomationAttempt',
        {
          at: DATE_TIME,
          statusCode: { type: 'integer' },
          durationMs: { type: 'number' },
          error: { type: 'string' },
          response: { type: 'string', description: 'The first KiB of the answer.' },
        },
        ['statusCode', 'error', 'response'],
      ),
    },
    nextAttemptAt: DATE_TIME,
    createdAt: DATE_TIME,
  },
  [...Object.keys(SUBJECTS), 'reason', 'nextAttemptAt'],
)

export const RUN_EXAMPLE = {
  _id: '2f1c9a52-6a0e-5c1f-8d3b-7a6b5c4d3e2f',
  organizationId: '0190f3a2-7c00-7a11-8b22-aabbccddeeff',
  automationId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a',
  event: 'onGeofenceEntry',
  at: '2026-01-01T08:00:00.000Z',
  trackerId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6b',
  sequence: 7,
  status: 'succeeded',
  attempts: [{ at: '2026-01-01T08:00:01.000Z', statusCode: 200, durationMs: 12, response: 'ok' }],
  createdAt: '2026-01-01T08:00:00.500Z',
}
