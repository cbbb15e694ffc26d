/** Time as the service sees it: handed in everywhere, so that a test can hold it still. */
export interface Clock {
  /** Milliseconds since the epoch, for what is stored, shown or compared between machines. Anybody may set it, forwards and back. */
  now(): number
  /** Milliseconds since some moment, for intervals: it only rises, and nobody sets it. */
  monotonic(): number
  /** Calls `run` once after `delayMs`; the answer cancels it. Timers of a clock never keep the process alive. */
  after(delayMs: number, run: () => void): () => void
}
