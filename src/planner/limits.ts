import type { Problem, Reason, Task, Vehicle } from './problem.ts'
import { drivenBy, keptBreaks, workFrom } from './working-time.ts'

/**
 * Reason why a vehicle could not do a task even alone; undefined where it could. The first of several reasons, in the
 * order of `Reason`.
 */
export const aloneFault = (problem: Problem, vehicle: Vehicle, task: Task): Reason | undefined => {
  if (task.tags.some((tag) => !vehicle.tags.includes(tag))) return 'tags'
  if (task.load.some((load, dimension) => load > (vehicle.capacity[dimension] ?? Number.POSITIVE_INFINITY)))
    return 'capacity'
  if (vehicle.visitsMax < 1) return 'visitsMax'
  const there = leg(problem, vehicle.start, task.place)
  const back = vehicle.end === undefined ? { distance: 0, durationS: 0 } : leg(problem, task.place, vehicle.end)
  if (Math.max(there.distance, back.distance) >= (problem.noWay ?? Number.POSITIVE_INFINITY)) return 'noRoad'
  if (there.distance + back.distance > vehicle.distanceMax) return 'distanceMax'
  const breaks = keptBreaks(vehicle.breaks)
  const arrivalS = drivenBy(breaks, vehicle.from, there.durationS * vehicle.pace)
  const beginS = workFrom(breaks, Math.max(arrivalS, task.from), task.durationS)
  const workS = (there.durationS + back.durationS) * vehicle.pace + task.durationS
  if (workS > vehicle.durationMax) return 'durationMax'
  // A window that had ended when the planning began is over for every vehicle, and may have lain in its working hours.
  if (beginS > task.to) return task.to >= 0 && vehicle.from > task.to ? 'workingHours' : 'window'
  const endS = drivenBy(breaks, beginS + task.durationS, back.durationS * vehicle.pace)
  return endS > vehicle.to ? 'workingHours' : undefined
}

const ORDER: readonly Reason[] = [
  'tags',
  'capacity',
  'visitsMax',
  'noRoad',
  'distanceMax',
  'durationMax',
  'workingHours',
  'window',
  'noRoom',
]

/** The reason that represents a task's reasons with each vehicle: that of the vehicle that came nearest to doing it. */
export const nearest = (reasons: readonly Reason[]): Reason =>
  reasons.reduce((one, other) => (ORDER.indexOf(other) > ORDER.indexOf(one) ? other : one), ORDER[0])

const leg = ({ distances, durations, places }: Problem, from: number, to: number) => ({
  distance: distances[from * places + to],
  durationS: durations[from * places + to],
})

/** Equal vehicles have equal numbers. */
export const kindsOf = (vehicles: readonly Vehicle[]): Int32Array => {
  const numbers = new Map<string, number>()
  return Int32Array.from(vehicles, (vehicle) => {
    const key = JSON.stringify(vehicle, (_name, value) => (value === Number.POSITIVE_INFINITY ? 'none' : value))
    const number = numbers.get(key) ?? numbers.size
    numbers.set(key, number)
    return number
  })
}

/** Whether each vehicle could do each task if it did nothing else, by vehicle and task. */
export const allowedIn = (problem: Problem, kinds: Int32Array): Uint8Array => {
  const { tasks, vehicles } = problem
  const allowed = new Uint8Array(vehicles.length * tasks.length)
  for (const [i, vehicle] of vehicles.entries()) {
    const equal = kinds.indexOf(kinds[i])
    if (equal < i) allowed.copyWithin(i * tasks.length, equal * tasks.length, (equal + 1) * tasks.length)
    else
      for (const [j, task] of tasks.entries())
        allowed[i * tasks.length + j] = aloneFault(problem, vehicle, task) === undefined ? 1 : 0
  }
  return allowed
}

/** Whether anything depends on time. */
export const hasTimes = ({ tasks, vehicles }: Problem): boolean =>
  tasks.some(({ from, to }) => from > 0 || to < Number.POSITIVE_INFINITY) ||
  vehicles.some(
    ({ from, to, durationMax, cost, breaks }) =>
      from > 0 ||
      to < Number.POSITIVE_INFINITY ||
      durationMax < Number.POSITIVE_INFINITY ||
      cost.perSecond > 0 ||
      breaks.length > 0,
  )
