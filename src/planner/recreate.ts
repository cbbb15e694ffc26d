import type { Problem } from './problem.ts'
import type { Random } from './random.ts'
import { type Insertion, Insertions } from './insertions.ts'
import type { Routes } from './routes.ts'

/** Chance that the cheapest place of a task is skipped. */
const BLINK = 0.01
/** Tasks in no route before a step that are tried in it. */
const ABSENT_TRIED_MAX = 20

/** An order in which tasks are put back, and its weight. */
interface Order {
  weight: number
  keys: Float64Array
}

/** Inserts tasks where they cost least, and can undo a step. */
export class Recreate {
  /** Tasks in no route. */
  readonly absent: Int32Array
  absentCount = 0
  private readonly routes: Routes
  private readonly random: Random
  private readonly orders: readonly Order[]
  private readonly weights: number
  private readonly shuffled: Float64Array
  private readonly insertions: Insertions
  private readonly waiting: Int32Array
  private waitingCount = 0
  private readonly absentBefore: Int32Array
  private absentCountBefore = 0
  /** Routes as they were before the step: vehicle, size and tasks of each. */
  private readonly log: Int32Array
  private logEnd = 0
  private readonly savedIn: Int32Array
  private step = 0

  constructor(problem: Problem, routes: Routes, random: Random, penalties: Float64Array) {
    const { length } = problem.tasks
    this.routes = routes
    this.random = random
    this.shuffled = new Float64Array(length)
    this.orders = ordersOf(problem, penalties, this.shuffled)
    this.weights = this.orders.reduce((sum, { weight }) => sum + weight, 0)
    this.insertions = new Insertions(problem, routes, () => random.next() < BLINK)
    this.absent = new Int32Array(length)
    this.absentBefore = new Int32Array(length)
    this.waiting = new Int32Array(length)
    this.log = new Int32Array(length + 2 * problem.vehicles.length)
    this.savedIn = new Int32Array(problem.vehicles.length)
    for (let task = 0; task < length; task++) this.absent[this.absentCount++] = task
  }

  /** Whether any vehicle could do it. */
  isPossible(task: number): boolean {
    return this.insertions.isPossible(task)
  }

  begin(): void {
    this.step++
    this.logEnd = 0
    this.waitingCount = 0
    this.absentBefore.set(this.absent.subarray(0, this.absentCount))
    this.absentCountBefore = this.absentCount
  }

  /** Remembers a route before its change. */
  changes(vehicle: number): void {
    if (this.savedIn[vehicle] === this.step) return
    this.savedIn[vehicle] = this.step
    const size = this.routes.copyTo(vehicle, this.log, this.logEnd + 2)
    this.log[this.logEnd] = vehicle
    this.log[this.logEnd + 1] = size
    this.logEnd += size + 2
  }

  removed(task: number): void {
    this.waiting[this.waitingCount++] = task
  }

  /** Tries every task that is in no route. */
  insertAll(): void {
    this.insert(this.absentCount)
  }

  /** Tries the tasks removed in this step, and some of those in no route. */
  insertSome(): void {
    this.insert(Math.min(this.absentCount, ABSENT_TRIED_MAX))
  }

  /** Whether every route that the step changed keeps its limits. */
  isValid(): boolean {
    const { log, routes } = this
    for (let at = 0; at < this.logEnd; at += log[at + 1] + 2) if (!routes.isValid(log[at])) return false
    return true
  }

  undo(): void {
    const { log, routes } = this
    for (let at = 0; at < this.logEnd; at += log[at + 1] + 2)
      for (let i = 0; i < log[at + 1]; i++) routes.vehicleOf[log[at + 2 + i]] = -1
    // Tasks that came from outside are removed first, before routes take back their own.
    for (let i = 0; i < this.absentCountBefore; i++) routes.vehicleOf[this.absentBefore[i]] = -1
    for (let at = 0; at < this.logEnd; at += log[at + 1] + 2) routes.setRoute(log[at], log, at + 2, log[at + 1])
    this.absent.set(this.absentBefore.subarray(0, this.absentCountBefore))
    this.absentCount = this.absentCountBefore
  }

  private insert(absentTried: number): void {
    const { waiting, absent, random } = this
    for (let tried = 0; tried < absentTried; tried++) {
      const i = random.below(this.absentCount)
      waiting[this.waitingCount++] = absent[i]
      absent[i] = absent[--this.absentCount]
    }
    this.sort()
    for (let i = 0; i < this.waitingCount; i++) if (!this.place(waiting[i])) absent[this.absentCount++] = waiting[i]
  }

  /** Inserts a task at the cheapest of the places that keep every limit. */
  private place(task: number): boolean {
    const { routes } = this
    let without: Set<number> | undefined
    for (;;) {
      const found: Insertion | undefined = this.insertions.cheapest(task, without)
      if (found === undefined) return false
      this.changes(found.vehicle)
      routes.link(task, found.after)
      if (routes.refresh(found.vehicle)) return true
      // Only the whole route shows its duration.
      routes.unlink(task)
      routes.refresh(found.vehicle)
      without = (without ?? new Set()).add(found.vehicle)
    }
  }

  private sort(): void {
    const { waiting, waitingCount, random } = this
    for (let i = 0; i < waitingCount; i++) this.shuffled[waiting[i]] = random.next()
    let choice = random.next() * this.weights
    const { keys } = this.orders.find(({ weight }) => (choice -= weight) < 0) ?? this.orders[0]
    if (waitingCount > 50) waiting.subarray(0, waitingCount).sort((one, other) => keys[one] - keys[other])
    else
      for (let i = 1; i < waitingCount; i++) {
        const task = waiting[i]
        let at = i
        for (; at > 0 && keys[waiting[at - 1]] > keys[task]; at--) waiting[at] = waiting[at - 1]
        waiting[at] = task
      }
  }
}

/** Orders and weights of the paper; those by times only where tasks have windows. */
const ordersOf = (
  { tasks, vehicles, distances, places }: Problem,
  penalties: Float64Array,
  shuffled: Float64Array,
): Order[] => {
  const by = (weight: number, keyOf: (index: number) => number): Order => ({
    weight,
    keys: Float64Array.from(tasks.keys(), keyOf),
  })
  const depot = vehicles[0]?.start ?? 0
  const apart = (task: number): number => distances[depot * places + tasks[task].place]
  const largest: number[] = []
  for (const { load } of tasks) for (const [i, one] of load.entries()) largest[i] = Math.max(one, largest[i] ?? 0)
  const size = (task: number): number =>
    tasks[task].load.reduce((sum, load, i) => sum + (largest[i] > 0 ? load / largest[i] : 0), 0)
  const orders = [
    { weight: 4, keys: shuffled },
    by(4, (task) => -size(task)),
    by(2, (task) => -apart(task)),
    by(1, apart),
  ]
  if (tasks.some(({ to }) => to < Number.POSITIVE_INFINITY))
    orders.push(
      by(2, (task) => Math.min(1e12, tasks[task].to) - tasks[task].from),
      by(2, (task) => tasks[task].from),
      by(2, (task) => -Math.min(1e12, tasks[task].to)),
    )
  if (penalties.some((penalty) => penalty !== penalties[0])) orders.push(by(6, (task) => -penalties[task]))
  return orders
}
