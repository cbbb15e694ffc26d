import type { Clock } from '../../kernel/clock.ts'

/** Work that is done again and again, each time a while after it has ended. */
export abstract class Rounds {
  protected isClosed = false
  private readonly clock: Pick<Clock, 'after'>
  private readonly everyMs: number
  private cancel = (): void => undefined
  private round: Promise<unknown> = Promise.resolve()

  constructor(clock: Pick<Clock, 'after'>, everyMs: number) {
    this.clock = clock
    this.everyMs = everyMs
  }

  protected abstract work(): Promise<unknown>
  protected abstract failed(error: unknown): void

  start(): this {
    this.round = this.work().catch((error: unknown) => this.failed(error))
    void this.round.then(() => {
      if (!this.isClosed) this.startLater()
    })
    return this
  }

  startLater(): void {
    this.cancel = this.clock.after(this.everyMs, () => void this.start())
  }

  /** Resolves when the work under way has ended. */
  async idle(): Promise<void> {
    await this.round
  }

  async close(): Promise<void> {
    this.isClosed = true
    this.cancel()
    await this.round
  }
}
