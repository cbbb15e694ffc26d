import {
  emptySteps,
  firstPointAt,
  forgetLate,
  lateSteps,
  noteStepState,
  readStepState,
  rollUp,
  rollUpLate,
  STEP_MS,
  type StepState,
} from '../src/engines/clickhouse-sql/point-steps.ts'
import type { HistoryStore } from '../src/engines/history-store.ts'
import type { Clock } from '../src/kernel/clock.ts'
import type { Logger } from '../src/kernel/logger.ts'
import { ROLLED_AFTER_MS } from './late-steps.ts'

export const POINT_STEPS = 'point-steps'

export interface StepServices {
  history: HistoryStore
  clock: Clock
  logger: Logger
  /** Longest time between points that makes a leg. */
  gapMs: number
}

const LOOK_MS = 60_000
/** A backlog is rolled up day by day, so that no statement is large. */
const RANGE_MS = 86_400_000
/** A mark is there before its points: it is worked off when these are there, or their insert was given up. */
const MARKED_MS = 600_000
const LATE_MAX = 5_000
const RANGES_MAX = 100

/**
 * Rolls points up in steps of a quarter of an hour (docs/decisions/0021): in turn those that ended over an hour ago, then
 * those whose points came late. One process does it; what a crash cuts short is done again, which changes nothing.
 */
export class PointSteps {
  private readonly services: StepServices
  private cancel = (): void => undefined
  private round: Promise<void> = Promise.resolve()
  private isClosed = false

  constructor(services: StepServices) {
    this.services = services
  }

  start(): this {
    this.look()
    return this
  }

  async close(): Promise<void> {
    this.isClosed = true
    this.cancel()
    await this.round
  }

  /** Everything that is due is rolled up. */
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

  private look(): void {
    const { clock, logger } = this.services
    this.round = this.rollUpDue().catch((error: unknown) =>
      logger.warn('points could not be rolled up', { error: String(error) }),
    )
    void this.round.then(() => {
      if (!this.isClosed) this.cancel = clock.after(LOOK_MS, () => this.look())
    })
  }

  /** Where to go on; undefined for a history without points. */
  private async begin(): Promise<StepState | undefined> {
    const { history, gapMs } = this.services
    const state = await readStepState(history)
    if (state?.gapMs === gapMs) return state
    const first = await firstPointAt(history)
    if (first === undefined) return undefined
    const begun = { number: (state?.number ?? 0) + 1, through: stepOf(first), gapMs }
    // Readers that see the new state sum points. Marks stay: their points may not be there yet.
    await noteStepState(history, begun)
    await emptySteps(history)
    return begun
  }

  private async advance(state: StepState, end: number): Promise<StepState> {
    const { history, gapMs } = this.services
    const next = { number: state.number + 1, through: Math.min(state.through + RANGE_MS, end), gapMs }
    await rollUp(history, state.through, next.through, next)
    await noteStepState(history, next)
    return next
  }

  /** Undefined where none is late, or is to wait. */
  private async rollUpLate(state: StepState): Promise<StepState | undefined> {
    const { history, clock } = this.services
    const markedBy = clock.now() - MARKED_MS
    const ranges = (await lateSteps(history, markedBy, LATE_MAX)).slice(0, RANGES_MAX)
    if (ranges.length === 0) return undefined
    const next = { ...state, number: state.number + 1 }
    await noteStepState(history, next)
    // What comes after is not rolled up yet; its marks have nothing to tell.
    const rolled = ranges.filter(({ from }) => from < state.through)
    const cut = rolled.map((range) => ({ ...range, to: Math.min(range.to, state.through) }))
    if (cut.length > 0) await rollUpLate(history, cut, next)
    await forgetLate(history, ranges, markedBy)
    return next
  }
}

const stepOf = (at: number): number => Math.floor(at / STEP_MS) * STEP_MS
