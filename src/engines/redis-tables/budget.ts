/** Work of a server that may be under way at once. Callers without budget wait in the order of their arrival. */
export class Budget {
  private left: number
  private readonly most: number
  private readonly waiting: { cost: number; go: () => void }[] = []

  constructor(most: number) {
    this.most = most
    this.left = most
  }

  /** Takes some of it; work that costs more than all of it runs alone. */
  async take(cost: number): Promise<void> {
    const own = Math.min(cost, this.most)
    if (this.waiting.length === 0 && this.left >= own) this.left -= own
    else await new Promise<void>((go) => this.waiting.push({ cost: own, go }))
  }

  /** Resolves when nobody waits for it. */
  async room(): Promise<void> {
    if (this.waiting.length === 0) return
    await this.take(0)
    this.giveBack(0)
  }

  /** Releases all waiters: behind an unresponsive server they would wait for one deadline after the other. */
  letAll(): void {
    for (const { cost, go } of this.waiting.splice(0)) {
      this.left -= cost
      go()
    }
  }

  giveBack(cost: number): void {
    this.left += Math.min(cost, this.most)
    while (this.waiting.length > 0 && this.left >= this.waiting[0].cost) {
      const { cost: next, go } = this.waiting.shift()!
      this.left -= next
      go()
    }
  }
}
