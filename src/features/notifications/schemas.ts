import { answered, DATE_TIME, UUID } from '../../kit/http/page-members.ts'

export const NOTIFICATION = answered(
  'Notification',
  {
    _id: UUID,
    organizationId: UUID,
    version: { type: 'integer', minimum: 1 },
    subject: { type: 'string' },
    text: { type: 'string' },
    isRead: { type: 'boolean' },
    readAt: DATE_TIME,
    automationId: { ...UUID, description: 'The automation that told it.' },
    event: { type: 'string', description: 'What it was told for, such as `onTaskFinished`.' },
    about: answered(undefined, {
      type: { type: 'string', enum: ['tracker', 'task', 'record', 'routingResult'] },
      id: UUID,
    }),
    createdAt: DATE_TIME,
  },
  ['subject', 'readAt'],
)

export const NOTIFICATION_EXAMPLE = {
  _id: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a',
  organizationId: '0190f3a2-7c00-7a11-8b22-aabbccddeeff',
  version: 1,
  subject: 'Delivered',
  text: 'Deliver 3 parcels is finished.',
  isRead: false,
  automationId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6b',
  event: 'onTaskFinished',
  about: { type: 'task', id: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6c' },
  createdAt: '2026-01-01T08:00:00.000Z',
}
