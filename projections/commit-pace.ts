/** Few rows are committed soon, many about once a second: then most are committed once for several points. */
const SOON_MS = 200
const PAUSE_MS = 1_000
const FEW_ROWS = 1_000
/** Approximate share of the time that commits may take; pauses last at most `PAUSE_MS_MAX`. */
const SHARE = 0.25
const PAUSE_MS_MAX = 4_000

/** How long changed rows wait for their commit. */
export class CommitPace {
  /** Rows of the last commit. */
  rows = 0
  private tookMs = 0

  /** From the first change to its commit. */
  get waitMs(): number {
    return this.rows <= FEW_ROWS ? SOON_MS : PAUSE_MS
  }

  /** From the end of a commit to the next: the shorter of two counts, since one that a takeover or sleep held up cost nothing. */
  pauseMs(tookMs: number): number {
    const costMs = Math.min(this.tookMs, tookMs)
    this.tookMs = tookMs
    return Math.min(PAUSE_MS_MAX, Math.max(PAUSE_MS, costMs / SHARE))
  }
}
