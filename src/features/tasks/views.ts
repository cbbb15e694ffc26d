import type { UserCaller } from '../../kernel/caller.ts'
import type { JsonObject } from '../../kernel/json.ts'
import type { Row } from '../../kernel/table.ts'
import { eventTypes } from '../../kit/commands/declared-event.ts'
import { type Audience, seesRow } from '../../kit/http/list-query.ts'
import type { AttachedFile } from '../../kit/files/attached-file.ts'

export const TASKS = 'tasks'
export const TASK = eventTypes('task')
export const TASK_STREAMS = 'task-'

export type TaskState = 'new' | 'assigned' | 'inProgress' | 'finished' | 'cancelled'

export const TASK_STATES: readonly TaskState[] = ['new', 'assigned', 'inProgress', 'finished', 'cancelled']

/** States of a task that is not over. */
export const OPEN_STATES: readonly TaskState[] = ['new', 'assigned', 'inProgress']

export interface Actor {
  type: string
  id: string
}

export const actorOf = (actor = 'service'): Actor => {
  const colon = actor.indexOf(':')
  return colon < 0 ? { type: actor, id: '' } : { type: actor.slice(0, colon), id: actor.slice(colon + 1) }
}

/** Offline work that left a change in force. */
export interface LateStep {
  type: 'start' | 'finish'
  /** Time at the device. */
  at: string
  by: string
  place?: JsonObject
}

export interface TaskValues {
  flowId: string
  flowVersion: number
  title: string
  hubId: string
  teamId?: string
  assigneeIds: string[]
  components: JsonObject
  /** Files attached to its components. */
  files?: AttachedFile[]
  dataSource?: { dataTypeId: string; dataId: string }
  window?: { from: string; to: string }
  lat?: number
  lng?: number
  state: TaskState
  createdBy: Actor
  assignedAt?: string
  startedAt?: string
  /** User who started it; absent if the service did, and in events of the previous version. */
  startedBy?: string
  startedPlace?: JsonObject
  finishedAt?: string
  finishedBy?: string
  finishedPlace?: JsonObject
  cancelledAt?: string
  cancelReason?: string
  reopenReason?: string
  /** Steps that arrived late and left a change in force, in order of arrival. */
  late?: LateStep[]
  /** Revisions of changes that took effect after a late step. */
  overtaken?: number[]
  /** Time of the last handover while it was in progress, if sent. */
  handedAt?: string
  /** Last write of each component, at the device, ms since the epoch. */
  filledAtMs?: { [componentId: string]: number }
  dueAt?: string
  scheduleId?: string
  routingResultId?: string
}

/** Members that the service stores for itself, besides the files. */
export const TASK_INTERNAL = ['late', 'overtaken', 'handedAt', 'filledAtMs'] as const

/** A row, or values, without the service's own members. */
export const withoutInternal = <R extends object>(row: R): Omit<R, (typeof TASK_INTERNAL)[number]> => {
  const { late: _late, overtaken: _overtaken, handedAt: _handed, filledAtMs: _filled, ...shown } = row as R & TaskValues
  return shown as unknown as Omit<R, (typeof TASK_INTERNAL)[number]>
}

export interface TaskRow extends Row, TaskValues {
  _id: string
  organizationId: string
  version: number
  createdAt: string
}

/** Terms of tasks with a window: finished after it, or not over. */
export const LATE = 'late'
export const OPEN = 'open'

/** Whether a task was finished after its window, or is open past it. */
export const isLate = ({ state, window, finishedAt = '' }: TaskValues, now: string): boolean => {
  if (window === undefined || state === 'cancelled') return false
  return (state === 'finished' ? finishedAt : now) > window.to
}

export const isOver = ({ state }: Pick<TaskValues, 'state'>): boolean => state === 'finished' || state === 'cancelled'

type TaskPeople = Pick<TaskValues, 'assigneeIds' | 'teamId'>

/** Users and team to whom a task is assigned. */
export const peopleOf = ({ assigneeIds, teamId }: TaskPeople): string[] =>
  teamId === undefined ? assigneeIds : [...assigneeIds, teamId]

/** Dispatchers see every task of their hubs, others only tasks assigned to them or to one of their teams. */
export const TASK_AUDIENCE: Audience = {
  field: 'people',
  keys: ({ permissions, userId, teamIds }) => (permissions.has('dispatch/task') ? undefined : [userId, ...teamIds]),
}

/** Whether a user of its hub may see a task. */
export const seesTask = (caller: UserCaller, task: TaskPeople): boolean =>
  seesRow(caller, { people: peopleOf(task) }, { audience: TASK_AUDIENCE })
