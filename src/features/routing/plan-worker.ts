import { parentPort, workerData } from 'node:worker_threads'
import { UNREACHABLE } from '../../engines/travel-times.ts'
import { distanceMeters } from '../../geo/distance.ts'
import { systemClock } from '../../kernel/system-clock.ts'
import type { Plan, Problem } from '../../planner/problem.ts'
import { plan } from '../../planner/search.ts'

export interface PlanWork extends Pick<Problem, 'tasks' | 'vehicles'> {
  places: { lat: number; lng: number }[]
  /** Default: great circles times `DETOUR`, as distances and as driving times. */
  roads?: { distances: Float32Array; durations: Float32Array }
  seed: number
  /** Budget of the search; `steps` takes precedence. */
  seconds: number
  steps?: number
  /** One number, which becomes non-zero to end the search. */
  stop: SharedArrayBuffer
}

export type PlanAnswer = { progress: number } | { plan: Plan }

/** Ratio of road length to great circle. */
const DETOUR = 1.3
/** This many steps per task leave little to improve. */
const STEPS_PER_TASK = 10_000
const TOLD_MS = 500

const circles = (places: PlanWork['places']): Float32Array => {
  const matrix = new Float32Array(places.length ** 2)
  for (const [i, from] of places.entries())
    for (let j = 0; j < i; j++) {
      const to = places[j]
      const meters = distanceMeters(from.lng * 1e7, from.lat * 1e7, to.lng * 1e7, to.lat * 1e7) * DETOUR
      matrix[i * places.length + j] = matrix[j * places.length + i] = Math.round(meters)
    }
  return matrix
}

/** Without a driving time there is no way either. */
const markNoWays = ({ distances, durations }: NonNullable<PlanWork['roads']>): void => {
  for (let i = 0; i < durations.length; i++) if (durations[i] >= UNREACHABLE) distances[i] = UNREACHABLE
}

const run = ({ places, roads, tasks, vehicles, seed, seconds, steps, stop }: PlanWork): Plan => {
  const begunMs = systemClock.monotonic()
  const flag = new Int32Array(stop)
  const straight = roads === undefined ? circles(places) : new Float32Array()
  const { distances, durations } = roads ?? { distances: straight, durations: straight }
  if (roads !== undefined) markNoWays(roads)
  const stepsMax = STEPS_PER_TASK * Math.max(1, tasks.length)
  let toldMs = begunMs
  const progress = (step: number): number => {
    if (Atomics.load(flag, 0) !== 0) return 1
    const nowMs = systemClock.monotonic()
    const used = steps === undefined ? Math.max((nowMs - begunMs) / 1000 / seconds, step / stepsMax) : step / steps
    if (nowMs - toldMs > TOLD_MS) {
      toldMs = nowMs
      parentPort?.postMessage({ progress: Math.min(1, used) } satisfies PlanAnswer)
    }
    return used
  }
  const noWay = roads && { noWay: UNREACHABLE }
  return plan({ places: places.length, distances, durations, tasks, vehicles, ...noWay }, { seed, progress })
}

parentPort?.postMessage({ plan: run(workerData as PlanWork) } satisfies PlanAnswer)
