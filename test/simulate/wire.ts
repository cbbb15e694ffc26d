import { Failure } from '../../src/kernel/errors.ts'
import type { Stoppable, Timeline } from './timeline.ts'

/** The way from a process to an engine and back. */
export interface Wire {
  /**
   * Has the engine do something at one moment and answers what it said. Calls of one lane arrive in the order in which they
   * were made. @throws Failure engine_down where no answer came in time: it may have been done, or be done yet.
   */
  call<Answer>(run: () => Answer, lane?: string): Promise<Answer>
  /** Runs something in the process soon, as what the engine tells by itself; it arrives in the end. */
  tell(run: () => void): void
}

/** A wire on which nothing goes wrong and nothing takes time, for the contracts of the ports. */
export const plainWire: Wire = {
  call: async (run) => run(),
  tell: (run) => void setImmediate(run),
}

/** What is wrong with an engine, or with the way to it. */
export interface Trouble {
  /** Part of the questions, and of the answers, that are lost. */
  lost: number
  /** Part of those that take long, and how long at most. */
  slow: number
  slowMsMax: number
}

export const NO_TROUBLE: Trouble = { lost: 0, slow: 0.02, slowMsMax: 60 }

const DEADLINE_MS = 3_000
const WAY_MS_MAX = 3
const TELL_AGAIN_MS = 700
/** Part of the questions that an engine gets after whoever asked has given up. */
const LATE = 0.3

/** A wire over the timeline. Its troubles are looked at when something is on its way. */
export class FaultyWire implements Wire {
  private readonly timeline: Timeline
  private readonly host: Stoppable
  private readonly troubles: () => readonly Trouble[]
  /** When the last call of a lane arrives. */
  private readonly lanes = new Map<string, number>()

  constructor(timeline: Timeline, host: Stoppable, troubles: () => readonly Trouble[]) {
    this.timeline = timeline
    this.host = host
    this.troubles = troubles
  }

  call<Answer>(run: () => Answer, lane?: string): Promise<Answer> {
    const { timeline, host } = this
    return new Promise((resolve, reject) => {
      const cancelDeadline = timeline.after(DEADLINE_MS, () => reject(down()), host)
      const answer = (say: () => void): void => {
        if (this.isLost()) return
        timeline.after(
          this.wayMs(),
          () => {
            cancelDeadline()
            say()
          },
          host,
        )
      }
      const arrive = (): void => {
        try {
          const value = run()
          answer(() => resolve(value))
        } catch (error) {
          answer(() => reject(error))
        }
      }
      if (!this.isLost()) timeline.after(this.wayOf(lane), arrive)
      else if (timeline.chance(LATE)) timeline.after(DEADLINE_MS + timeline.between(0, 2_000), arrive)
    })
  }

  tell(run: () => void): void {
    const { timeline, host } = this
    timeline.after(
      this.wayMs(),
      () => (this.isLost() ? timeline.after(TELL_AGAIN_MS, () => this.tell(run)) : run()),
      host,
    )
  }

  private isLost(): boolean {
    return this.troubles().some(({ lost }) => lost > 0 && this.timeline.chance(lost))
  }

  private wayMs(): number {
    const { timeline } = this
    for (const { slow, slowMsMax } of this.troubles())
      if (slow > 0 && timeline.chance(slow)) return timeline.between(1, slowMsMax)
    return timeline.random() * WAY_MS_MAX
  }

  /** So long until it arrives, behind what went before on its lane. */
  private wayOf(lane: string | undefined): number {
    const way = this.wayMs()
    if (lane === undefined) return way
    const arrivesMs = Math.max(this.timeline.nowMs + way, this.lanes.get(lane) ?? 0)
    this.lanes.set(lane, arrivesMs)
    return arrivesMs - this.timeline.nowMs
  }
}

export const down = (): Failure => new Failure('engine_down', { message: 'The engine did not answer.' })
