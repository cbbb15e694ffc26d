import { EVENTS } from '../../features/automations/event-table.ts'
import { type AutomationEvent, EVENT_DATA_TYPES, type RunTrigger } from '../../features/automations/events.ts'
import { RECORD, RECORD_STREAMS } from '../../features/data/events.ts'
import { DATA_TYPES, type DataTypeRow, type RecordRow, shownRecord } from '../../features/data/views.ts'
import { ROUTING_RESULT, ROUTING_RESULT_STREAMS, routingShown, type RoutingRow } from '../../features/routing/views.ts'
import { seesTask, TASK, TASK_STREAMS, type TaskRow, type TaskValues } from '../../features/tasks/views.ts'
import { seesHubs } from '../../kernel/caller.ts'
import { dataOf, type RecordedEvent } from '../../kernel/event.ts'
import type { Row } from '../../kernel/table.ts'
import { idOfStream, type ResourceData } from '../../kit/commands/declared-event.ts'
import type { ActiveAutomations } from './active-automations.ts'
import { type EventData, type EventSeen, FORMER_NAMES } from './event-seen.ts'
import type { SubjectRows } from './subject-rows.ts'

/** Streams whose events concern automations beside the decisions about trackers. */
export const SUBJECT_PREFIXES: readonly string[] = [TASK_STREAMS, RECORD_STREAMS, ROUTING_RESULT_STREAMS]

/** Events of automations that an event of the log may be, by its type. */
export const EVENTS_OF: { readonly [type: string]: readonly AutomationEvent[] | undefined } = {
  [RECORD.created]: ['onDataSourceCreated'],
  [TASK.created]: ['onTaskCreated', 'onTaskAssigned', 'onTaskFinished'],
  [TASK.changed]: ['onTaskAssigned', 'onTaskFinished'],
  [ROUTING_RESULT.created]: ['onRoutingResultFinished'],
  [ROUTING_RESULT.changed]: ['onRoutingResultFinished', 'onRoutingResultDispatched'],
}

/** Whether any source makes such an event: events of trackers are decided from points, all others are in the log. */
export const isFired = (event: AutomationEvent): boolean =>
  EVENT_DATA_TYPES[event] === 'locationHistory' || Object.values(EVENTS_OF).some((events) => events?.includes(event))

/** Whether such an event may concern an automation of the organization: mostly none, and it is not decoded. */
export const isAnyActive = (active: ActiveAutomations, { type, metadata }: RecordedEvent): boolean | Promise<boolean> =>
  anyOf(active, metadata.organizationId ?? '', EVENTS_OF[type] ?? [])

const anyOf = (
  active: ActiveAutomations,
  organizationId: string,
  [event, ...others]: readonly AutomationEvent[],
): boolean | Promise<boolean> => {
  if (event === undefined) return false
  const isActive = active.any(organizationId, event)
  if (isActive === true) return true
  const further = (): boolean | Promise<boolean> => anyOf(active, organizationId, others)
  return isActive === false ? further() : isActive.then((isKnown) => isKnown || further())
}

export interface HeardEvent {
  event: RecordedEvent
  /** Its events of automations: none, one, or two for a task that is made assigned. */
  triggers: readonly RunTrigger[]
  /** State of its subject after it, and before. */
  after?: Row
  before?: Row
}

export const heardEvent = async (rows: SubjectRows, event: RecordedEvent): Promise<HeardEvent> => {
  const { stream, type, id: sourceId, revision, position } = event
  if (EVENTS_OF[type] === undefined) return { event, triggers: [] }
  const data = dataOf<ResourceData>(event)
  const { organizationId } = data
  const at = Date.parse(data.at)
  const row = rows.note(event, data)
  const common = { sourceId, organizationId, revision, position }
  if (type === RECORD.created) {
    const subject = { type: 'record' as const, id: idOfStream(stream) }
    return { event, triggers: [{ event: 'onDataSourceCreated', subject, at, ...common }], after: row }
  }
  if (stream.startsWith(ROUTING_RESULT_STREAMS)) return heardRouting(rows, event, row as RoutingRow, at)
  const after = row as TaskRow
  const before =
    type === TASK.created ? undefined : ((await rows.at(stream, organizationId, revision - 1)) as TaskRow | undefined)
  const subject = { type: 'task' as const, id: idOfStream(stream), hubId: after.hubId }
  const triggers: RunTrigger[] = []
  if (type === TASK.created) triggers.push({ event: 'onTaskCreated', subject, at, ...common })
  if (gainsPeople(before, after)) triggers.push({ event: 'onTaskAssigned', subject, at, ...common })
  if (after.state === 'finished' && before?.state !== 'finished')
    triggers.push({ event: 'onTaskFinished', subject, at: Date.parse(after.finishedAt ?? data.at), ...common })
  return { event, triggers, after, ...(before !== undefined && { before }) }
}

/** A result is finished when it has its plan, and dispatched when its tasks are assigned. */
const heardRouting = async (
  rows: SubjectRows,
  event: RecordedEvent,
  after: RoutingRow,
  at: number,
): Promise<HeardEvent> => {
  const { stream, type, id: sourceId, revision, position } = event
  const { organizationId, state, hubId } = after
  const before = type === ROUTING_RESULT.created ? undefined : await rows.at(stream, organizationId, revision - 1)
  if (state === before?.state || (state !== 'planned' && state !== 'dispatched')) return { event, triggers: [] }
  const subject = { type: 'routingResult' as const, id: idOfStream(stream), hubId }
  const name = state === 'planned' ? 'onRoutingResultFinished' : 'onRoutingResultDispatched'
  return { event, triggers: [{ event: name, sourceId, organizationId, revision, position, subject, at }], after }
}

const gainsPeople = (before: TaskValues | undefined, after: TaskValues): boolean => {
  if (after.state !== 'assigned' && after.state !== 'inProgress') return false
  const known = before?.assigneeIds ?? []
  const isNewTeam = after.teamId !== undefined && after.teamId !== before?.teamId
  return isNewTeam || after.assigneeIds.some((id) => !known.includes(id)) || before?.state === 'new'
}

/** Looks subjects up in their own streams: in their present state, or the last one of a deleted subject. */
export interface SubjectServices {
  rows: SubjectRows
  row(table: string, organizationId: string, id: string): Promise<Row | undefined>
}

const STREAMS = {
  task: TASK_STREAMS,
  record: RECORD_STREAMS,
  routingResult: ROUTING_RESULT_STREAMS,
  tracker: 'tracker-',
}

/** The present task, record or routing result, with the data of its event. */
export const seeSubject = async (services: SubjectServices, trigger: RunTrigger): Promise<EventSeen> => {
  const { organizationId, subject, revision = 0, event } = trigger
  const isTask = subject.type === 'task'
  const stream = STREAMS[subject.type] + subject.id
  const now = await services.rows.now(stream, organizationId)
  const hasBefore = isTask && event !== 'onTaskCreated'
  return subjectSeen(
    services,
    trigger,
    now,
    hasBefore ? await services.rows.at(stream, organizationId, revision - 1) : undefined,
  )
}

/** The same for a row. */
export const subjectSeen = (
  services: SubjectServices,
  trigger: RunTrigger,
  row: Row | undefined,
  before: Row | undefined,
): EventSeen => {
  const { organizationId, subject, event } = trigger
  const { permission } = EVENTS[event]
  if (subject.type === 'record') return recordSeen(services, trigger, row as RecordRow | undefined)
  if (subject.type === 'routingResult') {
    const result = row as RoutingRow | undefined
    return {
      isFor: (editor) => result !== undefined && editor.permissions.has(permission) && seesHubs(editor, [result.hubId]),
      data: () => ({
        organizationId,
        routingResult: result === undefined ? { _id: subject.id } : routingShown(result),
      }),
    }
  }
  const task = row as TaskRow | undefined
  return {
    isFor: (editor) =>
      task !== undefined &&
      editor.permissions.has(permission) &&
      seesHubs(editor, [task.hubId]) &&
      seesTask(editor, task),
    data: () => ({ organizationId, task: task ?? { _id: subject.id }, before: before ?? null }),
  }
}

const recordSeen = (
  { row }: SubjectServices,
  { organizationId, subject, event }: RunTrigger,
  kept: RecordRow | undefined,
): EventSeen => ({
  isFor: (editor) => kept !== undefined && editor.permissions.has(EVENTS[event].permission),
  data: async (viewer) => {
    const type = kept && ((await row(DATA_TYPES, organizationId, kept.dataTypeId)) as DataTypeRow | undefined)
    const { recordIds: _records, uniques: _uniques, ...record }: Row = kept ?? { _id: subject.id }
    return {
      organizationId,
      record: kept === undefined ? record : shownRecord(viewer, type, record),
      dataType: type === undefined ? { _id: kept?.dataTypeId } : shownType(type),
      ...formerNamesOf(type),
    }
  },
})

/** The former names of a type's fields, unless another field has them now. */
const formerNamesOf = (type: DataTypeRow | undefined): Pick<EventData, typeof FORMER_NAMES> => {
  const taken = new Set(type?.fields.map(({ name }) => name))
  const pairs = (type?.fields ?? []).flatMap(({ name, formerNames = [] }) =>
    formerNames.filter((former) => !taken.has(former)).map((former) => [former, name] as const),
  )
  return pairs.length === 0 ? {} : { [FORMER_NAMES]: new Map(pairs) }
}

/** Part of a type in an event. */
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
