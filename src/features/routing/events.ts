import type { JobAsked } from '../../kit/jobs/job.ts'

/** What a planning needs; tasks and vehicles are read when it runs. */
export interface RoutingRequested extends JobAsked {
  hubId: string
  /** Who asked for it. */
  userId: string
  taskIds: string[]
  vehicleIds: string[]
  /** ms since the epoch. */
  startAt: number
  returnToHub: boolean
  /** Bounds of the search; `steps` where the same plan has to come out again. */
  seconds: number
  steps?: number
  seed: number
}
