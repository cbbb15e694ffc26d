import type { Task, Vehicle } from '../../planner/problem.ts'
import { breaksIn, type DaySpan, hoursFrom } from './working-hours.ts'

/** Members of a task that planning reads. */
export interface TaskToPlan {
  _id: string
  lat?: number
  lng?: number
  window?: { from: string; to: string }
  durationMinutes?: number
  load?: { [dimension: string]: number }
  tags?: string[]
  priority?: number
}

export interface VehicleToPlan {
  _id: string
  userId?: string
  capacity?: { [dimension: string]: number }
  speed?: number
  cost?: { fixed?: number; perKm?: number; perHour?: number }
  workingHours?: DaySpan
  breaks?: DaySpan[]
  tags?: string[]
  constraints?: { visitsMax?: number; distanceMax?: number; durationMax?: number }
}

export interface Planning {
  hub: { lat: number; lng: number }
  tasks: readonly TaskToPlan[]
  vehicles: readonly VehicleToPlan[]
  /** ms since the epoch. */
  startAt: number
  timeZone: string
  returnToHub: boolean
  /** Driving times come from roads, not from a vehicle's speed. */
  hasRoads: boolean
}

/** A problem without its matrices; the hub is the first place, followed by one place per task. */
export interface Prepared {
  /** Tasks that have a place, in the order of the problem. */
  taskIds: string[]
  vehicleIds: string[]
  places: { lat: number; lng: number }[]
  tasks: Task[]
  vehicles: Vehicle[]
  unplaced: string[]
}

const SPEED_KMH = 50
/** Slower vehicles are treated as standing and visit nothing: their times would exceed any calendar. */
const SLOWEST_KMH = 0.1
/** Pace of a standing vehicle: seconds per metre. */
const STANDING = 1e9
const NEVER = Number.POSITIVE_INFINITY

export const prepare = (planning: Planning): Prepared => {
  const { hub, tasks, vehicles, startAt } = planning
  const placed = tasks.filter(({ lat, lng }) => lat !== undefined && lng !== undefined)
  const dimensions = [...new Set(tasks.flatMap(({ load = {} }) => Object.keys(load)))].sort()
  return {
    taskIds: placed.map(({ _id }) => _id),
    vehicleIds: vehicles.map(({ _id }) => _id),
    places: [hub, ...placed.map(({ lat, lng }) => ({ lat: lat as number, lng: lng as number }))],
    tasks: placed.map((task, i) => ({
      place: i + 1,
      load: dimensions.map((dimension) => task.load?.[dimension] ?? 0),
      ...windowOf(task, startAt),
      durationS: (task.durationMinutes ?? 0) * 60,
      tags: task.tags ?? [],
      priority: task.priority ?? 0,
    })),
    vehicles: vehicles.map((vehicle) => vehicleOf(vehicle, dimensions, planning)),
    unplaced: tasks.filter((task) => !placed.includes(task)).map(({ _id }) => _id),
  }
}

const windowOf = ({ window }: TaskToPlan, startAt: number): { from: number; to: number } =>
  window === undefined
    ? { from: 0, to: NEVER }
    : { from: (Date.parse(window.from) - startAt) / 1000, to: (Date.parse(window.to) - startAt) / 1000 }

/** A vehicle cannot carry dimensions that it does not name, unless it names none. */
const vehicleOf = (vehicle: VehicleToPlan, dimensions: readonly string[], planning: Planning): Vehicle => {
  const { capacity = {}, constraints = {}, tags = [], speed = SPEED_KMH } = vehicle
  const { startAt, timeZone, returnToHub, hasRoads, vehicles } = planning
  const hours = hoursFrom(vehicle.workingHours, startAt, timeZone)
  const stands = !hasRoads && speed < SLOWEST_KMH
  const isUnbounded = Object.keys(capacity).length === 0
  return {
    start: 0,
    ...(returnToHub && { end: 0 }),
    capacity: dimensions.map((dimension) => capacity[dimension] ?? (isUnbounded ? NEVER : 0)),
    ...hours,
    breaks: breaksIn(vehicle.breaks ?? [], hours, startAt, timeZone),
    tags,
    pace: hasRoads ? 1 : stands ? STANDING : 3.6 / speed,
    cost: costOf(vehicle, vehicles),
    visitsMax: stands ? 0 : (constraints.visitsMax ?? NEVER),
    distanceMax: constraints.distanceMax ?? NEVER,
    durationMax: constraints.durationMax ?? NEVER,
  }
}

/** If no vehicle has costs, distance is minimized. */
const costOf = ({ cost = {} }: VehicleToPlan, vehicles: readonly VehicleToPlan[]): Vehicle['cost'] => {
  const isFree = vehicles.every(({ cost: { fixed = 0, perKm = 0, perHour = 0 } = {} }) => fixed + perKm + perHour === 0)
  if (isFree) return { fixed: 0, perDistance: 0.001, perSecond: 0 }
  const { fixed = 0, perKm = 0, perHour = 0 } = cost
  return { fixed, perDistance: perKm / 1000, perSecond: perHour / 3600 }
}
