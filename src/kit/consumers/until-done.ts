import type { Clock } from '../../kernel/clock.ts'
import { pause } from './pause.ts'

export interface UntilDoneOptions {
  clock: Clock
  /** Ends the attempts, and the pause before the next one. */
  signal: AbortSignal
  /** Pauses after failures; the last one repeats. */
  retryMs: readonly number[]
  onFailure(error: unknown): void
}

/** Runs until it succeeds, or the signal is aborted. */
export const untilDone = async (
  run: () => Promise<void>,
  { clock, signal, retryMs, onFailure }: UntilDoneOptions,
): Promise<void> => {
  for (let failures = 0; !signal.aborted; failures++) {
    try {
      return await run()
    } catch (error) {
      onFailure(error)
      await pause(clock, retryMs[Math.min(failures, retryMs.length - 1)], signal)
    }
  }
}
