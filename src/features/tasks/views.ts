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

/** Those of a task that is not over. */
export const OPEN_STATES: readonly TaskState[] = ['new', 'assigned', 'inProgress']

export interface Actor {
  type: string
  id: string
}

/** Actor of an event, as its metadata says. */
export const actorOf = (actor = 'service'): Actor => {
  const colon = actor.indexOf(':')
  return colon < 0 ? { type: actor, id: '' } : { type: actor.slice(0, colon), id: actor.slice(colon + 1) }
}

/** Work done without a connection that left a change in force. */
export interface LateStep {
  type: 'start' | 'finish'
  /** At the device. */
  at: string
  /** The user who did it. */
  by: string
  place?: JsonObject
}

/** What the events of a task hold. */
export interface TaskValues {
  flowId: string
  flowVersion: number
  title: string
  hubId: string
  teamId?: string
  assigneeIds: string[]
  components: JsonObject
  /** Files attached in its components. */
  files?: AttachedFile[]
  dataSource?: { dataTypeId: string; dataId: string }
  window?: { from: string; to: string }
  lat?: number
  lng?: number
  state: TaskState
  createdBy: Actor
  assignedAt?: string
  startedAt?: string
  /** The user who did; absent where the service did, and in what the version before wrote. */
  startedBy?: string
  startedPlace?: JsonObject
  finishedAt?: string
  finishedBy?: string
  finishedPlace?: JsonObject
  cancelledAt?: string
  cancelReason?: string
  reopenReason?: string
  /** Steps that came late and left a change in force, in the order in which they came. */
  late?: LateStep[]
  /** Revisions of changes that were after what came late. */
  overtaken?: number[]
  /** When it was last given to others while it was under way, where that was said. */
  handedAt?: string
  /** When each component was last written, at the device, ms since the epoch. */
  filledAtMs?: { [componentId: string]: number }
  dueAt?: string
  scheduleId?: string
  routingResultId?: string
}

/** What the service keeps of a task for itself, beside its files. */
export const TASK_INTERNAL = ['late', 'overtaken', 'handedAt', 'filledAtMs'] as const

/** A row, or values, without what the service keeps for itself. */
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

/** By what a task with a window is found: finished after it, or not over. */
export const LATE = 'late'
export const OPEN = 'open'

/** Whether a task was finished after its window, or is open past it. */
export const isLate = ({ state, window, finishedAt = '' }: TaskValues, now: string): boolean => {
  if (window === undefined || state === 'cancelled') return false
  return (state === 'finished' ? finishedAt : now) > window.to
}

export const isOver = ({ state }: Pick<TaskValues, 'state'>): boolean => state === 'finished' || state === 'cancelled'

type TaskPeople = Pick<TaskValues, 'assigneeIds' | 'teamId'>

/** Users and the team that a task is assigned to. */
export const peopleOf = ({ assigneeIds, teamId }: TaskPeople): string[] =>
  teamId === undefined ? assigneeIds : [...assigneeIds, teamId]

/** Dispatchers see every task of their hubs, others what is assigned to them or to a team of theirs. */
export const TASK_AUDIENCE: Audience = {
  field: 'people',
  keys: ({ permissions, userId, teamIds }) => (permissions.has('dispatch/task') ? undefined : [userId, ...teamIds]),
}

/** Whether a user of its hub may see a task. */
export const seesTask = (caller: UserCaller, task: TaskPeople): boolean =>
  seesRow(caller, { people: peopleOf(task) }, { audience: TASK_AUDIENCE })
