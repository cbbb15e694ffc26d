import type { Clock } from '../../src/kernel/clock.ts'

/** A clock that moves only when told. `advance` runs what falls due, in order, each at its own time. */
export class FakeClock implements Clock {
  private elapsedMs = 0
  private startedAt: number
  private made = 0
  private timers: { id: number; at: number; run: () => void }[] = []

  constructor(time = Date.parse('2026-01-01T00:00:00Z')) {
    this.startedAt = time
  }

  now(): number {
    return this.startedAt + this.elapsedMs
  }

  monotonic(): number {
    return this.elapsedMs
  }

  after(delayMs: number, run: () => void): () => void {
    const id = ++this.made
    this.timers.push({ id, at: this.elapsedMs + delayMs, run })
    return () => {
      this.timers = this.timers.filter((timer) => timer.id !== id)
    }
  }

  advance(ms: number): void {
    const end = this.elapsedMs + ms
    for (;;) {
      const due = this.timers.filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at || a.id - b.id)[0]
      if (due === undefined) break
      this.timers = this.timers.filter((timer) => timer.id !== due.id)
      this.elapsedMs = Math.max(this.elapsedMs, due.at)
      due.run()
    }
    this.elapsedMs = end
  }

  /** Whether somebody waits for just so long from now. */
  isAwaited(ms: number): boolean {
    return this.timers.some(({ at }) => at === this.elapsedMs + ms)
  }

  /** The process stands still (stopped, or its machine suspended): time passes, and what falls due meanwhile has yet to run. */
  stand(ms: number): void {
    this.elapsedMs += ms
  }

  /** Somebody sets the clock, forwards or back; no time passes. */
  set(byMs: number): void {
    this.startedAt += byMs
  }
}
