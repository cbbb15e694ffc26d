import type { AutomationEvent, RunTrigger } from '../../features/automations/events.ts'
import { RECORD, RECORD_STREAMS } from '../../features/data/events.ts'
import { DATA_TYPES, type DataTypeRow, type RecordRow, shownRecord } from '../../features/data/views.ts'
import { seesTask, TASK, TASK_STREAMS, type TaskRow, type TaskValues } from '../../features/tasks/views.ts'
import { seesHubs } from '../../kernel/caller.ts'
import { decodeJson, type RecordedEvent } from '../../kernel/event.ts'
import type { Row } from '../../kernel/table.ts'
import { idOfStream, type ResourceData } from '../../kit/commands/declared-event.ts'
import type { ActiveAutomations } from './active-automations.ts'
import type { EventSeen } from './event-seen.ts'
import type { SubjectRows } from './subject-rows.ts'

/** Streams whose events concern automations beside the decisions about trackers. */
export const SUBJECT_PREFIXES: readonly string[] = [TASK_STREAMS, RECORD_STREAMS]

const EVENTS: { readonly [type: string]: readonly AutomationEvent[] | undefined } = {
  [RECORD.created]: ['onDataSourceCreated'],
  [TASK.created]: ['onTaskCreated', 'onTaskAssigned', 'onTaskFinished'],
  [TASK.changed]: ['onTaskAssigned', 'onTaskFinished'],
}

/** Whether the organization has an automation that such an event may concern: most have none, and the event is not decoded. */
export const isAnyActive = async (active: ActiveAutomations, { type, metadata }: RecordedEvent): Promise<boolean> => {
  for (const event of EVENTS[type] ?? [])
    if ((await active.of(metadata.organizationId ?? '', event)).length > 0) return true
  return false
}

/** What an event of a task or a record is to automations: none, one, or for a task that is made assigned two. */
export const triggersOf = async (rows: SubjectRows, event: RecordedEvent): Promise<RunTrigger[]> => {
  const { stream, type, id: sourceId, revision, position } = event
  if (type !== TASK.created && type !== TASK.changed && type !== RECORD.created) return []
  const data = decodeJson<ResourceData>(event.data)
  const { organizationId, at } = data
  const row = rows.note(event, data)
  const common = { sourceId, organizationId, revision, position }
  if (type === RECORD.created)
    return [
      {
        ...common,
        event: 'onDataSourceCreated',
        subject: { type: 'record', id: idOfStream(stream) },
        at: Date.parse(at),
      },
    ]
  const after = row as TaskRow
  const before =
    type === TASK.created ? undefined : ((await rows.at(stream, organizationId, revision - 1)) as TaskRow | undefined)
  const subject = { type: 'task' as const, id: idOfStream(stream), hubId: after.hubId }
  const task = { ...common, subject }
  const triggers: RunTrigger[] = []
  if (type === TASK.created) triggers.push({ ...task, event: 'onTaskCreated', at: Date.parse(at) })
  if (gainsPeople(before, after)) triggers.push({ ...task, event: 'onTaskAssigned', at: Date.parse(at) })
  if (after.state === 'finished' && before?.state !== 'finished')
    triggers.push({ ...task, event: 'onTaskFinished', at: Date.parse(after.finishedAt ?? at) })
  return triggers
}

const gainsPeople = (before: TaskValues | undefined, after: TaskValues): boolean => {
  if (after.state !== 'assigned' && after.state !== 'inProgress') return false
  const known = before?.assigneeIds ?? []
  const isNewTeam = after.teamId !== undefined && after.teamId !== before?.teamId
  return isNewTeam || after.assigneeIds.some((id) => !known.includes(id)) || before?.state === 'new'
}

/** Looks subjects up in their own streams: as they are now, or for what was deleted as it last was. */
export interface SubjectServices {
  rows: SubjectRows
  /** A row of a table as it is now. */
  row(table: string, organizationId: string, id: string): Promise<Row | undefined>
}

/** A task or a record with what its event carries. */
export const seeSubject = async (services: SubjectServices, trigger: RunTrigger): Promise<EventSeen> =>
  trigger.subject.type === 'task' ? seeTask(services, trigger) : seeRecord(services, trigger)

const seeTask = async (
  { rows }: SubjectServices,
  { organizationId, subject, revision = 0, event }: RunTrigger,
): Promise<EventSeen> => {
  const stream = TASK_STREAMS + subject.id
  const now = (await rows.now(stream, organizationId)) as TaskRow | undefined
  const before = event === 'onTaskCreated' ? undefined : await rows.at(stream, organizationId, revision - 1)
  return {
    isFor: (editor) => now !== undefined && seesHubs(editor, [now.hubId]) && seesTask(editor, now),
    data: async () => ({ organizationId, task: now ?? { _id: subject.id }, before: before ?? null }),
  }
}

const seeRecord = async (
  { rows, row }: SubjectServices,
  { organizationId, subject }: RunTrigger,
): Promise<EventSeen> => {
  const kept = (await rows.now(RECORD_STREAMS + subject.id, organizationId)) as RecordRow | undefined
  const type = kept && ((await row(DATA_TYPES, organizationId, kept.dataTypeId)) as DataTypeRow | undefined)
  const { recordIds: _records, uniques: _uniques, ...record }: Row = kept ?? { _id: subject.id }
  return {
    isFor: () => kept !== undefined,
    data: async (viewer) => ({
      organizationId,
      record: kept === undefined ? record : shownRecord(viewer, type, record),
      dataType: type === undefined ? { _id: kept?.dataTypeId } : shownType(type),
    }),
  }
}

/** What of a type an event carries. */
const shownType = ({
  _id,
  organizationId,
  version,
  name,
  type,
  primaryKey,
  fields,
  createdAt,
  updatedAt,
}: DataTypeRow): Row => ({
  ...{ _id, organizationId, version, createdAt, updatedAt, name, type, primaryKey },
  fields: fields.map(({ no: _no, slot: _slot, formerNames: _former, ...field }) => field),
})
