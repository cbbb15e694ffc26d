import type { Clock } from '../../src/kernel/clock.ts'

/** Real time. */
export const realClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: (delayMs, run) => {
    const timer = setTimeout(run, delayMs)
    timer.unref()
    return () => clearTimeout(timer)
  },
}

/** Time that a test moves. */
export class HeldClock implements Clock {
  private nowMs: number
  private timers: { at: number; run: () => void }[] = []

  constructor(nowMs = 1_700_000_000_000) {
    this.nowMs = nowMs
  }

  now(): number {
    return this.nowMs
  }

  monotonic(): number {
    return this.nowMs
  }

  after(delayMs: number, run: () => void): () => void {
    const timer = { at: this.nowMs + delayMs, run }
    this.timers.push(timer)
    return () => {
      this.timers = this.timers.filter((other) => other !== timer)
    }
  }

  /** Lets so much time pass, and runs what is due. */
  pass(ms: number): void {
    this.nowMs += ms
    const due = this.timers.filter(({ at }) => at <= this.nowMs)
    this.timers = this.timers.filter(({ at }) => at > this.nowMs)
    for (const { run } of due) run()
  }
}
