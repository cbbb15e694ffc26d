/** Time as the service sees it: handed in everywhere, so that a test can hold it still. */
export interface Clock {
  /** Milliseconds since the epoch, for values stored, shown or compared between machines. It may be set back. */
  now(): number
  /** Milliseconds since some moment, for intervals: it only rises and cannot be set. */
  monotonic(): number
  /** Calls `run` once after `delayMs`; the answer cancels it. Timers of a clock never keep the process alive. */
  after(delayMs: number, run: () => void): () => void
}
