import { parentPort, workerData } from 'node:worker_threads'
import { distanceMeters } from '../../geo/distance.ts'
import { systemClock } from '../../kernel/system-clock.ts'
import type { Plan, Problem } from '../../planner/problem.ts'
import { plan } from '../../planner/search.ts'

/** What the thread is started with. */
export interface PlanWork extends Pick<Problem, 'tasks' | 'vehicles'> {
  places: { lat: number; lng: number }[]
  /** Left out: great circles times `DETOUR`, as distances and as driving times. */
  roads?: { distances: Float32Array; durations: Float32Array }
  seed: number
  /** Budget of the search; `steps` counts where it is there. */
  seconds: number
  steps?: number
  /** One number, which is not 0 once the search is to end. */
  stop: SharedArrayBuffer
}

export type PlanAnswer = { progress: number } | { plan: Plan }

/** How much longer roads are than great circles. */
const DETOUR = 1.3
/** So many steps for each task leave little to be found. */
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

const run = ({ places, roads, tasks, vehicles, seed, seconds, steps, stop }: PlanWork): Plan => {
  const begunMs = systemClock.monotonic()
  const flag = new Int32Array(stop)
  const straight = roads === undefined ? circles(places) : new Float32Array()
  const { distances, durations } = roads ?? { distances: straight, durations: straight }
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
  return plan({ places: places.length, distances, durations, tasks, vehicles }, { seed, progress })
}

parentPort?.postMessage({ plan: run(workerData as PlanWork) } satisfies PlanAnswer)
