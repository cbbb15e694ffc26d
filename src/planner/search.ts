import { aloneFault, nearest } from './limits.ts'
import type { Plan, Problem, Reason, Route, Visit } from './problem.ts'
import { Random } from './random.ts'
import { Recreate } from './recreate.ts'
import { Routes } from './routes.ts'
import { Ruin } from './ruin.ts'

export interface SearchOptions {
  seed: number
  /** Used share of the budget before a step, from 0 to 1: it cools the search, and 1 ends it. */
  progress(step: number): number
  /** Called with each plan that is better than all before: its cost, and the number of tasks in no route. */
  improved?(cost: number, unassigned: number): void
}

/** Temperatures as shares of the cost of a task in the first plan. */
const HOTTEST = 1
const COLDEST = 0.005

/**
 * Plans routes by ruin and recreate: strings of neighbouring tasks are removed from neighbouring routes and put back
 * where they cost least, and simulated annealing decides whether to continue with the resulting plan (slack induction
 * by string removals, Christiaens and Vanden Berghe, 2020). The same problem, seed and progress make the same plan.
 */
export const plan = (problem: Problem, options: SearchOptions): Plan =>
  new Search(problem.noWay === undefined ? problem : onRoads(problem, problem.noWay), options).run()

/** Vehicles whose routes are shorter than any with a leg that is no way: none drives around the world ten times. */
const onRoads = (problem: Problem, noWay: number): Problem => ({
  ...problem,
  vehicles: problem.vehicles.map((one) => ({ ...one, distanceMax: Math.min(one.distanceMax, noWay / 2) })),
})

class Search {
  private readonly problem: Problem
  private readonly options: SearchOptions
  private readonly random: Random
  private readonly routes: Routes
  private readonly ruin: Ruin
  private readonly recreate: Recreate
  /** Cost of leaving a task out: more than any way to serve it, and more for those of higher priority. */
  private readonly penalties: Float64Array
  private readonly best: Int32Array
  private readonly bestSizes: Int32Array
  private bestCost = Number.POSITIVE_INFINITY

  constructor(problem: Problem, options: SearchOptions) {
    this.problem = problem
    this.options = options
    this.random = new Random(options.seed)
    this.routes = new Routes(problem)
    this.penalties = penaltiesOf(problem)
    this.recreate = new Recreate(problem, this.routes, this.random, this.penalties)
    const possible = [...problem.tasks.keys()].filter((task) => this.recreate.isPossible(task))
    this.ruin = new Ruin(problem, this.routes, this.random, Int32Array.from(possible))
    this.best = new Int32Array(problem.tasks.length)
    this.bestSizes = new Int32Array(problem.vehicles.length)
  }

  run(): Plan {
    const { recreate, random, routes, ruin, options } = this
    recreate.begin()
    recreate.insertAll()
    let cost = this.total()
    this.keep(cost)
    const served = Math.max(1, routes.taskCount - recreate.absentCount)
    const unit = routes.cost / served
    let step = 0
    for (let used = options.progress(0); used < 1 && ruin.canRuin; used = options.progress(++step)) {
      recreate.begin()
      ruin.ruin(recreate)
      recreate.insertSome()
      const next = this.total()
      const temperature = unit * HOTTEST * (COLDEST / HOTTEST) ** used
      if (next < cost - temperature * Math.log(random.next()) && recreate.isValid()) {
        cost = next
        if (next < this.bestCost - 1e-9) this.keep(next)
      } else recreate.undo()
    }
    this.restore()
    return this.planned(step)
  }

  private total(): number {
    const { absent, absentCount } = this.recreate
    let sum = this.routes.cost
    for (let i = 0; i < absentCount; i++) sum += this.penalties[absent[i]]
    return sum
  }

  private keep(cost: number): void {
    this.bestCost = cost
    let at = 0
    for (let vehicle = 0; vehicle < this.routes.vehicleCount; vehicle++)
      at += this.bestSizes[vehicle] = this.routes.copyTo(vehicle, this.best, at)
    this.options.improved?.(this.routes.cost, this.routes.taskCount - at)
  }

  private restore(): void {
    this.routes.vehicleOf.fill(-1, 0, this.routes.taskCount)
    let at = 0
    for (let vehicle = 0; vehicle < this.routes.vehicleCount; vehicle++) {
      this.routes.setRoute(vehicle, this.best, at, this.bestSizes[vehicle])
      at += this.bestSizes[vehicle]
    }
  }

  private planned(steps: number): Plan {
    const { tasks, vehicles } = this.problem
    const unassigned = [...tasks.keys()]
      .filter((task) => this.routes.vehicleOf[task] < 0)
      .map((task) => ({ task, reason: this.reasonOf(task) }))
    const routes = [...vehicles.keys()]
      .filter((vehicle) => this.routes.sizes[vehicle] > 0)
      .map((vehicle) => this.routeOf(vehicle))
    return { routes, unassigned, cost: this.routes.cost, steps }
  }

  private routeOf(vehicle: number): Route {
    const { routes } = this
    const from = routes.leavesAt(vehicle)
    const visits: Visit[] = []
    let at = from
    for (let node = routes.next[routes.firstOf(vehicle)]; node < routes.taskCount; node = routes.next[node]) {
      const begins = routes.beginsAt(vehicle, node, at)
      at = begins + this.problem.tasks[node].durationS
      visits.push({ task: node, from: begins, to: at, distance: routes.legOf(node) })
    }
    const to = routes.endsAt(vehicle, at)
    return { vehicle, from, to, distance: routes.distanceOf(vehicle), cost: routes.costs[vehicle], visits }
  }

  private reasonOf(task: number): Reason {
    const { tasks, vehicles } = this.problem
    return nearest(vehicles.map((vehicle) => aloneFault(this.problem, vehicle, tasks[task]) ?? 'noRoom'))
  }
}

const penaltiesOf = ({ tasks, vehicles, distances, durations }: Problem): Float64Array => {
  const furthest = largest(distances)
  const longest = largest(durations)
  const work = Math.max(0, ...tasks.map(({ durationS }) => durationS))
  const last = Math.max(0, ...tasks.flatMap(({ from, to }) => [from, to].filter(Number.isFinite)))
  const dearest = Math.max(
    0,
    ...vehicles.map(({ cost: { fixed, perDistance, perSecond }, pace, breaks }) => {
      const pauses = breaks.reduce((sum, { from, to }) => sum + to - from, 0)
      return fixed + 3 * perDistance * furthest + perSecond * (3 * longest * pace + work + last + pauses)
    }),
  )
  return Float64Array.from(tasks, ({ priority }) => (1 + 2 * dearest) * (1 + priority))
}

const largest = (values: Float32Array): number => {
  let most = 0
  for (let i = 0; i < values.length; i++) if (values[i] > most) most = values[i]
  return most
}
