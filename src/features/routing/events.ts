import type { JobAsked } from '../../kit/jobs/job.ts'

/** Input of a planning; tasks and vehicles are read when it runs. */
export interface RoutingRequested extends JobAsked {
  hubId: string
  /** User who requested it. */
  userId: string
  taskIds: string[]
  vehicleIds: string[]
  /** ms since the epoch. */
  startAt: number
  returnToHub: boolean
  /** Bounds of the search; `steps` for a reproducible plan. */
  seconds: number
  steps?: number
  seed: number
}
