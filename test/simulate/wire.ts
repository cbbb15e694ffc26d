import { Failure } from '../../src/kernel/errors.ts'
import type { Snags } from './snags.ts'
import type { Stoppable, Timeline } from './timeline.ts'

/** The way from a process to an engine and back. */
export interface Wire {
  /**
   * Has the engine answer something at one moment. @throws Failure engine_down where no answer came in time.
   * @param name the stream or consumer that it is about
   */
  call<Answer>(run: () => Answer, name?: string): Promise<Answer>
  /** As `call`, for what changes something: it may have been done, or be done yet, where no answer came. Writes of one lane arrive in order. */
  write<Answer>(run: () => Answer, name: string, lane?: string): Promise<Answer>
  /** Runs something in the process soon, as what the engine tells by itself; it arrives in the end. */
  tell(run: () => void): void
}

/** A wire on which nothing goes wrong and nothing takes time, for the contracts of the ports. */
export const plainWire: Wire = {
  call: async (run) => run(),
  write: async (run) => run(),
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
  private readonly snags: Snags
  /** When the last write of a lane arrives. */
  private readonly lanes = new Map<string, number>()
  /** Writes behind one of their lane that is held up. */
  private readonly behind = new Map<string, (() => void)[]>()

  constructor(timeline: Timeline, host: Stoppable, troubles: () => readonly Trouble[], snags: Snags) {
    this.timeline = timeline
    this.host = host
    this.troubles = troubles
    this.snags = snags
  }

  call<Answer>(run: () => Answer, name?: string): Promise<Answer> {
    if (name !== undefined) this.snags.asked(this.host, name)
    return this.ask(run, (arrive) => this.send(arrive, undefined))
  }

  write<Answer>(run: () => Answer, name: string, lane?: string): Promise<Answer> {
    const { snags, host } = this
    snags.asked(host, name)
    return this.ask(run, (arrive) => {
      const queue = lane === undefined ? undefined : this.behind.get(lane)
      if (queue !== undefined) return void queue.push(arrive)
      const arriveAll = (): void => {
        arrive()
        for (const next of this.behind.get(lane ?? '') ?? []) next()
        this.behind.delete(lane ?? '')
      }
      const caught = snags.catches(host, name, arriveAll)
      if (caught === undefined) this.send(arrive, lane)
      else if (caught === 'held' && lane !== undefined) this.behind.set(lane, [])
    })
  }

  private send(arrive: () => void, lane: string | undefined): void {
    const { timeline } = this
    if (!this.isLost()) timeline.after(this.wayOf(lane), arrive)
    else if (timeline.chance(LATE)) timeline.after(DEADLINE_MS + timeline.between(0, 2_000), arrive)
  }

  private ask<Answer>(run: () => Answer, send: (arrive: () => void) => void): Promise<Answer> {
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
      send(arrive)
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
