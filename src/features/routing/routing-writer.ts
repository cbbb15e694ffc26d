import { isDeepStrictEqual } from 'node:util'
import { Failure, invalid } from '../../kernel/errors.ts'
import { joined, type JsonObject } from '../../kernel/json.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import { changedValues, valuesCheck } from '../../kit/resource/values-check.ts'
import { assertExists, assertHubs } from '../../kit/resource/references.ts'
import type { ResourceWriter } from '../../kit/resource/write.ts'
import type { Change, Deletion, ResourceWrites, WriteOrigin, Written } from '../../kit/resource/writes.ts'
import { withDefaults } from '../../kit/resource/pick.ts'
import type { RoutingRequested } from './events.ts'
import { assertFree, assertPlan } from './check-plan.ts'
import { routingResult, TASKS_MAX, taskIdsOf } from './result.ts'
import { ROUTING_RESULT_STREAMS, type RoutingValues } from './views.ts'

/** Writes of routing results. Without a caller the service itself writes: imports, the planner, dispatching. */
export class RoutingWriter implements ResourceWrites {
  private readonly services: ResourceServices
  private readonly writer: ResourceWriter
  private readonly check = valuesCheck(routingResult.declaration)

  constructor(services: ResourceServices) {
    this.services = services
    this.writer = routingResult.writer(services)
  }

  /**
   * Stores a plan that was made elsewhere (`source` external), or came from a file (`import`): it is complete at once.
   * Tasks in `known` were checked before: the tables may not have them yet.
   * @throws Failure invalid with the paths of invalid references, conflict if another open result has one of its tasks
   */
  create(origin: WriteOrigin, body: JsonObject, known: ReadonlySet<string> = new Set()): Promise<Written> {
    const id = this.writer.idOf(origin, body)
    return this.writer.make(origin, id, async () => {
      if (body.source === 'planner') throw invalid('/source', 'is what POST /routing makes; say external or import')
      const values = this.whole(body)
      const taskIds = await this.assertPlan(origin, id, values, known)
      return { body, extra: { state: 'planned', taskIds } }
    })
  }

  /** Creates a result for the planner to fill. @throws Failure as `create` */
  begin(origin: WriteOrigin, id: string, { taskIds, ...asked }: RoutingRequested): Promise<Written> {
    const { organizationId } = origin
    const { hubId } = asked
    return this.writer.make(origin, id, async () => {
      await assertFree(this.services.tables, organizationId, id, taskIds)
      return { body: { hubId, source: 'planner' }, extra: { state: 'planning', taskIds, asked: { ...asked } } }
    })
  }

  /**
   * Routes change only while planned, and not while they are being dispatched. `made` is `known` of `create`.
   * @throws Failure as `create`, stale_version
   */
  async change(origin: WriteOrigin, change: Change, made: ReadonlySet<string> = new Set()): Promise<Written> {
    await this.services.processes.settle(change.id)
    const next = async (before: JsonObject): Promise<JsonObject> => {
      if (change.body.source !== undefined && change.body.source !== before.source)
        throw invalid('/source', 'cannot be changed')
      const values = changedValues(routingResult.declaration, this.check, before, change)
      const isSame = ['hubId', 'routes', 'unassigned'].every((name) => isDeepStrictEqual(values[name], before[name]))
      if (isSame) return values
      if (before.state !== 'planned')
        throw new Failure('conflict', { message: `Routes that are ${before.state} cannot be changed.` })
      const known = new Set([
        ...made,
        ...(before.hubId === values.hubId ? namedIn(before as unknown as RoutingValues) : []),
      ])
      const plan = values as unknown as RoutingValues
      return { ...values, taskIds: await this.assertPlan(origin, change.id, plan, known) }
    }
    return this.writer.update(origin, change.id, next, change.expectedVersion)
  }

  async delete(origin: WriteOrigin, deletion: Deletion): Promise<Written> {
    await this.services.processes.settle(deletion.id)
    return this.writer.delete(origin, deletion)
  }

  /** Updates by the service itself. */
  update(origin: WriteOrigin, id: string, next: (before: RoutingValues) => Partial<RoutingValues>): Promise<Written> {
    return this.writer.update(origin, id, (before) =>
      joined(before, next(before as unknown as RoutingValues) as unknown as JsonObject),
    )
  }

  /** The result as of its stream, and what tables must have applied to show the same. */
  async now(id: string): Promise<Written> {
    const [event] = await this.services.log.read(ROUTING_RESULT_STREAMS + id, 'end', 1, 'backwards')
    const row = await this.writer.rowOf(id, await this.writer.load(id))
    return { row, ...(event !== undefined && { wrote: { position: event.position, types: [event.type] } }) }
  }

  /** Its values as of its stream; undefined if it does not exist. */
  async load(organizationId: string, id: string): Promise<RoutingValues | undefined> {
    const { state } = await this.writer.load(id)
    if (state.status !== 'live' || state.organizationId !== organizationId) return undefined
    return state.values as unknown as RoutingValues
  }

  private whole(body: JsonObject): RoutingValues {
    return withDefaults(routingResult.declaration.fields, body) as unknown as RoutingValues
  }

  private async assertPlan(
    { organizationId, caller }: WriteOrigin,
    id: string,
    values: RoutingValues,
    known: ReadonlySet<string>,
  ): Promise<string[]> {
    const { tables } = this.services
    const hubId = String(values.hubId).toLowerCase()
    // Faults of the hub are reported first: vehicles and tasks are checked against it.
    await assertExists(tables, 'hubs', organizationId, hubId, '/hubId')
    if (caller !== undefined) assertHubs(caller, { hubId }, 'hubId')
    const taskIds = taskIdsOf(values)
    if (taskIds.length > TASKS_MAX) throw invalid('/routes', `must not have more than ${TASKS_MAX} tasks in all`)
    await assertPlan(tables, { ...values, hubId, organizationId, caller }, known)
    await assertFree(tables, organizationId, id, taskIds)
    return taskIds
  }
}

const namedIn = ({ taskIds, routes }: RoutingValues): string[] => [
  ...taskIds,
  ...routes.flatMap(({ vehicleId, userId }) => (userId === undefined ? [vehicleId] : [vehicleId, userId])),
]
