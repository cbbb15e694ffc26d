import { performance } from 'node:perf_hooks'

/** State of the event loop since the last beat. Times in ms. */
export interface SinceBeat {
  elapsedMs: number
  busyMs: number
  /** Points came since the last look. */
  hasCome: boolean
}

/** Time between two looks: the shortest beat. */
const LOOK_MS = 2
/** The longest beat. */
const BEAT_MS = 10

/**
 * Whether appends begin again. Each costs its consumers much more than a point does, so points are gathered. If no more
 * come and the loop has been idle two thirds of the time, senders wait for acknowledgements: they get them.
 */
export const isBeatOver = ({ elapsedMs, busyMs, hasCome }: SinceBeat): boolean =>
  elapsedMs >= BEAT_MS || (!hasCome && busyMs * 3 <= elapsedMs)

/** Lets partitions begin their appends together: immediately after a rest, else one beat after the last time. */
export class Beat {
  private readonly begin: () => void
  private readonly fixedMs: () => number | undefined
  private isAsked = false
  private isResting = false
  private hasCome = false
  private began = performance.eventLoopUtilization()

  /** `fixedMs` returns the length of a fixed beat. */
  constructor(begin: () => void, fixedMs: () => number | undefined) {
    this.begin = begin
    this.fixedMs = fixedMs
  }

  /** Records that points have come. */
  note(): void {
    this.hasCome = true
  }

  /** Requests an append. Points that arrive in the same turn of the event loop are included. */
  ask(): void {
    if (this.isAsked) return
    this.isAsked = true
    if (!this.isResting) setImmediate(() => this.start())
  }

  private start(): void {
    this.isAsked = false
    this.isResting = true
    this.hasCome = false
    this.began = performance.eventLoopUtilization()
    this.lookLater()
    this.begin()
  }

  private lookLater(): void {
    setTimeout(() => this.look(), this.fixedMs() ?? LOOK_MS)
  }

  private look(): void {
    const { hasCome } = this
    this.hasCome = false
    const { active: busyMs, idle } = performance.eventLoopUtilization(this.began)
    const elapsedMs = busyMs + idle
    if (this.fixedMs() === undefined && !isBeatOver({ elapsedMs, busyMs, hasCome })) return this.lookLater()
    this.isResting = false
    if (this.isAsked) this.start()
  }
}
