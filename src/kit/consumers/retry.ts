import type { Clock } from '../../kernel/clock.ts'

/** Pauses after failures in a row; the last one repeats. */
export const RETRY_MS: readonly number[] = [100, 500, 2_000, 5_000]

export interface RetryOptions {
  clock: Clock
  /** Ends the attempts, and the pause before the next one. */
  signal: AbortSignal
  /** Pauses after failures in a row; the last one repeats. Default `RETRY_MS`. */
  retryMs?: readonly number[]
  /** Whether no further attempt would mend a failure; left out, none is lasting. */
  isLasting?(error: unknown): boolean
  /** Called with each failure, and the number of failures in a row. */
  onFailure(error: unknown, failures: number): void
}

/** Runs until it succeeds, and answers its result, or until the signal is aborted. @throws a lasting failure. */
export const untilDone = async <Result>(
  run: () => Promise<Result>,
  options: RetryOptions,
): Promise<Result | undefined> => {
  for (let failures = 1; !options.signal.aborted; failures++) {
    try {
      return await run()
    } catch (error) {
      if (options.isLasting?.(error)) throw error
      await failed(error, failures, options)
    }
  }
  return undefined
}

/** Runs again and again until the signal is aborted; `run` calls `progressed` to reset the count of failures. */
export const forever = async (run: (progressed: () => void) => Promise<void>, options: RetryOptions): Promise<void> => {
  let failures = 0
  const progressed = (): void => {
    failures = 0
  }
  while (!options.signal.aborted) {
    try {
      await run(progressed)
    } catch (error) {
      await failed(error, ++failures, options)
    }
  }
}

/** Resolves after `delayMs` or, sooner, when the signal is aborted. */
export const pause = (clock: Pick<Clock, 'after'>, delayMs: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resume) => {
    const cancel = clock.after(delayMs, done)
    function done(): void {
      cancel()
      signal?.removeEventListener('abort', done)
      resume()
    }
    if (signal?.aborted) done()
    else signal?.addEventListener('abort', done)
  })

/** Whether the work is done within the time; false also for work that fails. */
export const within = (clock: Clock, timeoutMs: number, work: Promise<unknown>): Promise<boolean> =>
  new Promise((resolve) => {
    const cancel = clock.after(timeoutMs, () => finish(false))
    const finish = (isDone: boolean): void => {
      cancel()
      resolve(isDone)
    }
    work.then(
      () => finish(true),
      () => finish(false),
    )
  })

const failed = (error: unknown, failures: number, { clock, signal, retryMs = RETRY_MS, onFailure }: RetryOptions) => {
  onFailure(error, failures)
  return pause(clock, retryMs[Math.min(failures, retryMs.length) - 1], signal)
}
