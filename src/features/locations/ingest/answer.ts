import type { Clock } from '../../../kernel/clock.ts'
import { Failure } from '../../../kernel/errors.ts'
import { defer } from '../../../kit/consumers/deferred.ts'
import { TRIP_START } from '../events.ts'
import type { PackedFrame } from './pack-points.ts'
import { type CountPoints, Receipt } from './receipt.ts'

/** Points that the log has not stored by then are answered with `engine_down`; they may still become durable. */
const ANSWER_WITHIN_MS = 15_000
export const RETRY_AFTER_SECONDS = 2

export const engineDown = (): Failure => new Failure('engine_down', { retryAfterSeconds: RETRY_AFTER_SECONDS })

export interface TripStart {
  trackerId: string
  /** ms since the epoch. */
  startedAt: number
}

/** Receipt of a request: it is answered once, and does not wait for a log that refuses. */
export class Answer extends Receipt {
  tripStarts: TripStart[] = []
  private readonly clock: Clock
  private readonly end = defer()
  private isGiven = false
  private stopTimer: () => void = () => undefined

  constructor(clock: Clock, bytes: number, count: CountPoints) {
    super(bytes, count)
    this.clock = clock
  }

  /** @throws Failure engine_down */
  given(): Promise<void> {
    return this.end.promise
  }

  override judged(frame: PackedFrame, duplicates: number): void {
    super.judged(frame, duplicates)
    this.tripStarts = tripStartsOf(frame)
    this.stopTimer = this.clock.after(ANSWER_WITHIN_MS, () => this.refused())
  }

  /** Points that become durable after another answer are not counted: no sender was told. */
  override durable(): void {
    if (!this.isGiven) super.durable()
  }

  isPatient(): boolean {
    return false
  }

  refused(): void {
    if (this.give()) this.end.reject(engineDown())
  }

  /** Ends a receipt of which nothing was accepted. */
  drop(): void {
    this.give()
  }

  protected stored(): void {
    if (this.give()) this.end.resolve()
  }

  private give(): boolean {
    this.stopTimer()
    const isFirst = !this.isGiven
    this.isGiven = true
    return isFirst
  }
}

const tripStartsOf = ({ columns }: PackedFrame): TripStart[] => {
  const starts: TripStart[] = []
  for (let row = 0; row < columns.count; row++) {
    if ((columns.flags[row] & TRIP_START) !== 0)
      starts.push({ trackerId: columns.tracker[row].trackerId, startedAt: columns.recordedAt[row] })
  }
  return starts
}
