import { seeded } from '../support/random.ts'

/** Something that runs when its time has come, in the process that it belongs to. */
interface Due {
  atMs: number
  order: number
  host: Stoppable | undefined
  run(): void
}

/** A process as the timeline sees it: what falls due in one that stands still waits, in one that died it never runs. */
export interface Stoppable {
  readonly name: string
  state: 'runs' | 'stands' | 'dead'
  /** Milliseconds that somebody has set its wall clock by. */
  wallShiftMs: number
  held: Due[]
}

/** Milliseconds since the epoch at which every run begins. */
export const BEGUN_MS = Date.parse('2026-01-01T00:00:00Z')
const TRACE_LINES = 60

/**
 * The one order in which everything of a run happens. Time passes only between two steps, a step ends when all that
 * follows from it without waiting has run, and chance comes from the seed: so a seed gives the same steps each time.
 */
export class Timeline {
  readonly random: () => number
  /** Milliseconds since the beginning of the run. */
  nowMs = 0
  steps = 0
  /** The process whose step it is; undefined for engines, clients and faults. */
  current: Stoppable | undefined
  /** What was thrown in a step and caught by nobody. */
  readonly thrown: unknown[] = []
  private readonly due: Due[] = []
  private order = 0
  private hash = 0x811c9dc5
  private readonly lines: string[] = []

  constructor(seed: number) {
    this.random = seeded(seed)
  }

  /** A whole number from `from` to `to`, both included. */
  between(from: number, to: number): number {
    return from + Math.floor(this.random() * (to - from + 1))
  }

  chance(part: number): boolean {
    return this.random() < part
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.random() * items.length)]
  }

  /** Runs something after so long, in a process or outside of all; the answer cancels it. */
  after(delayMs: number, run: () => void, host?: Stoppable): () => void {
    const due: Due = { atMs: this.nowMs + Math.max(0, delayMs), order: this.order++, host, run }
    this.insert(due)
    return () => {
      due.run = nothing
    }
  }

  /** What a process had waiting runs from now on. */
  goOn(host: Stoppable): void {
    host.state = 'runs'
    for (const due of host.held.splice(0)) this.insert({ ...due, atMs: this.nowMs, order: this.order++ })
  }

  /** Runs what is due next; false where nothing is. */
  step(): boolean {
    const due = this.pop()
    if (due === undefined) return false
    this.nowMs = Math.max(this.nowMs, due.atMs)
    const { host } = due
    if (host?.state === 'dead' || due.run === nothing) return true
    if (host?.state === 'stands') {
      host.held.push(due)
      return true
    }
    this.steps++
    this.current = host
    try {
      due.run()
    } catch (error) {
      this.thrown.push(error)
    }
    return true
  }

  /** Notes what happened: equal runs have equal traces. */
  trace(text: string): void {
    const line = `${this.nowMs.toFixed(0)} ${text}`
    for (let i = 0; i < line.length; i++) this.hash = Math.imul(this.hash ^ line.charCodeAt(i), 0x01000193)
    this.lines.push(line)
    if (this.lines.length > TRACE_LINES) this.lines.shift()
  }

  /** A number that follows from everything that was noted. */
  get fingerprint(): string {
    return (this.hash >>> 0).toString(16).padStart(8, '0')
  }

  get lastLines(): readonly string[] {
    return this.lines
  }

  private insert(due: Due): void {
    const { due: heap } = this
    let at = heap.push(due) - 1
    while (at > 0) {
      const above = (at - 1) >> 1
      if (isBefore(heap[above], due)) break
      heap[at] = heap[above]
      at = above
    }
    heap[at] = due
  }

  private pop(): Due | undefined {
    const { due: heap } = this
    const first = heap[0]
    const last = heap.pop()
    if (last === undefined || last === first) return first
    let at = 0
    for (let below = 1; below < heap.length; below = 2 * at + 1) {
      if (below + 1 < heap.length && isBefore(heap[below + 1], heap[below])) below++
      if (isBefore(last, heap[below])) break
      heap[at] = heap[below]
      at = below
    }
    heap[at] = last
    return first
  }
}

const nothing = (): void => undefined

const isBefore = (one: Due, other: Due): boolean =>
  one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order)
