import {
  countRolled,
  emptySteps,
  firstPointAt,
  forgetLate,
  lateSteps,
  noteStepState,
  readStepState,
  STEP_MS,
  type StepState,
} from '../src/engines/clickhouse-sql/point-steps.ts'
import { countSteps, ROLLED_AT_ONCE, rollUp, rollUpLate } from '../src/engines/clickhouse-sql/roll-steps.ts'
import type { HistoryStore } from '../src/engines/history-store.ts'
import type { Clock } from '../src/kernel/clock.ts'
import type { Logger } from '../src/kernel/logger.ts'
import { Rounds } from '../src/kit/operations/rounds.ts'
import { ROLLED_AFTER_MS } from './late-steps.ts'

export const POINT_STEPS = 'point-steps'

export interface StepServices {
  history: HistoryStore
  clock: Clock
  logger: Logger
  /** Longest time between points that makes a leg. */
  gapMs: number
  /** Points that are rolled up at once. */
  pointsMax?: number
}

const LOOK_MS = 60_000
/** A backlog is looked at day by day. */
const RANGE_MS = 86_400_000
/** A mark precedes its points: it is worked off when these are there, or their insert was given up. */
const MARKED_MS = 600_000
const LATE_MAX = 500
const RANGES_MAX = 100

/**
 * Rolls points up in steps of a quarter of an hour (docs/decisions/0021): in turn those that ended over an hour ago,
 * then those whose points came late. One process does it; work cut short by a crash is repeated, which changes nothing.
 */
export class PointSteps extends Rounds {
  private readonly services: StepServices

  constructor(services: StepServices) {
    super(services.clock, LOOK_MS)
    this.services = services
  }

  async rollUpDue(): Promise<void> {
    let state = await this.begin()
    if (state === undefined) return
    const end = stepOf(this.services.clock.now() - ROLLED_AFTER_MS)
    while (state.through < end && !this.isClosed) state = await this.advance(state, end)
    while (!this.isClosed) {
      const next = await this.rollUpLate(state)
      if (next === undefined) return
      state = next
    }
  }

  /** Rolls everything up again; reports sum points meanwhile. Answers the number of steps after it. */
  async rebuild(): Promise<number> {
    const { history } = this.services
    await this.startOver(await readStepState(history))
    await this.rollUpDue()
    return countRolled(history)
  }

  protected work(): Promise<void> {
    return this.rollUpDue()
  }

  protected failed(error: unknown): void {
    this.services.logger.warn('points could not be rolled up', { error: String(error) })
  }

  /** Where to continue; undefined for a history without points. */
  private async begin(): Promise<StepState | undefined> {
    const state = await readStepState(this.services.history)
    return state?.gapMs === this.services.gapMs ? state : this.startOver(state)
  }

  private async startOver(state: StepState | undefined): Promise<StepState | undefined> {
    const { history, gapMs } = this.services
    const first = await firstPointAt(history)
    if (first === undefined) return undefined
    const begun = { number: (state?.number ?? 0) + 1, through: stepOf(first), gapMs }
    // Readers that see the new state sum points. Marks stay: their points may not be there yet.
    await noteStepState(history, begun)
    await emptySteps(history)
    return begun
  }

  private async advance(state: StepState, end: number): Promise<StepState> {
    const { history, gapMs, pointsMax = ROLLED_AT_ONCE } = this.services
    const from = state.through
    const to = await this.fitting(from, Math.min(from + RANGE_MS, end), pointsMax)
    const next = { number: state.number + 1, through: to, gapMs }
    await rollUp(history, { from, to }, next, pointsMax)
    await noteStepState(history, next)
    return next
  }

  /** End of the steps that are few enough for one statement; a single larger one is divided by its trackers. */
  private async fitting(from: number, to: number, pointsMax: number): Promise<number> {
    let sum = 0
    for (const { at, points } of await countSteps(this.services.history, from, to)) {
      sum += points
      if (sum > pointsMax) return Math.max(at, from + STEP_MS)
    }
    return to
  }

  /** Undefined where none is late, or all have to wait. */
  private async rollUpLate(state: StepState): Promise<StepState | undefined> {
    const { history, clock } = this.services
    const markedBy = clock.now() - MARKED_MS
    const ranges = (await lateSteps(history, markedBy, LATE_MAX)).slice(0, RANGES_MAX)
    if (ranges.length === 0) return undefined
    const next = { ...state, number: state.number + 1 }
    await noteStepState(history, next)
    // Later steps are not rolled up yet; their marks mean nothing.
    const rolled = ranges.filter(({ from }) => from < state.through)
    const cut = rolled.map((range) => ({ ...range, to: Math.min(range.to, state.through) }))
    if (cut.length > 0) await rollUpLate(history, cut, next, this.services.pointsMax)
    await forgetLate(history, ranges, markedBy)
    return next
  }
}

const stepOf = (at: number): number => Math.floor(at / STEP_MS) * STEP_MS
