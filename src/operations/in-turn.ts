/** Runs one thing after the other, in the order asked, and none any more once it is closed. */
export class InTurn {
  private turn: Promise<unknown> = Promise.resolve()
  private readonly abort = new AbortController()

  /** Aborted by `close`: whatever runs should end soon. */
  get signal(): AbortSignal {
    return this.abort.signal
  }

  readonly run = <Result>(what: () => Promise<Result>): Promise<Result> => {
    const result = this.turn.then(() => {
      this.abort.signal.throwIfAborted()
      return what()
    })
    this.turn = result.catch(() => undefined) // the asker gets the rejection
    return result
  }

  async close(): Promise<void> {
    this.abort.abort(new Error('the service is stopping'))
    await this.turn
  }
}
