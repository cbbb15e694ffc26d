import { allowedIn, kindsOf } from './limits.ts'
import type { Problem } from './problem.ts'
import type { Routes } from './routes.ts'
import { drivenBy, workFrom } from './working-time.ts'

/** The cheapest place for a task. */
export interface Insertion {
  vehicle: number
  /** Node that it would follow. */
  after: number
  cost: number
}

/** Looks for the place of a task in the routes of a plan. */
export class Insertions {
  private readonly routes: Routes
  /** Chance that a place is skipped. */
  private readonly blinks: () => boolean
  /** Whether a vehicle could do a task alone, by vehicle and task. */
  private readonly allowed: Uint8Array
  /** Equal vehicles have the same number: of the empty ones only one is looked at. */
  private readonly kinds: Int32Array
  private readonly seenKinds: Int32Array
  private seen = 0
  private bestVehicle = -1
  private bestAfter = -1
  private bestCost = Number.POSITIVE_INFINITY

  constructor(problem: Problem, routes: Routes, blinks: () => boolean) {
    this.routes = routes
    this.blinks = blinks
    this.kinds = kindsOf(problem.vehicles)
    this.allowed = allowedIn(problem, this.kinds)
    this.seenKinds = new Int32Array(problem.vehicles.length)
  }

  /** Whether any vehicle could do it. */
  isPossible(task: number): boolean {
    const { taskCount, vehicleCount } = this.routes
    for (let vehicle = 0; vehicle < vehicleCount; vehicle++)
      if (this.allowed[vehicle * taskCount + task] === 1) return true
    return false
  }

  /** The cheapest place for a task; undefined where it fits nowhere. */
  cheapest(task: number, without: ReadonlySet<number> | undefined): Insertion | undefined {
    const { sizes, taskCount, vehicleCount } = this.routes
    this.bestVehicle = -1
    this.bestCost = Number.POSITIVE_INFINITY
    this.seen++
    for (let vehicle = 0; vehicle < vehicleCount; vehicle++) {
      if (this.allowed[vehicle * taskCount + task] === 0 || without?.has(vehicle) === true) continue
      if (sizes[vehicle] === 0) {
        const kind = this.kinds[vehicle]
        if (this.seenKinds[kind] === this.seen) continue
        this.seenKinds[kind] = this.seen
      }
      if (this.hasRoom(vehicle, task)) this.scan(vehicle, task)
    }
    if (this.bestVehicle < 0) return undefined
    return { vehicle: this.bestVehicle, after: this.bestAfter, cost: this.bestCost }
  }

  private hasRoom(vehicle: number, task: number): boolean {
    const { dimensions, loads, roomLoads, sizes, vehicles } = this.routes
    if (sizes[vehicle] >= vehicles[vehicle].visitsMax) return false
    for (let i = 0; i < dimensions; i++)
      if (loads[task * dimensions + i] > roomLoads[vehicle * dimensions + i] + 1e-9) return false
    return true
  }

  /** Looks for a cheaper place in one route. Costs come first: most places are rejected without a look at the times. */
  private scan(vehicle: number, task: number): void {
    const { routes } = this
    const { next, place, departs, latest, legDistance, legDuration, hasTimes } = routes
    const { from: distances, to: distancesTo, stride } = routes.distances
    const { from: durations, to: durationsTo } = routes.durations
    const { pace, cost, distanceMax, durationMax } = routes.vehicles[vehicle]
    const breaks = routes.breaks[vehicle]
    const row = place[task] * stride
    const opens = routes.from[task]
    const closes = routes.to[task]
    const workS = routes.duration[task]
    const isEmpty = routes.sizes[vehicle] === 0
    const distanceRoom = distanceMax - routes.distancesOf[vehicle]
    const workRoom = durationMax - routes.workOf[vehicle] - workS
    const perSecond = cost.perSecond * pace
    const always = cost.perSecond * workS + (isEmpty ? cost.fixed : 0)
    const end = routes.endOf(vehicle)
    for (let before = routes.firstOf(vehicle); before !== end; before = next[before]) {
      const departsAt = departs[before]
      if (hasTimes && departsAt > closes) break
      const after = next[before]
      const there = row + place[before]
      const onward = row + place[after]
      const further = distancesTo[there] + distances[onward] - (isEmpty ? 0 : legDistance[after])
      const longer = durationsTo[there] + durations[onward] - (isEmpty ? 0 : legDuration[after])
      const delta = always + cost.perDistance * further + perSecond * longer
      if (delta >= this.bestCost || further > distanceRoom || longer * pace > workRoom) continue
      if (hasTimes) {
        if (breaks.length === 0) {
          const arrival = departsAt + pace * durationsTo[there]
          const begins = Math.max(arrival, opens)
          if (begins > closes || begins + workS + pace * durations[onward] > latest[after]) continue
        } else {
          const arrival = drivenBy(breaks, departsAt, pace * durationsTo[there])
          const begins = workFrom(breaks, Math.max(arrival, opens), workS)
          if (begins > closes || drivenBy(breaks, begins + workS, pace * durations[onward]) > latest[after]) continue
        }
      }
      if (this.blinks()) continue
      this.bestCost = delta
      this.bestVehicle = vehicle
      this.bestAfter = before
    }
  }
}
