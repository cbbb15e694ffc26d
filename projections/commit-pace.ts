/** Few rows are committed as soon as that costs little, many about once a second: then most are committed once for several points. */
const SOON_MS = 20
const SOON_MS_MAX = 200
const PAUSE_MS = 1_000
const FEW_ROWS = 1_000
/** Share of the time that commits of few rows may take where they do not wait for longer. */
const SOON_SHARE = 0.1
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
    return this.rows <= FEW_ROWS ? Math.min(SOON_MS_MAX, this.soonMs(this.tookMs)) : PAUSE_MS
  }

  /** From the end of a commit to the next: the shorter of two counts, since one that a takeover or sleep held up cost nothing. */
  pauseMs(tookMs: number): number {
    const costMs = Math.min(this.tookMs, tookMs)
    this.tookMs = tookMs
    const leastMs = this.rows <= FEW_ROWS ? Math.min(PAUSE_MS, this.soonMs(costMs)) : PAUSE_MS
    return Math.min(PAUSE_MS_MAX, Math.max(leastMs, costMs / SHARE))
  }

  private soonMs(costMs: number): number {
    return Math.max(SOON_MS, costMs / SOON_SHARE)
  }
}
