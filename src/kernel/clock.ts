/** Time as the service sees it: handed in everywhere, so that a test can hold it still. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  /** Calls `run` once after `delayMs`; the answer cancels it. Timers of a clock never keep the process alive. */
  after(delayMs: number, run: () => void): () => void
}
