import type { Problem } from './problem.ts'
import type { Random } from './random.ts'
import type { Routes } from './routes.ts'

/** Tasks that a step removes on average, and the longest string; both as in the paper. */
const REMOVED_MEAN = 10
const STRING_MAX = 10
/** Chance that a string keeps some tasks in its middle, and that it keeps one more. */
const SPLIT = 0.5
const SPLIT_DEEPER = 0.01
/** Number of neighbours kept of each task. */
const NEIGHBOURS_MAX = 400

/** Called with each route before it changes, and with each removed task. */
interface Removals {
  changes(vehicle: number): void
  removed(task: number): void
}

/** Removes strings of tasks from neighbouring routes. */
export class Ruin {
  private readonly routes: Routes
  private readonly random: Random
  private readonly possible: Int32Array
  private readonly neighbours: readonly Int32Array[]
  private readonly ruinedIn: Int32Array
  private step = 0

  /** @param possible tasks that any vehicle could do */
  constructor(problem: Problem, routes: Routes, random: Random, possible: Int32Array) {
    this.routes = routes
    this.random = random
    this.possible = possible
    this.neighbours = neighboursOf(problem, this.possible)
    this.ruinedIn = new Int32Array(problem.vehicles.length)
  }

  get canRuin(): boolean {
    return this.possible.length > 0
  }

  ruin(removals: Removals): void {
    const { routes, random, ruinedIn } = this
    const step = ++this.step
    let used = 0
    let served = 0
    for (let vehicle = 0; vehicle < routes.vehicleCount; vehicle++) {
      if (routes.sizes[vehicle] > 0) used++
      served += routes.sizes[vehicle]
    }
    const stringMax = Math.min(STRING_MAX, served / Math.max(1, used))
    const strings = Math.floor(1 + random.next() * ((4 * REMOVED_MEAN) / (1 + stringMax) - 1))
    const near = this.neighbours[random.below(this.possible.length)]
    for (let i = 0, ruined = 0; i < near.length && ruined < strings; i++) {
      const vehicle = routes.vehicleOf[near[i]]
      if (vehicle < 0 || ruinedIn[vehicle] === step) continue
      ruinedIn[vehicle] = step
      ruined++
      removals.changes(vehicle)
      const longest = Math.min(routes.sizes[vehicle], stringMax)
      this.removeString(near[i], vehicle, Math.floor(1 + random.next() * longest), removals)
      routes.refresh(vehicle)
    }
  }

  private removeString(task: number, vehicle: number, length: number, removals: Removals): void {
    const { routes, random } = this
    const size = routes.sizes[vehicle]
    let kept = 0
    if (length < size && length > 1 && random.next() < SPLIT) {
      kept = 1
      while (length + kept < size && random.next() < SPLIT_DEEPER) kept++
    }
    const whole = length + kept
    const position = routes.position[task]
    const lowest = Math.max(1, position - whole + 1)
    const begin = lowest + random.below(Math.min(position, size - whole + 1) - lowest + 1)
    let node = task
    for (let back = position - begin; back > 0; back--) node = routes.previous[node]
    const keepFrom = kept === 0 ? whole : 1 + random.below(length - 1)
    for (let i = 0; i < whole; i++) {
      const following = routes.next[node]
      if (i < keepFrom || i >= keepFrom + kept) {
        routes.unlink(node)
        removals.removed(node)
      }
      node = following
    }
  }
}

/** For each possible task the possible tasks nearest to it, itself first. */
const neighboursOf = ({ tasks, places, distances }: Problem, possible: Int32Array): Int32Array[] => {
  const keys = new Float64Array(possible.length)
  const scale = possible.length
  return Array.from(possible, (task) => {
    const { place } = tasks[task]
    for (let i = 0; i < possible.length; i++) {
      const other = tasks[possible[i]].place
      const apart = distances[place * places + other] + distances[other * places + place]
      // One number for distance and index, which sorts faster than a comparison.
      keys[i] = possible[i] === task ? i - scale : Math.round(apart * 16) * scale + i
    }
    const sorted = keys.slice().sort()
    return Int32Array.from(sorted.subarray(0, NEIGHBOURS_MAX), (key) => possible[((key % scale) + scale) % scale])
  })
}
