import type { Row } from '../../kernel/table.ts'
import type { Keyring } from '../../kit/keys/keyring.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import { pointShown } from '../transitions/views.ts'
import { openAnswer } from './sealed.ts'
import type { RunRow } from './views.ts'

const SUBJECT_MEMBERS = {
  tracker: 'trackerId',
  task: 'taskId',
  record: 'dataId',
  routingResult: 'routingResultId',
} as const

export const showRun = (keyring: Keyring, row: RunRow): Row => {
  const { _id, organizationId, automationId, sequence, status, reason, dueAt, createdAt, trigger } = row
  const { event, at, subject, geofence, trip, sourceId, point } = trigger
  return {
    _id,
    organizationId,
    automationId,
    event,
    at: formatTime(at),
    [SUBJECT_MEMBERS[subject.type]]: subject.id,
    ...(geofence !== undefined && {
      transitionId: sourceId,
      geofenceId: geofence.geofenceId,
      geofenceGroupId: geofence.geofenceGroupId,
    }),
    ...(trip !== undefined && { tripId: sourceId }),
    ...(point !== undefined && { point: pointShown(subject.id, point) }),
    sequence,
    status,
    ...(reason !== undefined && { reason }),
    attempts: row.attempts.map(({ at: attemptedAt, statusCode, durationMs, error, answer, wrote }) => ({
      at: formatTime(attemptedAt),
      ...(statusCode !== undefined && { statusCode }),
      durationMs,
      ...(error !== undefined && { error }),
      ...(answer !== undefined && { response: openAnswer(keyring, answer) }),
      ...(wrote !== undefined && { response: wrote }),
    })),
    ...(status === 'pending' && dueAt !== undefined && { nextAttemptAt: formatTime(dueAt) }),
    createdAt: formatTime(createdAt),
  }
}
