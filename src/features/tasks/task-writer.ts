import { isDeepStrictEqual } from 'node:util'
import { assertNoFaults, Failure, invalid } from '../../kernel/errors.ts'
import { joined, type JsonObject } from '../../kernel/json.ts'
import { rowOf } from '../../kit/commands/declared-event.ts'
import { withoutFiles } from '../../kit/files/attached-file.ts'
import { assertValid, compileCheck } from '../../kit/http/validate.ts'
import { createdId } from '../../kit/resource/created-id.ts'
import { pick, pickOthers, pickWithNull, withDefaults } from '../../kit/resource/pick.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import { valuesSchema } from '../../kit/resource/schemas.ts'
import { mergePatch } from '../../kit/resource/merge-patch.ts'
import { assertExists } from '../../kit/resource/references.ts'
import { assertGuarded } from '../../kit/resource/values-check.ts'
import type { ResourceWriter } from '../../kit/resource/write.ts'
import {
  asService,
  type Change,
  type Deletion,
  type Making,
  type ResourceWrites,
  type WriteOrigin,
  type Written,
} from '../../kit/resource/writes.ts'
import { type FlowRow, FLOWS } from '../flows/views.ts'
import { assertAssignees, keptAssignees, keptIds } from './assignees.ts'
import { ComponentWrites } from './component-writes.ts'
import { defaultComponents, fillComponents, sourceOf, sourceRecord } from './components.ts'
import { assertNotAhead, decideMove, type Move, type MoveContext, MoveRefused } from './moves.ts'
import { type Amendment, OfflineWork, type Work } from './offline-work.ts'
import { assertPlace } from './place.ts'
import { task } from './task.ts'
import { assertDispatches, assertMayChange } from './task-rights.ts'
import { assertWindow, timeIn, userIdOf, without, writableIn } from './task-values.ts'
import { actorOf, isOver, type TaskValues, withoutInternal } from './views.ts'

const checkWhole = compileCheck(valuesSchema(task.declaration))

/** Values that the service adds to the body of a task that it creates. */
export interface TaskExtra {
  scheduleId?: string
  dueAt?: string
  routingResultId?: string
}

/** Writes of tasks. Without a caller the service itself writes: schedules, automations, imports. */
export class TaskWriter implements ResourceWrites {
  private readonly services: ResourceServices
  private readonly writer: ResourceWriter
  private readonly components: ComponentWrites
  private readonly offline: OfflineWork

  /** @param offlineMaxMs how long offline work is accepted afterwards */
  constructor(services: ResourceServices, offlineMaxMs = 0) {
    this.services = services
    this.writer = task.writer(services)
    this.components = new ComponentWrites(services)
    this.offline = new OfflineWork(services.log, this.components, offlineMaxMs)
  }

  /** @throws Failure forbidden without `dispatch/task`, invalid, key_in_use */
  async create(origin: WriteOrigin, body: JsonObject, extra: TaskExtra = {}): Promise<Written> {
    assertDispatches(origin)
    const { id, isDrawn } = createdId(task.declaration, origin, body)
    return this.writer.make(origin, id, () => this.making(origin, body, extra), isDrawn)
  }

  private async making(origin: WriteOrigin, body: JsonObject, extra: TaskExtra): Promise<Making> {
    const { tables } = this.services
    const { organizationId } = origin
    const flowId = String(body.flowId).toLowerCase()
    const assigneeIds = keptIds((body.assigneeIds ?? []) as string[])
    const teamId = typeof body.teamId === 'string' ? body.teamId.toLowerCase() : undefined
    const hubId = String(body.hubId).toLowerCase()
    // Asked together with the flow, and answered in its turn.
    const assignable = assertAssignees(this.services, organizationId, { hubId, teamId, assigneeIds })
    assignable.catch(() => undefined)
    const flow = await assertExists<FlowRow>(tables, FLOWS, organizationId, flowId, '/flowId')
    if (flow.isActive === false) throw invalid('/flowId', 'is a flow that is not active')
    const dataSource = sourceOf(body.dataSource)
    const found = await this.components.filledFrom(organizationId, flow, dataSource)
    const sent = { ...found, ...((body.components ?? {}) as JsonObject) }
    // Values of the record may fill components that clients cannot write.
    const { values: base } = await fillComponents(tables, organizationId, flow, defaultComponents(flow), found, true)
    const isService = origin.caller === undefined
    const { values, faults } = await fillComponents(tables, organizationId, flow, base, sent, isService)
    assertNoFaults(faults)
    const isAssigned = assigneeIds.length > 0 || teamId !== undefined
    await assignable
    assertWindow(body.window)
    assertPlace(body)
    const at = new Date(origin.now).toISOString()
    const whole = { ...body, flowId, components: values, ...(dataSource !== undefined && { dataSource }) }
    const own = {
      state: isAssigned ? 'assigned' : 'new',
      flowVersion: flow.version,
      createdBy: { ...actorOf(origin.metadata.actor) },
      ...(isAssigned && { assignedAt: at }),
    }
    return { body: whole, extra: joined(own, extra as JsonObject) }
  }

  /** Changes hub, team and assignees like `move` and `assign`. @throws Failure as `create`, conflict, stale_version */
  change(origin: WriteOrigin, change: Change): Promise<Written> {
    return this.update(origin, change.id, (before) => this.changed(origin, before, change), change.expectedVersion)
  }

  delete(origin: WriteOrigin, deletion: Deletion): Promise<Written> {
    assertDispatches(origin)
    return this.writer.delete(origin, deletion)
  }

  /**
   * Moves by the task's assignee, now or before it was changed.
   * @throws Failure conflict with the present task, invalid, forbidden
   */
  move(origin: WriteOrigin, id: string, createdAt: string, move: Move, components: JsonObject = {}): Promise<Written> {
    if (move.type === 'assign' || move.type === 'move' || move.type === 'reopen') assertDispatches(origin)
    const context = { now: origin.now, createdAt, ...userIdOf(origin) }
    return this.update(origin, id, async (before) => {
      const moved = attempted(before, move, { ...context, isExact: true })
      if (moved instanceof MoveRefused) {
        const isWork = move.type === 'start' || move.type === 'finish'
        const work = isWork ? { ...move, components } : undefined
        const taken = work && (await this.offline.taken(origin, id, before, work))
        if (taken !== undefined) return taken
      }
      const next = moved instanceof MoveRefused ? decideMove(before, move, context) : moved
      if (next === before) return before
      const settled = await this.settled(origin, before, next)
      return move.type === 'finish' ? this.components.finished(origin, settled, { components, at: move.at }) : settled
    })
  }

  /** Assigns a planned task to its route's driver, and removes a team without the driver. */
  route(origin: WriteOrigin, id: string, userId: string, routingResultId: string): Promise<Written> {
    return this.update(origin, id, async (before) => {
      const { organizationId, now } = origin
      const team =
        before.teamId === undefined ? undefined : await this.services.tables.get('teams', organizationId, before.teamId)
      const isOfTeam = (team?.userIds as string[] | undefined)?.includes(userId) === true
      const move: Move = { type: 'assign', assigneeIds: [userId], teamId: isOfTeam ? before.teamId : null }
      const assigned = decideMove(before, move, { now, createdAt: new Date(now).toISOString() })
      return { ...(await this.settled(origin, before, assigned)), routingResultId }
    })
  }

  /**
   * Accepts work of a user who no longer has the task, and need not see it.
   * @throws the refusal if the work does not count
   */
  late(origin: WriteOrigin, id: string, work: Work, refusal: Error, expectedVersion?: number): Promise<Written> {
    if (work.at !== undefined) assertNotAhead(work.at, origin.now)
    const next = async (before: TaskValues): Promise<TaskValues> => {
      const taken = await this.offline.taken(origin, id, before, work)
      if (taken === undefined) throw refusal
      return taken
    }
    return this.update(asService(origin), id, next, expectedVersion)
  }

  /** Changes values that an assignee may change, according to the task's flow: files are attached this way. */
  amend(origin: WriteOrigin, id: string, amendment: Amendment, at?: number): Promise<Written> {
    if (at !== undefined) assertNotAhead(at, origin.now)
    return this.update(origin, id, async (before) => {
      const after = await this.offline.amended(origin, before, { type: 'amend', amendment, at })
      if (after !== before) await this.offline.assertFillable(origin, id, before, at)
      return after
    })
  }

  /** Writes components of a task, including those that clients cannot write. */
  fill(origin: WriteOrigin, id: string, components: JsonObject): Promise<Written> {
    return this.update(origin, id, (before) => this.components.filled(origin, before, { components }))
  }

  private async update(
    origin: WriteOrigin,
    id: string,
    next: (before: TaskValues) => Promise<TaskValues>,
    expectedVersion?: number,
  ): Promise<Written> {
    try {
      return await this.writer.update(
        origin,
        id,
        async (before) => (await next(before as unknown as TaskValues)) as unknown as JsonObject,
        expectedVersion,
      )
    } catch (error) {
      if (!(error instanceof MoveRefused)) throw error
      const { state, version } = await this.writer.load(id)
      const data = withoutInternal(withoutFiles(rowOf(id, version, state)))
      throw new Failure('conflict', { message: error.message, extra: { version, data } })
    }
  }

  private async changed(origin: WriteOrigin, before: TaskValues, { id, kind, body }: Change): Promise<TaskValues> {
    const { fields } = task.declaration
    const at = timeIn(body)
    if (at !== undefined) assertNotAhead(at, origin.now)
    const own = before as unknown as JsonObject
    assertGuarded(task.declaration, own, body)
    const sent = pickWithNull(body, fields)
    if (sent.flowId !== undefined && String(sent.flowId).toLowerCase() !== before.flowId)
      throw invalid('/flowId', 'cannot be changed')
    const { components: asked, ...others } = sent
    const merged: JsonObject =
      kind === 'amend'
        ? mergePatch(pick(own, Object.keys(fields)), { ...others, flowId: before.flowId })
        : { ...others, flowId: before.flowId, components: before.components }
    assertValid(checkWhole, merged)
    assertWindow(merged.window)
    assertPlace(merged)
    const source = sourceOf(merged.dataSource)
    if (source !== undefined && !isDeepStrictEqual(source, before.dataSource)) {
      await sourceRecord(this.services.tables, origin.organizationId, source)
      merged.dataSource = { ...source }
    }
    const flow = await this.components.flowOf(before)
    const emptied =
      kind === 'replace' || asked === null ? Object.fromEntries(writableIn(flow).map((name) => [name, null])) : {}
    const given = { components: { ...emptied, ...((asked ?? {}) as JsonObject) }, ...(at !== undefined && { at }) }
    const { components, ...filled } = await this.components.filled(origin, before, given)
    const next = joined(pickOthers(filled as unknown as JsonObject, fields), withDefaults(fields, merged, own), {
      components,
    }) as unknown as TaskValues
    assertMayChange(origin.caller, before, next)
    await this.offline.assertFillable(origin, id, before, at)
    const { hubId, teamId, assigneeIds } = next
    const context = { now: origin.now, createdAt: new Date(origin.now).toISOString() }
    const placed = {
      ...next,
      hubId: before.hubId,
      teamId: before.teamId,
      assigneeIds: before.assigneeIds,
      state: before.state,
    }
    const moved = hubId === before.hubId ? placed : decideMove(placed, { type: 'move', hubId }, context)
    const isSame = teamId === before.teamId && isDeepStrictEqual(assigneeIds, before.assigneeIds)
    if (isSame && moved === placed) return without(placed, 'teamId')
    const assigned = isSame
      ? moved
      : decideMove(moved, { type: 'assign', assigneeIds, teamId: teamId ?? null }, context)
    return this.settled(origin, before, assigned)
  }

  /** A task after a move: assignees no longer allowed are removed, and a new one who is not allowed is refused. */
  private async settled(origin: WriteOrigin, before: TaskValues, next: TaskValues): Promise<TaskValues> {
    const { organizationId } = origin
    const isSame = next.teamId === before.teamId && isDeepStrictEqual(next.assigneeIds, before.assigneeIds)
    if (!isSame) await assertAssignees(this.services, organizationId, next)
    const isReopened = isOver(before) && !isOver(next)
    if (isReopened) await this.assertFlow(organizationId, next)
    if (!isSame || (next.hubId === before.hubId && !isReopened)) return without(next, 'teamId')
    const { teamId, assigneeIds } = await keptAssignees(this.services, organizationId, next)
    const { teamId: _before, ...others } = next
    return { ...others, assigneeIds, ...(teamId !== null && { teamId }) }
  }

  /** Nobody names a flow when a task is reopened: that it is gone is no fault of the request. */
  private async assertFlow(organizationId: string, { flowId }: TaskValues): Promise<void> {
    if ((await this.services.tables.get(FLOWS, organizationId, flowId)) === undefined)
      throw new Failure('conflict', { message: 'A task whose flow was deleted cannot be reopened.' })
  }
}

/** The task after a move, or the reason why its state does not allow it. */
const attempted = (before: TaskValues, move: Move, context: MoveContext): TaskValues | MoveRefused => {
  try {
    return decideMove(before, move, context)
  } catch (error) {
    if (error instanceof MoveRefused) return error
    throw error
  }
}
