import { pagesOf } from '../../engines/table-store.ts'
import { VEHICLES_TABLE } from '../../features/routing/check-plan.ts'
import { withoutUser, withoutVehicles } from '../../features/routing/leaving.ts'
import { RoutingWriter } from '../../features/routing/routing-writer.ts'
import { ROUTING_RESULTS, type RoutingRow, type RoutingValues } from '../../features/routing/views.ts'
import { Failure } from '../../kernel/errors.ts'
import { decodeJson } from '../../kernel/event.ts'
import { idOfStream, type ResourceData } from '../../kit/commands/declared-event.ts'
import { idSource } from '../../kit/commands/ids.ts'
import { Follower } from '../../kit/consumers/follower.ts'
import { pause } from '../../kit/consumers/retry.ts'
import { LATE_WRITES_MS } from '../../kit/resource/writes.ts'
import { type Deletion, deletionsOf, settled } from '../references/take-out.ts'
import type { CompleteServices } from './complete-results.ts'

export const LEAVE_ROUTES = 'leave-routes'

/** Each may have thousands of visits. */
const RESULTS_AT_ONCE = 10

/** Takes deleted vehicles and users out of routes that are planned. Dispatched ones keep who drove them. */
export const leaveRoutes = (services: CompleteServices): Follower => {
  const declarations = [VEHICLES_TABLE, 'users'].map((plural) => services.resources.declarationOf(plural))
  const deletionsIn = deletionsOf(declarations)
  return new Follower(services, {
    name: LEAVE_ROUTES,
    source: { prefixes: declarations.map(({ noun }) => `${noun}-`) },
    handle: async ({ events, caughtUp }, signal) => {
      const deletions = deletionsIn(events)
      if (deletions.length === 0) return undefined
      for (const deletion of deletions) if (!signal.aborted) await leave(services, deletion)
      if (!caughtUp) return []
      // A plan that came to name one at that very moment.
      await pause(services.clock, LATE_WRITES_MS, signal)
      for (const deletion of deletions) if (!signal.aborted) await leave(services, deletion)
      return []
    },
  }).start(services.tables)
}

const leave = async (services: CompleteServices, { event, declaration }: Deletion): Promise<void> => {
  const { tables, clock } = services
  await settled(services, event)
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
      await writer.update({ organizationId, now, ids: idSource(now), metadata }, id, next).catch(unlessDeleted)
    }
}

const unlessDeleted = (error: unknown): undefined => {
  if (!(error instanceof Failure && error.code === 'not_found')) throw error
}
