/** Runs of one automation for one task or record in a minute; more are a loop, as by a receiver that writes back. */
const SUBJECT_RUNS_MAX = 30
const WINDOW_MS = 60_000
const KEPT_MAX = 50_000

interface Window {
  beganMs: number
  runs: number
  /** Position of the last event counted: a repeated one counts once. */
  position: number
}

/** Rates of automations for the same subjects of a partition, by the times when their events were logged. */
export class SubjectRates {
  private readonly windows = new Map<string, Window>()

  /** Whether one more run may begin for an event. Events come in the order of the log. */
  admits(automationId: string, subjectId: string, position: number, loggedAtMs: number): boolean {
    const key = `${automationId}:${subjectId}`
    let window = this.windows.get(key)
    if (window === undefined || loggedAtMs - window.beganMs >= WINDOW_MS) {
      this.windows.delete(key)
      this.forgetOld(loggedAtMs)
      this.windows.set(key, (window = { beganMs: loggedAtMs, runs: 0, position: -1 }))
    }
    if (window.position !== position) window.runs++
    window.position = position
    return window.runs <= SUBJECT_RUNS_MAX
  }

  /** Windows are in the order in which they began. */
  private forgetOld(nowMs: number): void {
    for (const [key, { beganMs }] of this.windows) {
      if (nowMs - beganMs < WINDOW_MS && this.windows.size < KEPT_MAX) return
      this.windows.delete(key)
    }
  }
}
