import { breathe } from '../../kernel/breath.ts'

/** One consumer of one partition. */
export interface TurnTaker {
  /** Handles the waiting entries that can be handled at once; false where the time was over before. */
  takeTurn(): boolean
}

/**
 * Entries that one beat of the log appended to many partitions are handled in one turn: each consumer runs once, over
 * all partitions with entries for it, one after the other. A promise and a cold start for each partition cost several
 * times as much as the few points of each.
 */
export class ConsumerTurn {
  /** Takers with something to do, by consumer; unfinished ones go to the back. */
  private readonly waiting = new Map<object, TurnTaker[]>()
  private isRunning = false

  add(consumer: object, taker: TurnTaker): void {
    const takers = this.waiting.get(consumer)
    if (takers === undefined) this.waiting.set(consumer, [taker])
    else takers.push(taker)
    if (this.isRunning) return
    this.isRunning = true
    // Other partitions' entries of the same commit, and its acknowledgements, come first.
    process.nextTick(() => void this.run())
  }

  private async run(): Promise<void> {
    while (this.waiting.size > 0) {
      const pause = breathe()
      if (pause !== undefined) await pause
      this.takeTurns()
    }
    this.isRunning = false
  }

  /** Runs until all takers are through, or the time is over. */
  private takeTurns(): void {
    for (const [consumer, takers] of this.waiting) {
      this.waiting.delete(consumer)
      const through = takers.findIndex((taker) => !taker.takeTurn())
      if (through < 0) continue
      this.waiting.set(consumer, [...takers.slice(through), ...(this.waiting.get(consumer) ?? [])])
      return
    }
  }
}
