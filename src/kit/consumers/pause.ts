import type { Clock } from '../../kernel/clock.ts'

/** Resolves after `delayMs` or, sooner, when the signal is aborted. */
export const pause = (clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> =>
  new Promise((resume) => {
    const cancel = clock.after(delayMs, done)
    function done(): void {
      cancel()
      signal.removeEventListener('abort', done)
      resume()
    }
    if (signal.aborted) done()
    else signal.addEventListener('abort', done)
  })
