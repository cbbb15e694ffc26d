import { type Matrix, matrixOf } from './matrix.ts'
import type { Problem, Span, Vehicle } from './problem.ts'
import { hasTimes } from './limits.ts'
import { drivenBy, drivenFrom, keptBreaks, workBefore, workFrom } from './working-time.ts'

/**
 * The routes of a plan in the making, as linked lists of nodes: tasks first, then the starts of the vehicles, then their
 * ends. For each node it keeps the earliest departure and the latest arrival, so that an insertion is checked in O(1).
 */
export class Routes {
  readonly taskCount: number
  readonly vehicleCount: number
  readonly next: Int32Array
  readonly previous: Int32Array
  /** Vehicle by node; -1 for a task in no route. */
  readonly vehicleOf: Int32Array
  /** Place of a task in its route, from 1. */
  readonly position: Int32Array
  /** Tasks of each route. */
  readonly sizes: Int32Array
  readonly costs: Float64Array
  readonly vehicles: readonly Vehicle[]
  readonly breaks: readonly (readonly Span[])[]
  readonly dimensions: number
  /** By task and dimension. */
  readonly loads: Float64Array
  /** Remaining room of each vehicle, by vehicle and dimension. */
  readonly roomLoads: Float64Array
  readonly distancesOf: Float64Array
  /** Driving and work of each route. */
  readonly workOf: Float64Array
  readonly place: Int32Array
  readonly from: Float64Array
  readonly to: Float64Array
  readonly duration: Float64Array
  /** Earliest departure, by node. */
  readonly departs: Float64Array
  /** Latest arrival, by node, that leaves time for later nodes. */
  readonly latest: Float64Array
  /** From the node before. */
  readonly legDistance: Float32Array
  readonly legDuration: Float32Array
  readonly distances: Matrix
  readonly durations: Matrix
  readonly hasTimes: boolean

  constructor(problem: Problem) {
    const { tasks, vehicles, places } = problem
    this.vehicles = vehicles
    this.taskCount = tasks.length
    this.vehicleCount = vehicles.length
    const nodes = tasks.length + 2 * vehicles.length
    this.next = new Int32Array(nodes)
    this.previous = new Int32Array(nodes)
    this.vehicleOf = new Int32Array(nodes).fill(-1)
    this.position = new Int32Array(nodes)
    this.place = new Int32Array(nodes)
    this.from = new Float64Array(nodes)
    this.to = new Float64Array(nodes)
    this.duration = new Float64Array(nodes)
    this.departs = new Float64Array(nodes)
    this.latest = new Float64Array(nodes)
    this.legDistance = new Float32Array(nodes)
    this.legDuration = new Float32Array(nodes)
    this.sizes = new Int32Array(vehicles.length)
    this.costs = new Float64Array(vehicles.length)
    this.distancesOf = new Float64Array(vehicles.length)
    this.workOf = new Float64Array(vehicles.length)
    this.breaks = vehicles.map(({ breaks }) => keptBreaks(breaks))
    this.dimensions = Math.max(0, ...tasks.map(({ load }) => load.length))
    this.loads = new Float64Array(tasks.length * this.dimensions)
    this.roomLoads = new Float64Array(vehicles.length * this.dimensions)
    this.distances = matrixOf(problem.distances, places)
    this.durations = problem.durations === problem.distances ? this.distances : matrixOf(problem.durations, places)
    this.hasTimes = hasTimes(problem)
    this.setTasks(problem)
    this.setEnds(problem)
  }

  get cost(): number {
    let sum = 0
    for (let vehicle = 0; vehicle < this.vehicleCount; vehicle++) sum += this.costs[vehicle]
    return sum
  }

  firstOf(vehicle: number): number {
    return this.taskCount + vehicle
  }

  endOf(vehicle: number): number {
    return this.taskCount + this.vehicleCount + vehicle
  }

  /** Removes a task from its route; `refresh` has to follow. */
  unlink(task: number): void {
    const before = this.previous[task]
    const after = this.next[task]
    this.next[before] = after
    this.previous[after] = before
    this.vehicleOf[task] = -1
  }

  /** Inserts a task after a node; `refresh` has to follow. */
  link(task: number, before: number): void {
    const after = this.next[before]
    this.next[before] = task
    this.previous[task] = before
    this.next[task] = after
    this.previous[after] = task
    this.vehicleOf[task] = this.vehicleOf[before]
  }

  /** Recomputes the stored values of a route. @returns whether it keeps its longest duration. */
  refresh(vehicle: number): boolean {
    const { next, place, duration, dimensions, loads, roomLoads } = this
    const { stride } = this.distances
    const { pace, capacity, cost, durationMax } = this.vehicles[vehicle]
    const first = this.firstOf(vehicle)
    const end = this.endOf(vehicle)
    for (let i = 0; i < dimensions; i++) roomLoads[vehicle * dimensions + i] = capacity[i] ?? Number.POSITIVE_INFINITY
    let distance = 0
    let work = 0
    let size = 0
    for (let before = first, node = next[first]; ; before = node, node = next[node]) {
      const leg = place[before] * stride + place[node]
      distance += this.legDistance[node] = this.distances.from[leg]
      work += (this.legDuration[node] = this.durations.from[leg]) * pace
      if (node === end) break
      work += duration[node]
      this.position[node] = ++size
      for (let i = 0; i < dimensions; i++) roomLoads[vehicle * dimensions + i] -= loads[node * dimensions + i]
    }
    this.sizes[vehicle] = size
    this.distancesOf[vehicle] = size === 0 ? 0 : distance
    this.workOf[vehicle] = size === 0 ? 0 : work
    if (this.hasTimes) this.time(vehicle)
    const lasts = cost.perSecond > 0 || durationMax < Number.POSITIVE_INFINITY ? this.lastsFor(vehicle) : 0
    this.costs[vehicle] = size === 0 ? 0 : cost.fixed + cost.perDistance * distance + cost.perSecond * lasts
    return lasts <= durationMax + 1e-6
  }

  /** Whether a route keeps its limits: without a task that was on the way, another way may be longer. */
  isValid(vehicle: number): boolean {
    const { to, distanceMax, durationMax } = this.vehicles[vehicle]
    const end = this.endOf(vehicle)
    if (this.sizes[vehicle] === 0) return true
    if (this.distancesOf[vehicle] > distanceMax + 1e-6) return false
    if (!this.hasTimes) return true
    for (let node = this.next[this.firstOf(vehicle)]; node !== end; node = this.next[node])
      if (this.departs[node] - this.duration[node] > this.to[node] + 1e-6) return false
    return this.departs[end] <= to + 1e-6 && this.lastsFor(vehicle) <= durationMax + 1e-6
  }

  /** Copies the tasks of a route in their order into an array from an index on. @returns their number. */
  copyTo(vehicle: number, target: Int32Array, begin: number): number {
    let index = begin
    const end = this.endOf(vehicle)
    for (let node = this.next[this.firstOf(vehicle)]; node !== end; node = this.next[node]) target[index++] = node
    return index - begin
  }

  /** Makes a route of tasks, none of which is in another one. */
  setRoute(vehicle: number, source: Int32Array, begin: number, size: number): void {
    let before = this.firstOf(vehicle)
    const end = this.endOf(vehicle)
    for (let i = begin; i < begin + size; i++) {
      const task = source[i]
      this.next[before] = task
      this.previous[task] = before
      this.vehicleOf[task] = vehicle
      before = task
    }
    this.next[before] = end
    this.previous[end] = before
    this.refresh(vehicle)
  }

  distanceOf(vehicle: number): number {
    return this.distancesOf[vehicle]
  }

  /** Distance from the node before. */
  legOf(node: number): number {
    return this.legDistance[node]
  }

  /** Time at which a vehicle reaches its end if it leaves its last task at a time. */
  endsAt(vehicle: number, departureS: number): number {
    const drivenS = this.legDuration[this.endOf(vehicle)] * this.vehicles[vehicle].pace
    return drivenBy(this.breaks[vehicle], departureS, drivenS)
  }

  /** Latest departure of a vehicle that does not delay its end. */
  leavesAt(vehicle: number): number {
    const first = this.firstOf(vehicle)
    return Math.max(this.from[first], this.latestFrom(vehicle, this.departs[this.endOf(vehicle)], false))
  }

  /** End of a drive, which a vehicle may start at a time, and a task: the start of the task's work. */
  beginsAt(vehicle: number, task: number, departureS: number): number {
    const drivenS = this.legDuration[task] * this.vehicles[vehicle].pace
    const arrivalS = drivenBy(this.breaks[vehicle], departureS, drivenS)
    return workFrom(this.breaks[vehicle], Math.max(arrivalS, this.from[task]), this.duration[task])
  }

  /** Earliest departures forwards, latest arrivals backwards. */
  private time(vehicle: number): void {
    const { next, departs, from, duration, legDuration } = this
    const { pace, to } = this.vehicles[vehicle]
    const breaks = this.breaks[vehicle]
    const first = this.firstOf(vehicle)
    const end = this.endOf(vehicle)
    let at = (departs[first] = from[first])
    for (let node = next[first]; ; node = next[node]) {
      if (breaks.length === 0) {
        const arrival = at + legDuration[node] * pace
        at = Math.max(arrival, from[node]) + duration[node]
      } else {
        const arrival = drivenBy(breaks, at, legDuration[node] * pace)
        at = node === end ? arrival : workFrom(breaks, Math.max(arrival, from[node]), duration[node]) + duration[node]
      }
      departs[node] = at
      if (node === end) break
    }
    this.latest[first] = this.latestFrom(vehicle, to, true)
  }

  /** Time at which a vehicle has to leave to reach its end by a time. */
  private latestFrom(vehicle: number, endS: number, keeps: boolean): number {
    const { previous, to, duration, legDuration, latest } = this
    const { pace } = this.vehicles[vehicle]
    const breaks = this.breaks[vehicle]
    const first = this.firstOf(vehicle)
    const end = this.endOf(vehicle)
    let by = endS
    if (keeps) latest[end] = by
    for (let node = end; ; ) {
      const before = previous[node]
      const driven = legDuration[node] * pace
      by = breaks.length === 0 ? by - driven : drivenFrom(breaks, by, driven)
      if (before === first) return by
      node = before
      const begins = by - duration[node]
      by = Math.min(begins, to[node])
      if (breaks.length > 0) by = workBefore(breaks, by, duration[node])
      if (keeps) latest[node] = by
    }
  }

  private lastsFor(vehicle: number): number {
    return this.sizes[vehicle] === 0 ? 0 : this.departs[this.endOf(vehicle)] - this.leavesAt(vehicle)
  }

  private setTasks({ tasks }: Problem): void {
    for (const [i, task] of tasks.entries()) {
      this.place[i] = task.place
      this.from[i] = task.from
      this.to[i] = task.to
      this.duration[i] = task.durationS
      for (const [dimension, load] of task.load.entries()) this.loads[i * this.dimensions + dimension] = load
    }
  }

  private setEnds({ vehicles, places }: Problem): void {
    for (const [vehicle, { start, end = places, from }] of vehicles.entries()) {
      const first = this.firstOf(vehicle)
      const last = this.endOf(vehicle)
      this.place[first] = start
      this.place[last] = end
      this.from[first] = from
      this.from[last] = from
      this.vehicleOf[first] = vehicle
      this.vehicleOf[last] = vehicle
      this.next[first] = last
      this.previous[last] = first
      this.refresh(vehicle)
    }
  }
}
