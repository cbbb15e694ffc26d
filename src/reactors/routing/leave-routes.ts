import { pagesOf } from '../../engines/table-store.ts'
import { VEHICLES_TABLE } from '../../features/routing/check-plan.ts'
import { withoutUser, withoutVehicles } from '../../features/routing/leaving.ts'
import { RoutingWriter } from '../../features/routing/routing-writer.ts'
import { ROUTING_RESULTS, type RoutingRow, type RoutingValues } from '../../features/routing/views.ts'
import { unlessGone } from '../../kernel/errors.ts'
import { decodeJson } from '../../kernel/event.ts'
import { idOfStream, type ResourceData } from '../../kit/commands/declared-event.ts'
import { idSource } from '../../kit/commands/ids.ts'
import type { Follower } from '../../kit/consumers/follower.ts'
import { type Deletion, forEachDeletion } from '../references/deletions.ts'
import type { CompleteServices } from './complete-results.ts'

export const LEAVE_ROUTES = 'leave-routes'

/** Each may have thousands of visits. */
const RESULTS_AT_ONCE = 10

/** Takes deleted vehicles and users out of routes that are planned. Dispatched ones keep who drove them. */
export const leaveRoutes = (services: CompleteServices): Follower => {
  const declarations = [VEHICLES_TABLE, 'users'].map((plural) => services.resources.declarationOf(plural))
  return forEachDeletion(services, LEAVE_ROUTES, declarations, (deletion) => leave(services, deletion))
}

const leave = async (services: CompleteServices, { event, declaration }: Deletion): Promise<void> => {
  const { tables, clock } = services
  const { organizationId } = decodeJson<ResourceData>(event.data)
  const gone = idOfStream(event.stream)
  const without = (plan: RoutingValues): Partial<RoutingValues> =>
    declaration.plural === VEHICLES_TABLE ? withoutVehicles(plan, (id) => id === gone) : withoutUser(plan, gone)
  const writer = new RoutingWriter(services)
  const question = { where: { state: 'planned' }, limit: RESULTS_AT_ONCE }
  for await (const page of pagesOf<RoutingRow>(tables, ROUTING_RESULTS, organizationId, question))
    for (const { id, row } of page) {
      if (Object.keys(without(row)).length === 0) continue
      const now = clock.now()
      const metadata = { organizationId, actor: `reactor:${LEAVE_ROUTES}`, $causationId: event.id }
      const next = (plan: RoutingValues) => (plan.state === 'planned' ? without(plan) : {})
      await unlessGone(writer.update({ organizationId, now, ids: idSource(now), metadata }, id, next))
    }
}
