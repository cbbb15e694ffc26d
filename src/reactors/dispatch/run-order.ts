import { Heap } from './heap.ts'
import { ATTEMPTS_IN_ORDER } from './retry-schedule.ts'
import type { Run } from './run.ts'

/** What a failed or given back attempt leaves of a run. */
export interface Standing {
  attempts: number
  dueAt: number
  delayMs: number
}

/**
 * The order in which runs of one automation and one partition may be attempted. Runs of one tracker form a lane: only
 * its first run may be attempted, until it is over or has failed three times; then it leaves the lane and goes on alone.
 * Among what is due, the oldest comes first.
 */
export class RunOrder {
  private readonly byId = new Map<string, Run>()
  private readonly lanes = new Map<string, Run[]>()
  private readonly ready = new Heap<Run>((a, b) => a.sequence < b.sequence)
  private readonly waiting = new Heap<Run>(
    (a, b) => a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.sequence < b.sequence),
  )
  private readonly underWay = new Set<string>()
  private aloneCount = 0

  get size(): number {
    return this.byId.size
  }

  /** Runs that still keep their order. */
  get inOrder(): number {
    return this.byId.size - this.aloneCount
  }

  /** Runs that go on alone. */
  get alone(): number {
    return this.aloneCount
  }

  has(runId: string): boolean {
    return this.byId.has(runId)
  }

  get(runId: string): Run | undefined {
    return this.byId.get(runId)
  }

  /** Adds a run behind those of its tracker. Runs that keep their order are added by rising sequence. */
  add(run: Run): void {
    if (this.byId.has(run.runId)) return
    this.byId.set(run.runId, run)
    if (run.alone) {
      this.aloneCount++
      this.waiting.push(run)
      return
    }
    const lane = this.lanes.get(run.trigger.subject.id)
    if (lane !== undefined) lane.push(run)
    else {
      this.lanes.set(run.trigger.subject.id, [run])
      this.waiting.push(run)
    }
  }

  /** The oldest run that is due, without taking it. */
  peek(now: number): Run | undefined {
    for (let due = this.waiting.peek(); due !== undefined && due.dueAt <= now; due = this.waiting.peek()) {
      this.waiting.pop()
      this.ready.push(due)
    }
    return this.ready.peek()
  }

  /** Takes the oldest run that is due: it is under way until `end` or `again`. */
  take(now: number): Run | undefined {
    const run = this.peek(now)
    if (run === undefined) return undefined
    this.ready.pop()
    this.underWay.add(run.runId)
    return run
  }

  /** When something is due next, of what is not due yet. */
  nextDueAt(): number | undefined {
    return this.ready.size > 0 ? 0 : this.waiting.peek()?.dueAt
  }

  /** The run is over; the next one of its tracker may go. */
  end(runId: string): Run | undefined {
    const run = this.forget(runId)
    if (run !== undefined && !run.alone) this.leaveLane(run)
    return run
  }

  /** The run is attempted again; after its third failure it no longer holds up its tracker. */
  again(runId: string, standing: Standing): Run | undefined {
    const run = this.byId.get(runId)
    if (run === undefined) return undefined
    this.takeOut(run)
    Object.assign(run, standing)
    if (!run.alone && run.attempts >= ATTEMPTS_IN_ORDER) {
      run.alone = true
      this.aloneCount++
      this.leaveLane(run)
    }
    this.waiting.push(run)
    return run
  }

  /** Lets the waiting runs that go on alone out of memory, all but the `keep` that are due first; answers when the first of them is due. */
  dropAlone(keep: number): number | undefined {
    const first = [...this.waiting].filter((run) => run.alone).sort((a, b) => a.dueAt - b.dueAt)[keep]
    return first === undefined ? undefined : this.dropAloneFrom(first.dueAt)
  }

  /** Lets the waiting runs that go on alone and are due at that time or later out of memory; answers when the first of them is due. */
  dropAloneFrom(dueAt: number): number | undefined {
    const dropped = [...this.waiting].filter((run) => run.alone && run.dueAt >= dueAt)
    if (dropped.length === 0) return undefined
    this.waiting.filter((run) => !run.alone || run.dueAt < dueAt)
    for (const run of dropped) this.byId.delete(run.runId)
    this.aloneCount -= dropped.length
    return dueAt
  }

  /** Every run that is not under way. */
  idle(): Run[] {
    return [...this.byId.values()].filter((run) => !this.underWay.has(run.runId))
  }

  private forget(runId: string): Run | undefined {
    const run = this.byId.get(runId)
    if (run === undefined) return undefined
    this.takeOut(run)
    this.byId.delete(runId)
    if (run.alone) this.aloneCount--
    return run
  }

  /** From under way, or from the heaps where it waits. */
  private takeOut(run: Run): void {
    if (this.underWay.delete(run.runId)) return
    const other = (one: Run): boolean => one !== run
    this.waiting.filter(other)
    this.ready.filter(other)
  }

  private leaveLane(run: Run): void {
    const { id } = run.trigger.subject
    const lane = this.lanes.get(id)
    if (lane === undefined) return
    const wasFirst = lane[0] === run
    lane.splice(lane.indexOf(run), 1)
    if (lane.length === 0) this.lanes.delete(id)
    else if (wasFirst) this.waiting.push(lane[0])
  }
}
