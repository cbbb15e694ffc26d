import type { Row, TableDeclaration } from '../../kernel/table.ts'
import type { Fact } from '../../kernel/event.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import {
  AUTOMATION_CHANGED,
  AUTOMATION_CREATED,
  AUTOMATION_DEACTIVATED,
  AUTOMATION_DELETED,
  AUTOMATION_SECRET_ROTATED,
  isGeofenceEvent,
  partitionOfRuns,
  runIdOf,
  type AttemptMade,
  type AutomationChanged,
  type AutomationContent,
  type AutomationCreated,
  type AutomationDeactivated,
  type AutomationEvent,
  type AutomationSecretRotated,
  type Names,
  type Rules,
  type RunsOwed,
  type RunTrigger,
  type SkipReason,
} from './events.ts'

export interface AutomationRow extends Row {
  _id: string
  organizationId: string
  name: string
  event: AutomationEvent
  dataType: string
  automationType: string
  details: string
  rules: Rules
  isActive: boolean
  /** ms since the epoch, for display. */
  activatedAt: number
  /** Log position of its last activation: only events after it count, whatever the clocks say. */
  activatedPosition: number
  /** Present while active: key by which the dispatcher finds automations. */
  trigger?: string
  geofenceGroupId?: string
  /** Records named in its details: they cannot be deleted before it. */
  flowIds?: string[]
  hubIds?: string[]
  dataTypeIds?: string[]
  /** Other records named in its details. */
  names?: Names
  editorId: string
  secret: string
  previousSecret?: { secret: string; until: number }
  notice?: Notice
  version: number
  /** RFC 3339. */
  createdAt: string
  updatedAt: string
}

export type NoticeReason =
  | AutomationDeactivated['reason']
  | 'editorGone'
  | 'editorLacksPermission'
  | 'editorLacksHubs'
  | 'editorLacksRight'
  | 'groupGone'
  | 'flowGone'
  | 'dataTypeGone'
  | 'hubGone'
  | 'peopleGone'
  | 'notRolledOut'
  | 'neverFired'

/** `at` is the time of a deactivation by the service (RFC 3339); absent for a finding of a read. */
export interface Notice {
  reason: NoticeReason
  at?: string
}

export const AUTOMATIONS: TableDeclaration = {
  name: 'automations',
  version: 2,
  equality: [
    '_id',
    'name',
    'event',
    'dataType',
    'automationType',
    'isActive',
    'geofenceGroupId',
    'flowIds',
    'hubIds',
    'dataTypeIds',
    'trigger',
  ],
  range: ['name', 'createdAt', 'updatedAt'],
  text: ['name'],
}

/** Key that finds active automations: the event, and for geofence events also the group. */
export const triggerKey = (event: AutomationEvent, geofenceGroupId: string | undefined): string =>
  isGeofenceEvent(event) ? `${event}:${geofenceGroupId}` : event

/**
 * The row after one more event of its stream; undefined once deleted. Every event raises the version.
 * @param position of the event in the log, if known: only the table needs it
 */
export const evolveRow = (
  row: AutomationRow | undefined,
  { type, data }: Fact,
  position = -1,
): AutomationRow | undefined => {
  if (type === AUTOMATION_CREATED) return createdRow(data as AutomationCreated, position)
  if (row === undefined || type === AUTOMATION_DELETED) return undefined
  const next = { ...row, version: row.version + 1 }
  switch (type) {
    case AUTOMATION_CHANGED:
      return changedRow(next, data as AutomationChanged, position)
    case AUTOMATION_SECRET_ROTATED: {
      const { secret, previousUntil, at } = data as AutomationSecretRotated
      return {
        ...next,
        secret,
        previousSecret: { secret: row.secret, until: previousUntil },
        updatedAt: formatTime(at),
      }
    }
    case AUTOMATION_DEACTIVATED: {
      const { reason, at } = data as AutomationDeactivated
      return {
        ...next,
        isActive: false,
        trigger: undefined,
        notice: { reason, at: formatTime(at) },
        updatedAt: formatTime(at),
      }
    }
    default:
      return next
  }
}

const createdRow = (
  { _id, organizationId, content, secret, editorId, at }: AutomationCreated,
  activatedPosition: number,
): AutomationRow => ({
  _id,
  organizationId,
  ...contentOf(content),
  activatedAt: at,
  activatedPosition,
  editorId,
  secret,
  version: 1,
  createdAt: formatTime(at),
  updatedAt: formatTime(at),
})

const changedRow = (
  row: AutomationRow,
  { content, editorId, at }: AutomationChanged,
  position: number,
): AutomationRow => {
  const isActivated = content.isActive && !row.isActive
  return {
    ...row,
    ...contentOf(content),
    activatedAt: isActivated ? at : row.activatedAt,
    activatedPosition: isActivated ? position : row.activatedPosition,
    notice: content.isActive ? undefined : row.notice,
    editorId,
    updatedAt: formatTime(at),
  }
}

const contentOf = (
  content: AutomationContent,
): AutomationContent & Pick<AutomationRow, 'trigger' | 'geofenceGroupId' | 'flowIds' | 'hubIds' | 'dataTypeIds'> => {
  const group = content.rules.fields.geofenceGroupId
  const geofenceGroupId = isGeofenceEvent(content.event) && typeof group === 'string' ? group : undefined
  return {
    ...content,
    names: content.names,
    geofenceGroupId,
    flowIds: content.names?.flows,
    hubIds: content.names?.hubs,
    dataTypeIds: content.names?.dataTypes,
    trigger: content.isActive ? triggerKey(content.event, geofenceGroupId) : undefined,
  }
}

export type RunStatus = 'pending' | 'succeeded' | 'dead' | 'skipped'

export interface RunRow extends Row {
  _id: string
  organizationId: string
  automationId: string
  /** Subject of the event: its visibility decides who sees the run. */
  subjectId: string
  partition: number
  sequence: number
  trigger: RunTrigger
  status: RunStatus
  reason?: SkipReason
  attempts: Pick<AttemptMade, 'at' | 'statusCode' | 'durationMs' | 'error' | 'answer' | 'wrote' | 'failures'>[]
  /** Time of the next attempt; only while pending. */
  dueAt?: number
  /** Time at which the run was owed, ms since the epoch. */
  createdAt: number
}

/** Initial rows of the runs that an event owes. */
export const owedRows = ({ firstSequence, owedAt, owed }: RunsOwed, stream: string): RunRow[] => {
  const partition = partitionOfRuns(stream)
  let sequence = firstSequence
  return owed.flatMap(({ trigger, runs }) =>
    runs.map(({ automationId, reason }) => ({
      _id: runIdOf(trigger, automationId),
      organizationId: trigger.organizationId,
      automationId,
      subjectId: trigger.subject.id,
      partition,
      sequence: sequence++,
      trigger,
      status: reason === undefined ? 'pending' : 'skipped',
      ...(reason !== undefined && { reason }),
      attempts: [],
      createdAt: owedAt,
    })),
  )
}

/** `audience` of runs of records; for trackers it is the tracker's id, for tasks the id of their hub at the time. */
export const RECORDS_AUDIENCE = 'records'

/** Runs as lists query them: 30 days are read from the history. */
export const AUTOMATION_RUNS: TableDeclaration = {
  name: 'automationRuns',
  version: 4,
  equality: ['automationId', 'status', 'event', 'subjectId', 'audience'],
  range: ['createdAt'],
}
