export interface Asked {
  /** Its time ran out before it was answered. */
  isLate: boolean
}

interface Waiting extends Asked {
  askedAtMs: number
  late(): void
}

/** Ends questions that take too long, all after the same time, by one timer: each would cost more than its question. */
export class Deadlines {
  private readonly deadlineMs: number
  /** In the order of their requests. */
  private readonly waiting = new Set<Waiting>()
  private timer: NodeJS.Timeout | undefined

  constructor(deadlineMs: number) {
    this.deadlineMs = deadlineMs
  }

  /** Answer of the question; rejects with the error of `late` where the time runs out first. */
  within<Answer>(ask: (asked: Asked) => Promise<Answer>, late: (askedAtMs: number) => Error): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const askedAtMs = performance.now()
      const own = { askedAtMs, isLate: false, late: () => reject(late(askedAtMs)) }
      this.waiting.add(own)
      if (this.timer === undefined) this.wakeIn(this.deadlineMs)
      ask(own).then(
        (answer) => {
          this.waiting.delete(own)
          resolve(answer)
        },
        (error) => {
          this.waiting.delete(own)
          reject(error)
        },
      )
    })
  }

  private wakeIn(ms: number): void {
    // Where the process stood still, answers that came meanwhile are read first.
    this.timer = setTimeout(() => setImmediate(() => this.endLate()), ms).unref()
  }

  private endLate(): void {
    this.timer = undefined
    const latestMs = performance.now() - this.deadlineMs
    for (const own of this.waiting) {
      if (own.askedAtMs > latestMs) {
        this.wakeIn(Math.max(1, Math.ceil(own.askedAtMs - latestMs)))
        return
      }
      this.waiting.delete(own)
      own.isLate = true
      own.late()
    }
  }
}
