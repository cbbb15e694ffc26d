/**
 * Input of a planning: tasks, and vehicles that visit their places. Times are seconds from the beginning of the planning,
 * distances any unit; `Infinity` is no limit.
 */
export interface Problem {
  /** Number of places; the matrices have a row and a column for each. */
  places: number
  /** Distance from place `row` to place `column`, at `row * places + column`. */
  distances: Float32Array
  /** Driving time in the same order, before a vehicle's `pace`. */
  durations: Float32Array
  /** A distance that stands for no way at all; no route may have it. */
  noWay?: number
  vehicles: readonly Vehicle[]
  tasks: readonly Task[]
}

export interface Vehicle {
  /** Place where its route begins. */
  start: number
  /** Place where its route ends; left out, at its last task. */
  end?: number
  /** By dimension; an omitted dimension is not limited. */
  capacity: readonly number[]
  from: number
  to: number
  /** Spans in which it stands still: driving continues afterwards, and no task is done in them. */
  breaks: readonly Span[]
  tags: readonly string[]
  /** Factor of its driving times. */
  pace: number
  cost: { fixed: number; perDistance: number; perSecond: number }
  visitsMax: number
  distanceMax: number
  /** From its departure to its end. */
  durationMax: number
}

export interface Span {
  from: number
  to: number
}

export interface Task {
  place: number
  /** By dimension. */
  load: readonly number[]
  /** Bounds of the beginning of the work. */
  from: number
  to: number
  durationS: number
  /** Tags that its vehicle must have. */
  tags: readonly string[]
  /** Tasks with the higher number are served where not all fit. */
  priority: number
}

/** Reason why a task is in no route. */
export type Reason =
  | 'tags'
  | 'capacity'
  | 'visitsMax'
  | 'noRoad'
  | 'distanceMax'
  | 'durationMax'
  | 'workingHours'
  | 'window'
  | 'noRoom'

export interface Visit {
  /** Index of the task. */
  task: number
  /** Start of the work; a vehicle that would be early waits before it drives. */
  from: number
  to: number
  /** Distance from the place before. */
  distance: number
}

export interface Route {
  /** Index of the vehicle. */
  vehicle: number
  /** From the departure until its return, or until its last task is done. */
  from: number
  to: number
  distance: number
  cost: number
  visits: Visit[]
}

export interface Plan {
  routes: Route[]
  unassigned: { task: number; reason: Reason }[]
  /** Cost of all routes. */
  cost: number
  /** Steps of the search. */
  steps: number
}
