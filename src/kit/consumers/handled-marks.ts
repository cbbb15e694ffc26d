const MARK_MS = 100
const MARKS_MAX = 1_000

/** Logged times of entries handled and perhaps not stored: one mark for each tenth of a second. */
export class HandledMarks {
  private marks: { revision: number; loggedAt: number }[] = []
  private last = -1

  note(revision: number, loggedAt: number): void {
    this.last = revision
    const newest = this.marks.at(-1)
    if (newest !== undefined && Math.abs(loggedAt - newest.loggedAt) < MARK_MS) return
    if (this.marks.length >= MARKS_MAX) this.marks = this.marks.filter((_, i) => i % 2 === 0)
    this.marks.push({ revision, loggedAt })
  }

  /** Logged time of the first entry after that revision; undefined where none was handled. */
  loggedAfter(stored: number): number | undefined {
    while (this.marks.length > 1 && this.marks[1].revision <= stored + 1) this.marks.shift()
    return this.last > stored ? this.marks[0]?.loggedAt : undefined
  }

  clear(): void {
    this.marks = []
    this.last = -1
  }
}
