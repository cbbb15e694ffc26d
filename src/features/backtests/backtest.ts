import type { UserCaller } from '../../kernel/caller.ts'
import type { GroupRules } from '../geofences/events.ts'

/** Which transitions a geofence would have made over history. */
export interface BacktestQuestion {
  caller: UserCaller
  geofenceId: string
  geofenceGroupId: string
  /** How many events the geofence's stream has. */
  geofenceVersion: number
  /** ms since the epoch, inclusive. */
  from: number
  to: number
  trackerIds?: readonly string[]
  /** Left out: those of the geofence's group. */
  rules: GroupRules
  signal: AbortSignal
}

/** The transitions, oldest first, as `GET /geofence-events` shows them; or how much there is to read where that is too much for one answer. */
export type BacktestAnswer = { transitions: object[] } | { total: number; rules: GroupRules }

/** @throws Failure not_found, overloaded, engine_down. */
export type RunBacktest = (question: BacktestQuestion) => Promise<BacktestAnswer>
