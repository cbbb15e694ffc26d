import type { UserCaller } from '../../kernel/caller.ts'
import type { JsonObject } from '../../kernel/json.ts'
import type { Row } from '../../kernel/table.ts'
import { eventTypes } from '../../kit/commands/declared-event.ts'
import type { AttachedFile } from '../../kit/files/attached-file.ts'

export const TASKS = 'tasks'
export const TASK = eventTypes('task')
export const TASK_STREAMS = 'task-'

export type TaskState = 'new' | 'assigned' | 'inProgress' | 'finished' | 'cancelled'

export const TASK_STATES: readonly TaskState[] = ['new', 'assigned', 'inProgress', 'finished', 'cancelled']

/** Those of a task that is not over. */
export const OPEN_STATES: readonly TaskState[] = ['new', 'assigned', 'inProgress']

/** Who did something. */
export interface Actor {
  type: string
  id: string
}

/** Who did something, as the metadata of its event says. */
export const actorOf = (actor = 'service'): Actor => {
  const colon = actor.indexOf(':')
  return colon < 0 ? { type: actor, id: '' } : { type: actor.slice(0, colon), id: actor.slice(colon + 1) }
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
  /** What is attached in its components. */
  files?: AttachedFile[]
  dataSource?: { dataTypeId: string; dataId: string }
  window?: { from: string; to: string }
  lat?: number
  lng?: number
  state: TaskState
  createdBy: Actor
  assignedAt?: string
  startedAt?: string
  finishedAt?: string
  cancelledAt?: string
  cancelReason?: string
  dueAt?: string
  scheduleId?: string
  routingResultId?: string
}

export interface TaskRow extends Row, TaskValues {
  _id: string
  organizationId: string
  version: number
  createdAt: string
}

export const isOver = ({ state }: Pick<TaskValues, 'state'>): boolean => state === 'finished' || state === 'cancelled'

/** Whether a user of its hub may see a task: whoever dispatches sees all, others what is theirs or their teams'. */
export const seesTask = (
  caller: UserCaller,
  { assigneeIds, teamId }: Pick<TaskValues, 'assigneeIds' | 'teamId'>,
): boolean =>
  caller.permissions.has('dispatch/task') ||
  assigneeIds.includes(caller.userId) ||
  (teamId !== undefined && caller.teamIds.includes(teamId))
