import type { Clock } from '../../src/kernel/clock.ts'

/** A clock that moves only when told. `advance` runs what falls due, in order, each at its own time. */
export class FakeClock implements Clock {
  private time: number
  private made = 0
  private timers: { id: number; at: number; run: () => void }[] = []

  constructor(time = Date.parse('2026-01-01T00:00:00Z')) {
    this.time = time
  }

  now(): number {
    return this.time
  }

  after(delayMs: number, run: () => void): () => void {
    const id = ++this.made
    this.timers.push({ id, at: this.time + delayMs, run })
    return () => {
      this.timers = this.timers.filter((timer) => timer.id !== id)
    }
  }

  advance(ms: number): void {
    const end = this.time + ms
    for (;;) {
      const due = this.timers.filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at || a.id - b.id)[0]
      if (due === undefined) break
      this.timers = this.timers.filter((timer) => timer.id !== due.id)
      this.time = Math.max(this.time, due.at)
      due.run()
    }
    this.time = end
  }
}
