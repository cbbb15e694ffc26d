import type { Box } from '../geo/box.ts'
import type { UserCaller } from '../kernel/caller.ts'
import type { Reach } from './cursor.ts'

export const CHANNELS = ['positions', 'geofence', 'trip', 'task', 'automation', 'job', 'notification'] as const
export type ChannelName = (typeof CHANNELS)[number]

/** What a subscription asks for. */
export interface Wanted {
  id: string
  channels: ReadonlySet<ChannelName>
  viewport: Box | undefined
  trackerIds: ReadonlySet<string> | undefined
  hubId: string | undefined
  teamId: string | undefined
  intervalMs: number
}

/** A viewer, and what it looks at. */
export interface Watcher {
  readonly wanted: Wanted
  readonly caller: UserCaller
}

/** One thing that happened in an organization, as its GET answers it. */
export interface LiveEvent {
  channel: ChannelName
  /** Tracker of the transition, trip or run; users who see the tracker see the event. */
  trackerId?: string
  /** Whether it is for a watcher, where that does not follow from a tracker. Without either it is for all of the channel. */
  isFor?(watcher: Watcher): boolean
  /** Users and teams whose it is or was: of those who see only what is theirs, these alone are asked. */
  people?: readonly string[]
  /** Which part of a cursor it moves. */
  partition: number
  reach: Reach
  /** JSON text as the watcher may see it, made when somebody wants it. */
  text(watcher: Watcher): string
}
