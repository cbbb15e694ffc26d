import { ATTEMPTS_IN_ORDER } from './retry-schedule.ts'
import type { Run } from './owed-rows.ts'

/** State of a run after a failed or returned attempt. */
export interface Standing {
  attempts: number
  dueAt: number
  delayMs: number
}

/**
 * The order in which runs of one automation and one partition may be attempted. Runs of one subject queue up: only the
 * first may be attempted, until it has ended or has failed three times; then it leaves the queue and goes on alone. Of
 * the due runs, the oldest comes first.
 */
export class RunOrder {
  private readonly byId = new Map<string, Run>()
  private readonly queues = new Map<string, Run[]>()
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

  /** Adds a run after those of its subject. Runs that keep their order are added by rising sequence. */
  add(run: Run): void {
    if (this.byId.has(run.runId)) return
    this.byId.set(run.runId, run)
    if (run.alone) {
      this.aloneCount++
      this.waiting.push(run)
      return
    }
    const queue = this.queues.get(run.trigger.subject.id)
    if (queue !== undefined) queue.push(run)
    else {
      this.queues.set(run.trigger.subject.id, [run])
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

  /** Due time of the next run that is not due yet. */
  nextDueAt(): number | undefined {
    return this.ready.size > 0 ? 0 : this.waiting.peek()?.dueAt
  }

  /** The run has ended; the next one of its subject may go. */
  end(runId: string): Run | undefined {
    const run = this.forget(runId)
    if (run !== undefined && !run.alone) this.leaveQueue(run)
    return run
  }

  /** The run is attempted again; after its third failure it no longer holds up its subject. */
  again(runId: string, standing: Standing): Run | undefined {
    const run = this.byId.get(runId)
    if (run === undefined) return undefined
    this.takeOut(run)
    Object.assign(run, standing)
    if (!run.alone && run.attempts >= ATTEMPTS_IN_ORDER) {
      run.alone = true
      this.aloneCount++
      this.leaveQueue(run)
    }
    this.waiting.push(run)
    return run
  }

  /** Drops waiting lone runs from memory, but the `keep` due first; answers when the first dropped one is due. */
  dropAlone(keep: number): number | undefined {
    const first = [...this.waiting].filter((run) => run.alone).sort((a, b) => a.dueAt - b.dueAt)[keep]
    return first === undefined ? undefined : this.dropAloneFrom(first.dueAt)
  }

  /** Drops waiting lone runs due at that time or later from memory; answers when the first of them is due. */
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

  /** Removes it from those under way, or from the heaps where it waits. */
  private takeOut(run: Run): void {
    if (this.underWay.delete(run.runId)) return
    if (!this.waiting.remove(run)) this.ready.remove(run)
  }

  private leaveQueue(run: Run): void {
    const { id } = run.trigger.subject
    const queue = this.queues.get(id)
    if (queue === undefined) return
    const wasFirst = queue[0] === run
    queue.splice(queue.indexOf(run), 1)
    if (queue.length === 0) this.queues.delete(id)
    else if (wasFirst) this.waiting.push(queue[0])
  }
}

/** A binary heap: `pop` answers the item that `before` puts first. */
class Heap<Item> {
  private items: Item[] = []
  private readonly before: (a: Item, b: Item) => boolean

  constructor(before: (a: Item, b: Item) => boolean) {
    this.before = before
  }

  get size(): number {
    return this.items.length
  }

  peek(): Item | undefined {
    return this.items[0]
  }

  push(item: Item): void {
    this.rise(item, this.items.push(item) - 1)
  }

  pop(): Item | undefined {
    const first = this.items[0]
    const last = this.items.pop()
    if (this.items.length > 0 && last !== undefined) this.sink(last, 0)
    return first
  }

  /** Answers whether it was there. */
  remove(item: Item): boolean {
    const at = this.items.indexOf(item)
    if (at < 0) return false
    const last = this.items.pop() as Item
    if (last === item) return true
    this.sink(last, at)
    if (this.items[at] === last) this.rise(last, at)
    return true
  }

  /** Removes every item that `keep` refuses. */
  filter(keep: (item: Item) => boolean): void {
    const kept = this.items.filter(keep)
    this.items = []
    for (const item of kept) this.push(item)
  }

  [Symbol.iterator](): Iterator<Item> {
    return this.items[Symbol.iterator]()
  }

  /** Puts an item in place that belongs at `from` or above. */
  private rise(item: Item, from: number): void {
    const { items, before } = this
    let at = from
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!before(item, items[parent])) break
      items[at] = items[parent]
      at = parent
    }
    items[at] = item
  }

  /** The same for one that belongs there or below. */
  private sink(item: Item, from: number): void {
    const { items, before } = this
    let at = from
    for (;;) {
      let child = at * 2 + 1
      if (child >= items.length) break
      if (child + 1 < items.length && before(items[child + 1], items[child])) child++
      if (!before(items[child], item)) break
      items[at] = items[child]
      at = child
    }
    items[at] = item
  }
}
