import { Failure, type FieldError } from '../../kernel/errors.ts'
import type { Row } from '../../kernel/table.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import { userHasHub, USERS_TABLE } from '../identity/views.ts'
import { isOver, TASKS, type TaskRow } from '../tasks/views.ts'
import { rowsOf, VEHICLES_TABLE } from './check-plan.ts'
import type { DispatchData } from './processes.ts'
import type { RoutingValues } from './views.ts'

/**
 * Assignments of a plan's tasks: to the present users of its vehicles. Tasks that are over by now stay as they are.
 * @throws Failure conflict if a plan is not planned, or nobody of a route may have its tasks
 */
export const dispatchOf = async (
  { tables }: Pick<ResourceServices, 'tables'>,
  organizationId: string,
  routingResultId: string,
  { state, hubId, routes }: Pick<RoutingValues, 'state' | 'hubId' | 'routes'>,
): Promise<DispatchData> => {
  if (state !== 'planned')
    throw new Failure('conflict', { message: `A routing result that is ${state} cannot be dispatched.` })
  const vehicles = await rowsOf(
    tables,
    VEHICLES_TABLE,
    organizationId,
    routes.map(({ vehicleId }) => vehicleId),
  )
  const errors: FieldError[] = []
  const dispatched: DispatchData['routes'] = []
  for (const [i, { vehicleId, visits }] of routes.entries()) {
    const fault = await userFault(tables, organizationId, hubId, vehicles[i])
    if (fault !== undefined) errors.push({ path: `/routes/${i}`, message: fault })
    const tasks = await rowsOf<TaskRow>(
      tables,
      TASKS,
      organizationId,
      visits.map(({ taskId }) => taskId),
    )
    const moved = tasks.findIndex((task) => task !== undefined && !isOver(task) && task.hubId !== hubId)
    if (moved >= 0)
      errors.push({ path: `/routes/${i}/visits/${moved}`, message: 'is a task that moved to another hub' })
    const taskIds = visits.flatMap(({ taskId }, j) => (tasks[j] === undefined || isOver(tasks[j]) ? [] : [taskId]))
    dispatched.push({ vehicleId, userId: String(vehicles[i]?.userId), taskIds })
  }
  if (errors.length > 0)
    throw new Failure('conflict', {
      message: `The routes cannot be dispatched: ${errors[0].path} ${errors[0].message}.`,
      errors,
    })
  if (dispatched.every(({ taskIds }) => taskIds.length === 0))
    throw new Failure('conflict', { message: 'The routing result has no task that could be assigned.' })
  return { routingResultId, routes: dispatched }
}

const userFault = async (
  tables: ResourceServices['tables'],
  organizationId: string,
  hubId: string,
  vehicle: Row | undefined,
): Promise<string | undefined> => {
  if (vehicle === undefined) return 'has a vehicle that is not there any more'
  if (vehicle.userId === undefined) return 'has a vehicle without a user'
  const user = await tables.get(USERS_TABLE, organizationId, vehicle.userId as string)
  if (user === undefined) return 'has a vehicle without a user'
  return (await userHasHub(tables, organizationId, user, hubId)) ? undefined : 'has a user without access to the hub'
}
