/** Runs tasks one after the other, in the order requested; after closing, it runs no more. */
export class InTurn {
  private turn: Promise<unknown> = Promise.resolve()
  private readonly abort = new AbortController()

  /** Aborted by `close`: running work should end soon. */
  get signal(): AbortSignal {
    return this.abort.signal
  }

  readonly run = <Result>(what: () => Promise<Result>): Promise<Result> => {
    const result = this.turn.then(() => {
      this.abort.signal.throwIfAborted()
      return what()
    })
    this.turn = result.catch(() => undefined) // the caller gets the rejection
    return result
  }

  async close(): Promise<void> {
    this.abort.abort(new Error('the service is stopping'))
    await this.turn
  }
}
