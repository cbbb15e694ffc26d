import type { EventLog } from '../../engines/event-log.ts'
import type { JsonObject } from '../../kernel/json.ts'
import type { WriteOrigin } from '../../kit/resource/writes.ts'
import type { FlowContent } from '../flows/views.ts'
import type { ComponentWrites } from './component-writes.ts'
import { withFillingTimes } from './filled-at.ts'
import { factsOf, type HeldSpan, heldSpans, type TaskFact } from './held-spans.ts'
import { couldFill, decideLate } from './late-moves.ts'
import { CLOCKS_MS, MoveRefused } from './moves.ts'
import { dispatches } from './task-rights.ts'
import { isOver, type TaskValues } from './views.ts'

/** A change of components that is no list of values, such as attaching a file. */
export type Amendment = (before: TaskValues, flow: FlowContent) => TaskValues

/** Work on a task; `at` is the time at the device if sent, ms since the epoch. */
export type Work = DoneWork | { type: 'fill'; at?: number; components: JsonObject } | AmendingWork

type DoneWork = { type: 'start' | 'finish'; at?: number; place?: JsonObject; components?: JsonObject }
type AmendingWork = { type: 'amend'; at?: number; amendment: Amendment }

/** Judges offline work by the events of the task, of its team and of the user. */
export class OfflineWork {
  private readonly log: Pick<EventLog, 'read'>
  private readonly components: ComponentWrites
  private readonly maxMs: number

  /** @param maxMs how long offline work is accepted afterwards */
  constructor(log: Pick<EventLog, 'read'>, components: ComponentWrites, maxMs: number) {
    this.log = log
    this.components = components
    this.maxMs = maxMs
  }

  /** The task after work while it was the user's; undefined if the work does not count. @throws Failure invalid */
  async taken(origin: WriteOrigin, id: string, before: TaskValues, work: Work): Promise<TaskValues | undefined> {
    const { at } = work
    if (at === undefined) return undefined
    const past = await this.past(origin, id, at)
    if (past === undefined) return undefined
    if (work.type !== 'fill' && work.type !== 'amend') return this.moved(origin, before, past, { ...work, at })
    if (!couldFill(past.facts, past.spans, at)) return undefined
    return work.type === 'fill' ? this.components.filled(origin, before, work) : this.amended(origin, before, work)
  }

  /** A task changed by its assignee. @throws MoveRefused if the task was not theirs then, or was over */
  async assertFillable(origin: WriteOrigin, id: string, before: TaskValues, at: number | undefined): Promise<void> {
    if (dispatches(origin.caller)) return
    const assignedMs = Date.parse(before.assignedAt ?? '')
    const isOpen = !isOver(before)
    if (isOpen && (at === undefined || !(at < assignedMs))) return
    const past = at === undefined ? undefined : await this.past(origin, id, at)
    if (at !== undefined && past !== undefined && couldFill(past.facts, past.spans, at)) return
    if (isOpen && at !== undefined && at >= assignedMs - CLOCKS_MS) return
    throw isOpen
      ? new MoveRefused(
          'fill',
          before.state,
          `A task cannot be filled in before ${before.assignedAt}, when it was assigned.`,
        )
      : new MoveRefused('fill', before.state)
  }

  async amended({ now }: WriteOrigin, before: TaskValues, { amendment, at }: AmendingWork): Promise<TaskValues> {
    const after = amendment(before, await this.components.flowOf(before))
    return after === before ? before : withFillingTimes(before, after, { now, ...(at !== undefined && { at }) })
  }

  private async moved(
    origin: WriteOrigin,
    before: TaskValues,
    { facts, spans, userId }: Past,
    { type, at, place, components = {} }: DoneWork & { at: number },
  ): Promise<TaskValues | undefined> {
    const next = decideLate(facts, spans, { type, at, userId, ...(place !== undefined && { place }) })
    if (next === undefined) return undefined
    const current = facts[facts.length - 1].values
    if (next === current) return before
    if (type === 'start') return next
    const isFinished = next.state === 'finished' && current.state !== 'finished'
    const sent = { components, at }
    return isFinished ? this.components.finished(origin, next, sent) : this.components.filled(origin, next, sent)
  }

  private async past({ caller, now }: WriteOrigin, id: string, at: number): Promise<Past | undefined> {
    if (caller === undefined || at < now - this.maxMs) return undefined
    const { userId, hubIds } = caller
    const facts = await factsOf(this.log, id)
    return { facts, spans: await heldSpans(this.log, facts, { userId, hasAllHubs: hubIds === 'all' }), userId }
  }
}

/** Past facts of a task, and who had it. */
interface Past {
  facts: TaskFact[]
  spans: HeldSpan[]
  userId: string
}
