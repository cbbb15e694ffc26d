import { pagesOf, type TableStore } from '../../engines/table-store.ts'
import { seesHubs, type UserCaller } from '../../kernel/caller.ts'
import { assertNoFaults, Failure, type FieldError } from '../../kernel/errors.ts'
import type { Row } from '../../kernel/table.ts'
import { NAMES_NOTHING } from '../../kit/resource/references.ts'
import { userHasHub, USERS_TABLE } from '../identity/views.ts'
import { isOver, seesTask, TASKS, type TaskRow } from '../tasks/views.ts'
import {
  heldTaskIds,
  OPEN_STATES,
  ROUTING_RESULTS,
  type RoutingRow,
  type RoutingValues,
  type VisitValues,
} from './views.ts'

export const VEHICLES_TABLE = 'vehicles'
const ROWS_AT_ONCE = 500
const FAULTS_MAX = 50
/** Results looked at together: each may have thousands of visits. */
const RESULTS_AT_ONCE = 10

export interface CheckedPlan extends Pick<RoutingValues, 'hubId' | 'routes' | 'unassigned'> {
  organizationId: string
  /** Absent if the service itself writes. */
  caller?: UserCaller
}

type Tables = Pick<TableStore, 'get' | 'getMany' | 'find'>

/** Rows by id, for many ids. */
export const rowsOf = async <R extends Row>(
  tables: Pick<TableStore, 'getMany'>,
  table: string,
  organizationId: string,
  ids: readonly string[],
): Promise<(R | undefined)[]> => {
  const rows: (R | undefined)[] = []
  for (let from = 0; from < ids.length; from += ROWS_AT_ONCE)
    rows.push(...(await tables.getMany<R>(table, organizationId, ids.slice(from, from + ROWS_AT_ONCE))))
  return rows
}

/**
 * A plan's tasks and vehicles exist, are of its hub, and not over; no task occurs twice. `known` were checked before.
 * @throws Failure invalid with the paths
 */
export const assertPlan = async (tables: Tables, plan: CheckedPlan, known: ReadonlySet<string>): Promise<void> => {
  const named = [
    ...plan.routes.flatMap(({ visits }, i) =>
      visits.map(({ taskId }, j) => ({ taskId, path: `/routes/${i}/visits/${j}/taskId` })),
    ),
    ...plan.unassigned.map(({ taskId }, i) => ({ taskId, path: `/unassigned/${i}/taskId` })),
  ]
  const faults = plan.routes.flatMap(({ visits }, i) =>
    visits.flatMap((visit, j) => (known.has(visit.taskId) ? [] : timeFaults(visit, `/routes/${i}/visits/${j}`))),
  )
  const seen = new Set<string>()
  for (const { taskId, path } of named) {
    if (seen.has(taskId)) faults.push({ path, message: 'is a task that stands in the plan already' })
    seen.add(taskId)
  }
  const fresh = named.filter(({ taskId }) => !known.has(taskId))
  faults.push(...(await taskFaults(tables, plan, fresh)), ...(await vehicleFaults(tables, plan, known)))
  assertNoFaults(faults.slice(0, FAULTS_MAX))
}

const timeFaults = ({ arrivalAt, departureAt }: VisitValues, path: string): FieldError[] => {
  const isBackward = arrivalAt !== undefined && departureAt !== undefined && departureAt < arrivalAt
  return isBackward ? [{ path: `${path}/departureAt`, message: 'must not be before arrivalAt' }] : []
}

export const taskFaults = async (
  tables: Pick<TableStore, 'getMany'>,
  { organizationId, caller, hubId }: Pick<CheckedPlan, 'organizationId' | 'caller' | 'hubId'>,
  named: readonly { taskId: string; path: string }[],
): Promise<FieldError[]> => {
  const ids = named.map(({ taskId }) => taskId)
  const tasks = await rowsOf<TaskRow>(tables, TASKS, organizationId, ids)
  return named.flatMap(({ path }, i) => {
    const task = tasks[i]
    const isSeen =
      task !== undefined && (caller === undefined || (seesHubs(caller, [task.hubId]) && seesTask(caller, task)))
    if (!isSeen) return [{ path, message: NAMES_NOTHING }]
    if (task.hubId !== hubId) return [{ path, message: 'is a task of another hub' }]
    return isOver(task) ? [{ path, message: `is a task that is ${task.state}` }] : []
  })
}

const vehicleFaults = async (tables: Tables, plan: CheckedPlan, known: ReadonlySet<string>): Promise<FieldError[]> => {
  const { organizationId, hubId, routes } = plan
  const named = routes.map(({ vehicleId }, i) => ({ vehicleId, path: `/routes/${i}/vehicleId` }))
  const fresh = named.filter(({ vehicleId }) => !known.has(vehicleId))
  const faults = await vehiclesFaults(tables, plan, fresh)
  for (const [i, { userId }] of routes.entries()) {
    if (userId === undefined || known.has(userId)) continue
    const user = await tables.get(USERS_TABLE, organizationId, userId)
    const path = `/routes/${i}/userId`
    if (user === undefined) faults.push({ path, message: NAMES_NOTHING })
    else if (!(await userHasHub(tables, organizationId, user, hubId)))
      faults.push({ path, message: 'is a user without access to the hub of the plan' })
  }
  return faults
}

export const vehiclesFaults = async (
  tables: Pick<TableStore, 'getMany'>,
  { organizationId, caller, hubId }: Pick<CheckedPlan, 'organizationId' | 'caller' | 'hubId'>,
  named: readonly { vehicleId: string; path: string }[],
): Promise<FieldError[]> => {
  const ids = named.map(({ vehicleId }) => vehicleId)
  const vehicles = await rowsOf(tables, VEHICLES_TABLE, organizationId, ids)
  return named.flatMap(({ path }, i) => {
    const vehicle = vehicles[i]
    const hubIds = vehicle?.hubId === undefined ? [] : [vehicle.hubId as string]
    if (vehicle === undefined || (caller !== undefined && !seesHubs(caller, hubIds)))
      return [{ path, message: NAMES_NOTHING }]
    return vehicle.hubId === undefined || vehicle.hubId === hubId
      ? []
      : [{ path, message: 'is a vehicle of another hub' }]
  })
}

/** @throws Failure conflict that lists the results that already have some of these tasks */
export const assertFree = async (
  tables: Pick<TableStore, 'find'>,
  organizationId: string,
  id: string,
  taskIds: readonly string[],
): Promise<void> => {
  const asked = new Set(taskIds)
  for (let from = 0; from < taskIds.length; from += ROWS_AT_ONCE) {
    const where = { taskIds: taskIds.slice(from, from + ROWS_AT_ONCE), state: [...OPEN_STATES] }
    const question = { where, limit: RESULTS_AT_ONCE }
    for await (const page of pagesOf<RoutingRow>(tables, ROUTING_RESULTS, organizationId, question))
      for (const { id: other, row } of page) {
        const taskId = other === id ? undefined : heldTaskIds(row).find((one) => asked.has(one))
        if (taskId === undefined) continue
        throw new Failure('conflict', {
          message: `The task ${taskId} is in the routing result ${other}, which is ${row.state}.`,
          extra: { routingResultId: other, taskId },
        })
      }
  }
}
