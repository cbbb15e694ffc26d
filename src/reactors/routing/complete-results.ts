import type { EventLog } from '../../engines/event-log.ts'
import { RoutingWriter } from '../../features/routing/routing-writer.ts'
import { ROUTING, ROUTING_RESULT, ROUTING_RESULT_STREAMS, type RoutingValues } from '../../features/routing/views.ts'
import { TASK, TASK_STREAMS, TASKS, OPEN_STATES, type TaskValues } from '../../features/tasks/views.ts'
import type { Clock } from '../../kernel/clock.ts'
import { unlessGone } from '../../kernel/errors.ts'
import { dataOf, type RecordedEvent } from '../../kernel/event.ts'
import type { Logger } from '../../kernel/logger.ts'
import { idOfStream, type ResourceData } from '../../kit/commands/declared-event.ts'
import { handleCommand } from '../../kit/commands/handle-command.ts'
import { idFrom } from '../../kit/commands/ids.ts'
import { Follower, type IsOurs } from '../../kit/consumers/follower.ts'
import type { Settle } from '../../kit/consumers/settle.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import { jobDecider } from '../../kit/jobs/life.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'

export const COMPLETE_ROUTES = 'complete-routes'

const SETTLE_MS = 5_000

export interface CompleteServices extends ResourceServices {
  clock: Clock
  logger: Logger
  settle: Settle
  isOurs?: IsOurs
}

/** Completes a routing result when the last of its tasks has ended or is gone; and ensures that a planning is a job. */
export const completeResults = (services: CompleteServices): Follower => {
  const writer = new RoutingWriter(services)
  return new Follower(services, {
    name: COMPLETE_ROUTES,
    source: { prefixes: [TASK_STREAMS, ROUTING_RESULT_STREAMS] },
    handle: async ({ events }, signal) => {
      const ended = new Map<string, { organizationId: string; event: RecordedEvent }>()
      for (const event of events) {
        if (event.type === ROUTING_RESULT.created) await ensureAsked(services.log, event)
        const { organizationId, values } = dataOf<ResourceData>(event)
        // The last of its tasks may have ended between its assignment and the end of the dispatch.
        if (event.type === ROUTING_RESULT.changed && values.state === 'dispatched')
          ended.set(idOfStream(event.stream), { organizationId, event })
        if (event.type !== TASK.changed && event.type !== TASK.deleted) continue
        const { routingResultId, state } = (values ?? {}) as unknown as Partial<TaskValues>
        const isOver = event.type === TASK.deleted || state === 'finished' || state === 'cancelled'
        if (routingResultId !== undefined && isOver) ended.set(routingResultId, { organizationId, event })
      }
      for (const [id, { organizationId, event }] of ended)
        if (!signal.aborted) await complete(services, writer, organizationId, id, event)
      return ended.size > 0 ? [] : undefined
    },
  }).start(services.tables)
}

/** Requests the planning of a result, if its maker did not get that far. */
const ensureAsked = async (log: EventLog, event: RecordedEvent): Promise<void> => {
  const { values } = dataOf<ResourceData>(event)
  const { state, asked, taskIds } = values as unknown as RoutingValues
  if (state !== 'planning' || asked === undefined) return
  const id = idOfStream(event.stream)
  let written = 0
  const ids = { next: () => idFrom(COMPLETE_ROUTES, 'ask', event.id, written++) }
  const requested = { ...asked, taskIds }
  const command = { kind: 'request', requested } as const
  const origin = { ids, metadata: event.metadata }
  await unlessGone(handleCommand(log, ROUTING.stream(id), jobDecider(ROUTING, id), command, origin))
}

/** @throws Error when the tables are behind. */
const complete = async (
  { tables, settle, clock }: CompleteServices,
  writer: RoutingWriter,
  organizationId: string,
  id: string,
  event: RecordedEvent,
): Promise<void> => {
  if ((await writer.load(organizationId, id))?.state !== 'dispatched') return
  if (!(await settle({ position: event.position, types: [event.type] }, SETTLE_MS)))
    throw new Error(`the tables do not have the change of ${event.stream} yet`)
  const where = { routingResultId: id, state: [...OPEN_STATES] }
  const { rows } = await tables.find(TASKS, organizationId, { where, limit: 1 })
  if (rows.length > 0) return
  const now = clock.now()
  let written = 0
  const ids = { next: () => idFrom(COMPLETE_ROUTES, id, event.id, written++) }
  const metadata = { organizationId, actor: `reactor:${COMPLETE_ROUTES}`, $causationId: event.id }
  await writer.update({ organizationId, now, ids, metadata }, id, ({ state }) =>
    state === 'dispatched' ? { state: 'completed', completedAt: formatTime(now) } : {},
  )
}
