import type { UserCaller } from '../../kernel/caller.ts'
import type { GroupRules } from '../geofences/events.ts'

/** Question for the transitions that a geofence would have made over history. */
export interface BacktestQuestion {
  caller: UserCaller
  geofenceId: string
  geofenceGroupId: string
  /** Number of events in the geofence's stream. */
  geofenceVersion: number
  /** ms since the epoch, inclusive. */
  from: number
  to: number
  trackerIds?: readonly string[]
  /** Defaults to the rules of the geofence's group. */
  rules: GroupRules
  signal: AbortSignal
}

/** Transitions, oldest first, as `GET /geofence-events` shows them; or the number of points if too many to answer. */
export type BacktestAnswer = { transitions: object[] } | { total: number; rules: GroupRules }

/** @throws Failure not_found, overloaded, engine_down. */
export type RunBacktest = (question: BacktestQuestion) => Promise<BacktestAnswer>
