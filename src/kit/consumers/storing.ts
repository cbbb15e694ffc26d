/** Stores portions one after the other while their producer goes on with the next one. */
export class Storing {
  private running: Promise<void> | undefined
  private failure: { cause: unknown } | undefined

  /** Whether a portion is still on its way. */
  get isRunning(): boolean {
    return this.running !== undefined
  }

  /** Begins once the portion before is stored. @throws the failure of that portion */
  async begin(store: () => Promise<void>): Promise<void> {
    await this.end()
    this.running = store()
      .catch((cause: unknown) => {
        this.failure = { cause }
      })
      .finally(() => {
        this.running = undefined
      })
  }

  /** Resolves when all is stored. @throws the failure of a portion */
  async end(): Promise<void> {
    await this.running
    const { failure } = this
    this.failure = undefined
    if (failure !== undefined) throw failure.cause
  }
}
