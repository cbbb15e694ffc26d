import { isDeepStrictEqual } from 'node:util'
import { assertNoFaults, Failure, invalid } from '../../kernel/errors.ts'
import { joined, type JsonObject } from '../../kernel/json.ts'
import { rowOf } from '../../kit/commands/declared-event.ts'
import { withoutFiles } from '../../kit/files/attached-file.ts'
import { assertValid, compileCheck } from '../../kit/http/validate.ts'
import {
  pick,
  pickOthers,
  pickWithNull,
  type ResourceServices,
  valuesSchema,
  withDefaults,
} from '../../kit/resource/declaration.ts'
import { mergePatch } from '../../kit/resource/merge-patch.ts'
import { assertExists } from '../../kit/resource/references.ts'
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
import { type DataTypeRow, DATA_TYPES } from '../data/views.ts'
import { flowAt, type FlowContent, type FlowRow, FLOWS } from '../flows/views.ts'
import { assertAssignees, keptAssignees, keptIds } from './assignees.ts'
import {
  defaultComponents,
  fillComponents,
  fromRecord,
  missingComponents,
  sourceOf,
  sourceRecord,
} from './components.ts'
import { factsOf, heldSpans } from './held-spans.ts'
import { decideLate, latestOnly } from './late-moves.ts'
import { decideMove, type Move, MoveRefused } from './moves.ts'
import { assertPlace } from './place.ts'
import { task } from './task.ts'
import { assertDispatches, assertMayChange, assertMayFill } from './task-rights.ts'
import { assertWindow, userIdOf, without, writableIn } from './task-values.ts'
import { actorOf, isOver, type TaskValues } from './views.ts'

const checkWhole = compileCheck(valuesSchema(task.declaration))

/** What the service says of a task that it makes, beside what its body does. */
export interface TaskExtra {
  scheduleId?: string
  dueAt?: string
  routingResultId?: string
}

/** The writes of tasks. Without a caller the service itself writes: schedules, automations, imports. */
export class TaskWriter implements ResourceWrites {
  private readonly services: ResourceServices
  private readonly writer: ResourceWriter
  private readonly offlineMaxMs: number

  /** @param offlineMaxMs how long after it what was done without a connection is taken */
  constructor(services: ResourceServices, offlineMaxMs = 0) {
    this.services = services
    this.offlineMaxMs = offlineMaxMs
    this.writer = task.writer(services)
  }

  /** @throws Failure forbidden without `dispatch/task`, invalid, key_in_use */
  async create(origin: WriteOrigin, body: JsonObject, extra: TaskExtra = {}): Promise<Written> {
    assertDispatches(origin)
    return this.writer.make(origin, this.writer.idOf(origin, body), () => this.making(origin, body, extra))
  }

  private async making(origin: WriteOrigin, body: JsonObject, extra: TaskExtra): Promise<Making> {
    const { tables } = this.services
    const { organizationId } = origin
    const flowId = String(body.flowId).toLowerCase()
    const flow = await assertExists<FlowRow>(tables, FLOWS, organizationId, flowId, '/flowId')
    if (flow.isActive === false) throw invalid('/flowId', 'is a flow that is not active')
    const dataSource = sourceOf(body.dataSource)
    const found = await this.filledFrom(organizationId, flow, dataSource)
    const sent = { ...found, ...((body.components ?? {}) as JsonObject) }
    // What the record says may stand where clients may not write.
    const { values: base } = await fillComponents(tables, organizationId, flow, defaultComponents(flow), found, true)
    const isService = origin.caller === undefined
    const { values, faults } = await fillComponents(tables, organizationId, flow, base, sent, isService)
    assertNoFaults(faults)
    const assigneeIds = keptIds((body.assigneeIds ?? []) as string[])
    const teamId = typeof body.teamId === 'string' ? body.teamId.toLowerCase() : undefined
    const isAssigned = assigneeIds.length > 0 || teamId !== undefined
    await assertAssignees(this.services, organizationId, {
      hubId: String(body.hubId).toLowerCase(),
      teamId,
      assigneeIds,
    })
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

  /** Hub, team and assignees change as `move` and `assign` change them. @throws Failure as `create`, conflict, stale_version */
  change(origin: WriteOrigin, change: Change): Promise<Written> {
    return this.update(origin, change.id, (before) => this.changed(origin, before, change), change.expectedVersion)
  }

  delete(origin: WriteOrigin, deletion: Deletion): Promise<Written> {
    assertDispatches(origin)
    return this.writer.delete(origin, deletion)
  }

  /** @throws Failure conflict with the task as it is, invalid, forbidden */
  move(origin: WriteOrigin, id: string, createdAt: string, move: Move, components: JsonObject = {}): Promise<Written> {
    if (move.type === 'assign' || move.type === 'move' || move.type === 'reopen') assertDispatches(origin)
    return this.update(origin, id, async (before) => {
      const moved = decideMove(before, move, { now: origin.now, createdAt, ...userIdOf(origin) })
      if (moved === before) return before
      const next = await this.settled(origin, before, moved)
      if (move.type !== 'finish') return next
      return { ...next, components: await this.finished(origin, before, components) }
    })
  }

  /**
   * Takes a start or finish that came after the office changed the task. The caller need not see the task any more.
   * @throws the refusal for what does not count
   */
  late(origin: WriteOrigin, id: string, move: Move, components: JsonObject, refusal: Error): Promise<Written> {
    const { caller } = origin
    if (caller === undefined || (move.type !== 'start' && move.type !== 'finish') || move.at === undefined)
      throw refusal
    const { type, at, place } = move
    if (at < origin.now - this.offlineMaxMs) throw refusal
    return this.update(asService(origin), id, async (before) => {
      const facts = await factsOf(this.services.log, id)
      const { userId } = caller
      const spans = await heldSpans(this.services.log, facts, { userId, hasAllHubs: caller.hubIds === 'all' })
      const next = decideLate(facts, spans, { type, at, place, userId })
      if (next === undefined) throw refusal
      if (next.state !== 'finished' || facts[facts.length - 1].values.state === 'finished') return next
      const sent = latestOnly(facts, components, Date.parse(next.finishedAt as string))
      return { ...next, components: await this.finished(origin, before, sent) }
    })
  }

  /** Changes what whoever does a task may change, by what its flow says: files are attached so. */
  amend(
    origin: WriteOrigin,
    id: string,
    next: (before: TaskValues, flow: FlowContent) => TaskValues,
  ): Promise<Written> {
    return this.update(origin, id, async (before) => {
      const after = next(before, await this.flowOf(before))
      if (after !== before) assertMayFill(origin.caller, before)
      return after
    })
  }

  /** Writes components of a task, also those that clients may not. */
  fill(origin: WriteOrigin, id: string, components: JsonObject): Promise<Written> {
    return this.update(origin, id, async (before) => {
      const flow = await this.flowOf(before)
      return { ...before, components: await this.filled(origin, flow, before, components) }
    })
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
      const { late: _late, overtaken: _overtaken, ...data } = withoutFiles(rowOf(id, version, state))
      throw new Failure('conflict', { message: error.message, extra: { version, data } })
    }
  }

  private async changed(origin: WriteOrigin, before: TaskValues, { kind, body }: Change): Promise<TaskValues> {
    const { fields } = task.declaration
    const own = before as unknown as JsonObject
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
    const flow = await this.flowOf(before)
    const emptied =
      kind === 'replace' || asked === null ? Object.fromEntries(writableIn(flow).map((name) => [name, null])) : {}
    const components = await this.filled(origin, flow, before, { ...emptied, ...((asked ?? {}) as JsonObject) })
    const next = joined(pickOthers(own, fields), withDefaults(fields, merged, own), {
      components,
    }) as unknown as TaskValues
    assertMayChange(origin.caller, before, next)
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

  /** A task after a move: whoever may not have it any more goes, and somebody new who may not is refused. */
  private async settled(origin: WriteOrigin, before: TaskValues, next: TaskValues): Promise<TaskValues> {
    const { organizationId } = origin
    const isSame = next.teamId === before.teamId && isDeepStrictEqual(next.assigneeIds, before.assigneeIds)
    if (!isSame) await assertAssignees(this.services, organizationId, next)
    const isReopened = isOver(before) && !isOver(next)
    if (!isSame || (next.hubId === before.hubId && !isReopened)) return without(next, 'teamId')
    const { teamId, assigneeIds } = await keptAssignees(this.services, organizationId, next)
    const { teamId: _before, ...others } = next
    return { ...others, assigneeIds, ...(teamId !== null && { teamId }) }
  }

  private async finished(origin: WriteOrigin, before: TaskValues, sent: JsonObject): Promise<JsonObject> {
    const flow = await this.flowOf(before)
    const values = await this.filled(origin, flow, before, sent)
    const missing = missingComponents(flow, values)
    assertNoFaults(missing)
    return values
  }

  private async filled(
    origin: WriteOrigin,
    flow: FlowContent,
    { components }: TaskValues,
    sent: JsonObject,
  ): Promise<JsonObject> {
    const isService = origin.caller === undefined
    const { values, faults } = await fillComponents(
      this.services.tables,
      origin.organizationId,
      flow,
      components,
      sent,
      isService,
    )
    assertNoFaults(faults)
    return values
  }

  private async flowOf({ flowId, flowVersion }: TaskValues): Promise<FlowContent> {
    const flow = await flowAt(this.services.log, flowId, flowVersion)
    if (flow === undefined) throw new Error(`version ${flowVersion} of the flow ${flowId} is not in the log`)
    return flow
  }

  private async filledFrom(
    organizationId: string,
    flow: FlowRow,
    source: TaskValues['dataSource'],
  ): Promise<JsonObject> {
    if (source === undefined) return {}
    const { tables } = this.services
    const record = await sourceRecord(tables, organizationId, source)
    if (flow.dataSource?.dataTypeId !== record.dataTypeId) return {}
    const type = await tables.get<DataTypeRow>(DATA_TYPES, organizationId, record.dataTypeId)
    return type === undefined ? {} : fromRecord(flow, type, record)
  }
}
