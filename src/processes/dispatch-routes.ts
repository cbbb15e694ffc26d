import { DISPATCH_ROUTES, type DispatchData } from '../features/routing/processes.ts'
import { RoutingWriter } from '../features/routing/routing-writer.ts'
import type { RouteValues } from '../features/routing/views.ts'
import { TaskWriter } from '../features/tasks/task-writer.ts'
import { Failure, unlessGone } from '../kernel/errors.ts'
import { defineProcess, type OriginOf, type Process } from '../kit/commands/process.ts'
import { severalAtOnce } from '../kit/commands/several-at-once.ts'
import { allWrote } from '../kit/commands/wrote.ts'
import { formatTime } from '../kit/http/request-context.ts'
import type { Wrote } from '../kit/http/route.ts'
import type { ResourceServices } from '../kit/resource/declaration.ts'

const AT_ONCE = 8

/** Assigns the tasks of a plan to the users of its vehicles, then marks it as dispatched. */
export const dispatchRoutes = (services: ResourceServices): Process<DispatchData> => {
  const tasks = new TaskWriter(services)
  const results = new RoutingWriter(services)
  return defineProcess(DISPATCH_ROUTES, [
    { name: 'tasks', run: (data, originOf) => assignAll(tasks, data, originOf) },
    {
      name: 'result',
      run: ({ routingResultId, routes }, originOf) => {
        const origin = originOf()
        const written = results.update(origin, routingResultId, (before) =>
          before.state === 'planned'
            ? {
                state: 'dispatched',
                dispatchedAt: formatTime(origin.now),
                routes: before.routes.map((route, i) => ({ ...route, ...userOf(route, i, routes) })),
              }
            : {},
        )
        return unlessGone(written.then(({ wrote }) => wrote))
      },
    },
  ])
}

/** A plan that changed at the very moment of its dispatch may have a route that was not dispatched. */
const userOf = ({ vehicleId }: RouteValues, at: number, routes: DispatchData['routes']): { userId?: string } => {
  const route = routes.find((one, i) => (one.vehicleId === undefined ? i === at : one.vehicleId === vehicleId))
  return route === undefined ? {} : { userId: route.userId }
}

const assignAll = async (
  tasks: TaskWriter,
  { routingResultId, routes }: DispatchData,
  originOf: OriginOf,
): Promise<Wrote | undefined> => {
  const wrotes: (Wrote | undefined)[] = []
  const all = routes.flatMap(({ userId, taskIds }) => taskIds.map((taskId) => ({ userId, taskId })))
  await severalAtOnce(all, AT_ONCE, async ({ userId, taskId }) => {
    const origin = originOf(taskId)
    const metadata = { ...origin.metadata, actor: `routing:${routingResultId}` }
    const written = tasks.route({ ...origin, metadata }, taskId, userId, routingResultId)
    wrotes.push(await unlessRefused(written.then(({ wrote }) => wrote)))
  })
  return allWrote(...wrotes)
}

/** A task completed or deleted since the routes were checked is not assigned. */
const unlessRefused = async (write: Promise<Wrote | undefined>): Promise<Wrote | undefined> => {
  try {
    return await write
  } catch (error) {
    if (
      error instanceof Failure &&
      (error.code === 'not_found' || error.code === 'conflict' || error.code === 'invalid')
    )
      return undefined
    throw error
  }
}
