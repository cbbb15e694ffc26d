import type { RoutingValues } from './views.ts'

type Plan = Pick<RoutingValues, 'routes' | 'unassigned'>

/** The part of a plan that changes where vehicles are gone: the tasks of their routes are in none. */
export const withoutVehicles = (
  { routes, unassigned }: Plan,
  isGone: (vehicleId: string) => boolean,
): Partial<Plan> => {
  const gone = routes.filter(({ vehicleId }) => isGone(vehicleId))
  if (gone.length === 0) return {}
  const left = gone.flatMap(({ visits }) => visits.map(({ taskId }) => ({ taskId, reason: 'noVehicle' })))
  return { routes: routes.filter((route) => !gone.includes(route)), unassigned: [...unassigned, ...left] }
}

/** The part of a plan that changes where a user is gone: their routes have nobody. */
export const withoutUser = ({ routes }: Pick<Plan, 'routes'>, gone: string): Partial<Plan> =>
  routes.every(({ userId }) => userId !== gone)
    ? {}
    : {
        routes: routes.map(({ userId, ...route }) =>
          userId === undefined || userId === gone ? route : { ...route, userId },
        ),
      }
