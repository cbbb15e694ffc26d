import type { Clock } from '../../kernel/clock.ts'

/** Counts the attempts that are under way in this process, against a bound, and knows when none is left. */
export class UnderWay {
  private readonly max: number
  private count = 0
  private onEmpty: (() => void) | undefined

  constructor(max: number) {
    this.max = max
  }

  get size(): number {
    return this.count
  }

  get isFull(): boolean {
    return this.count >= this.max
  }

  enter(): void {
    this.count++
  }

  leave(): void {
    if (--this.count === 0) this.onEmpty?.()
  }

  /** Resolves when nothing is under way any more, at the latest after `limitMs`. */
  empty(clock: Clock, limitMs: number): Promise<void> {
    if (this.count === 0) return Promise.resolve()
    return new Promise((resolve) => {
      const cancel = clock.after(limitMs, resolve)
      this.onEmpty = () => {
        cancel()
        resolve()
      }
    })
  }
}
