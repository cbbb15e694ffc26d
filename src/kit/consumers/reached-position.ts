import type { Clock } from '../../kernel/clock.ts'

/** How far a consumer of the whole log has come, for those who wait until it has passed a position. */
export class ReachedPosition {
  /** Nothing before the first `moveTo`. */
  at = -1
  private readonly clock: Clock
  private waiting: { position: number; resolve(): void }[] = []

  constructor(clock: Clock) {
    this.clock = clock
  }

  moveTo(position: number): void {
    this.at = position
    for (const waiter of [...this.waiting]) if (waiter.position <= position) waiter.resolve()
  }

  /** Whether the position is reached; false when it is not after `timeoutMs`. */
  wait(position: number, timeoutMs: number): Promise<boolean> {
    if (this.at >= position) return Promise.resolve(true)
    return new Promise((resolve) => {
      const waiter = { position, resolve: () => finish(true) }
      const cancel = this.clock.after(timeoutMs, () => finish(false))
      const finish = (isReached: boolean): void => {
        cancel()
        this.waiting = this.waiting.filter((other) => other !== waiter)
        resolve(isReached)
      }
      this.waiting.push(waiter)
    })
  }
}
