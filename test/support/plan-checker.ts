import type { Plan, Problem, Route, Vehicle } from '../../src/planner/problem.ts'

const CLOSE = 1e-3

/**
 * Says what is wrong with a plan, by the problem alone: written apart from the planner, and slow. Driving goes minute by
 * minute through the breaks of a vehicle as whoever drives it would count.
 */
export const planFaults = (problem: Problem, plan: Plan): string[] => {
  const faults: string[] = []
  const seen = new Map<number, string>()
  const see = (task: number, where: string): void => {
    if (problem.tasks[task] === undefined) faults.push(`task ${task} does not exist`)
    if (seen.has(task)) faults.push(`task ${task} is in ${seen.get(task)} and ${where}`)
    seen.set(task, where)
  }
  const vehicles = new Set<number>()
  for (const route of plan.routes) {
    if (vehicles.has(route.vehicle)) faults.push(`vehicle ${route.vehicle} has two routes`)
    vehicles.add(route.vehicle)
    for (const { task } of route.visits) see(task, `the route of vehicle ${route.vehicle}`)
    for (const fault of routeFaults(problem, route)) faults.push(`vehicle ${route.vehicle}: ${fault}`)
  }
  for (const { task, reason } of plan.unassigned) {
    see(task, 'none')
    if (reason.length === 0) faults.push(`task ${task} is in no route without a reason`)
  }
  for (const task of problem.tasks.keys()) if (!seen.has(task)) faults.push(`task ${task} is missing`)
  const cost = plan.routes.reduce((sum, route) => sum + route.cost, 0)
  if (Math.abs(cost - plan.cost) > CLOSE * (1 + cost)) faults.push(`costs ${plan.cost}, its routes ${cost}`)
  return faults
}

function* routeFaults(problem: Problem, route: Route): Generator<string> {
  const { places, distances, durations, tasks } = problem
  const vehicle = problem.vehicles[route.vehicle]
  if (vehicle === undefined) return yield 'it does not exist'
  if (route.visits.length === 0) yield 'its route is empty'
  if (route.visits.length > vehicle.visitsMax) yield `${route.visits.length} visits`
  if (route.from < vehicle.from - CLOSE) yield `leaves at ${route.from}`
  if (route.to > vehicle.to + CLOSE) yield `ends at ${route.to}`
  if (route.to - route.from > vehicle.durationMax + CLOSE) yield `lasts ${route.to - route.from}`
  let place = vehicle.start
  let free = route.from
  let distance = 0
  const loads: number[] = []
  for (const visit of route.visits) {
    const task = tasks[visit.task]
    const leg = distances[place * places + task.place]
    const name = `task ${visit.task}`
    if (Math.abs(visit.distance - leg) > CLOSE) yield `${name} is ${leg} away, not ${visit.distance}`
    distance += leg
    const arrival = arrives(vehicle, free, durations[place * places + task.place] * vehicle.pace)
    if (visit.from < arrival - CLOSE) yield `${name} begins at ${visit.from}, arrival is ${arrival}`
    if (visit.from < task.from - CLOSE || visit.from > task.to + CLOSE) yield `${name} begins at ${visit.from}`
    if (Math.abs(visit.to - visit.from - task.durationS) > CLOSE) yield `${name} lasts ${visit.to - visit.from}`
    for (const { from, to } of vehicle.breaks)
      if (from < to && visit.from < to - CLOSE && visit.to > from + CLOSE) yield `${name} is done in a break`
    for (const tag of task.tags) if (!vehicle.tags.includes(tag)) yield `${name} needs ${tag}`
    for (const [dimension, load] of task.load.entries()) loads[dimension] = (loads[dimension] ?? 0) + load
    free = visit.to
    place = task.place
  }
  if (vehicle.end !== undefined) {
    distance += distances[place * places + vehicle.end]
    free = arrives(vehicle, free, durations[place * places + vehicle.end] * vehicle.pace)
  }
  if (route.to < free - CLOSE) yield `ends at ${route.to}, could at ${free}`
  if (Math.abs(distance - route.distance) > CLOSE * (1 + distance)) yield `drives ${distance}, not ${route.distance}`
  if (distance > vehicle.distanceMax + CLOSE) yield `drives ${distance}`
  for (const [dimension, load] of loads.entries())
    if (load > (vehicle.capacity[dimension] ?? Number.POSITIVE_INFINITY) + CLOSE) yield `carries ${load}`
  const { fixed, perDistance, perSecond } = vehicle.cost
  const cost = fixed + perDistance * distance + perSecond * (route.to - route.from)
  if (Math.abs(cost - route.cost) > CLOSE * (1 + cost)) yield `costs ${cost}, not ${route.cost}`
}

/** When a drive ends: breaks are taken out of the time that is left one after the other. */
const arrives = ({ breaks }: Vehicle, at: number, seconds: number): number => {
  const edges = [...new Set(breaks.flatMap(({ from, to }) => [from, to]))]
    .filter((edge) => edge > at)
    .sort((a, b) => a - b)
  const isBreak = (time: number): boolean => breaks.some(({ from, to }) => time >= from && time < to)
  for (const edge of edges) {
    if (seconds <= 0) return at
    if (!isBreak(at)) {
      if (at + seconds <= edge) return at + seconds
      seconds -= edge - at
    }
    at = edge
  }
  return at + seconds
}
