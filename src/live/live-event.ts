import type { Box } from '../geo/box.ts'
import type { UserCaller } from '../kernel/caller.ts'
import type { Reach } from './cursor.ts'

export const CHANNELS = ['positions', 'geofence', 'trip', 'task', 'automation', 'job', 'notification'] as const
export type ChannelName = (typeof CHANNELS)[number]

export interface Wanted {
  id: string
  channels: ReadonlySet<ChannelName>
  viewport: Box | undefined
  trackerIds: ReadonlySet<string> | undefined
  hubId: string | undefined
  teamId: string | undefined
  intervalMs: number
}

/** A viewer, and its view. */
export interface Watcher {
  readonly wanted: Wanted
  readonly caller: UserCaller
}

/** One event of an organization, as its GET answers it. */
export interface LiveEvent {
  channel: ChannelName
  /** Tracker of the transition, trip or run; users who see the tracker see the event. */
  trackerId?: string
  /** Whether it is for a watcher, where no tracker decides that. Without either it is for all of the channel. */
  isFor?(watcher: Watcher): boolean
  /** Only for callers who may use geofences, also where its channel is for others too. */
  isOfGeofences?: true
  /** Users and teams that it belongs or belonged to: of viewers who only see their own, only these are asked. */
  people?: readonly string[]
  /** Part of a cursor that it moves. */
  partition: number
  reach: Reach
  /** JSON text as the watcher may see it, made on demand. */
  text(watcher: Watcher): string
}
