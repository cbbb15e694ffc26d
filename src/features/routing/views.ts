import { seesHubs, type UserCaller } from '../../kernel/caller.ts'
import type { Row, TableDeclaration } from '../../kernel/table.ts'
import { eventTypes } from '../../kit/commands/declared-event.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import { defineJob, type JobBounds, type JobRow, type JobView } from '../../kit/jobs/job.ts'
import type { RoutingRequested } from './events.ts'

export const ROUTING_RESULTS = 'routingResults'
export const ROUTING_RESULT = eventTypes('routingResult')
export const ROUTING_RESULT_STREAMS = 'routingResult-'

export type RoutingState = 'planning' | 'planned' | 'failed' | 'dispatched' | 'completed'

export const ROUTING_STATES: readonly RoutingState[] = ['planning', 'planned', 'failed', 'dispatched', 'completed']

/** States in which a task is in one result at most. */
export const OPEN_STATES: readonly RoutingState[] = ['planning', 'planned', 'dispatched']

export interface VisitValues {
  taskId: string
  arrivalAt?: string
  departureAt?: string
  actualArrivalAt?: string
  actualDepartureAt?: string
  /** From the previous place. */
  distanceMeters?: number
}

export interface RouteValues {
  vehicleId: string
  userId?: string
  distanceMeters?: number
  durationSeconds?: number
  visits: VisitValues[]
}

export interface RoutingValues {
  name?: string
  hubId: string
  source: 'planner' | 'import' | 'external'
  state: RoutingState
  routes: RouteValues[]
  unassigned: { taskId: string; reason: string }[]
  error?: { code: string; message: string }
  dispatchedAt?: string
  completedAt?: string
  taskIds: string[]
  /** The planning is to end with the best plan so far. */
  isStopped?: boolean
  /** Input of the planner, until it has ended. */
  asked?: Omit<RoutingRequested, 'taskIds'>
}

/** Tasks that no other open result may have: what a dispatched plan left out is free to be planned again. */
export const heldTaskIds = ({
  state,
  taskIds,
  unassigned,
}: Pick<RoutingValues, 'state' | 'taskIds' | 'unassigned'>): readonly string[] => {
  if (!OPEN_STATES.includes(state)) return []
  if (state !== 'dispatched') return taskIds
  const left = new Set(unassigned.map(({ taskId }) => taskId))
  return taskIds.filter((taskId) => !left.has(taskId))
}

export type RoutingRow = Row &
  RoutingValues & { _id: string; organizationId: string; version: number; createdAt: string }

/** A row for webhooks and rules: without internal members. */
export const routingShown = ({ taskIds: _taskIds, isStopped: _isStopped, asked: _asked, ...shown }: Row): Row => shown

/** A planning, as a job. Its id is that of its routing result. */
export interface RoutingJob extends JobRow<{ routes: number; unassigned: number; steps: number }> {
  hubId: string
  userId: string
}

/** Streams `routing-<id>`. */
export const ROUTING = defineJob<RoutingRequested, RoutingJob>({
  kind: 'routing',
  row: ({ hubId, userId }) => ({ hubId, userId, total: 100 }),
  attemptsMax: 3,
})

export const ROUTINGS: TableDeclaration = {
  name: 'routings',
  version: 1,
  equality: ['status', 'hubId'],
  range: ['createdAt'],
}

export const ROUTING_BOUNDS: JobBounds = { table: ROUTINGS, plural: 'plannings of routes', organizationMax: 20 }

export const routingJobShown = (row: RoutingJob): { [member: string]: unknown } => {
  const {
    _id,
    organizationId,
    hubId,
    userId,
    status,
    total = 100,
    processed,
    result,
    error,
    createdAt,
    updatedAt,
  } = row
  return {
    _id,
    organizationId,
    routingResultId: _id,
    hubId,
    userId,
    status,
    total,
    processed,
    ...(result ?? {}),
    ...(error !== undefined && { error }),
    createdAt: formatTime(createdAt),
    updatedAt: formatTime(updatedAt),
    version: row.version,
  }
}

export const seesRouting = (caller: { hubIds: 'all' | readonly string[] }, { hubId }: { hubId: string }): boolean =>
  seesHubs(caller as UserCaller, [hubId])

export const ROUTING_VIEW: JobView<RoutingJob> = {
  kind: ROUTING,
  shown: routingJobShown,
  sees: (caller, row) => caller.permissions.has('view/routing') && seesRouting(caller, row),
}
