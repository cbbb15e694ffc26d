// Messages between the page and its live worker.
import type { Columns } from './columns.ts'

export interface Subscription {
  channels: string[]
  interval: number
  trackerIds?: string[]
}

export type ToWorker =
  | { type: 'open'; url: string; token: string; subscription: Subscription }
  /** A token that replaces the expiring one. */
  | { type: 'token'; token: string }
  | { type: 'retry' }
  /** The user may do something else than before. */
  | { type: 'permissions' }
  /** The machine has slept: the connection is checked at once. */
  | { type: 'woke' }
  | { type: 'close' }

export interface LiveEvent {
  channel: string
  event: { [member: string]: unknown }
}

export type Connection = 'connecting' | 'live' | 'lost' | 'signed-out'

export type FromWorker =
  | { type: 'connection'; connection: Connection }
  | { type: 'positions'; columns: Columns; gone: string[]; isSnapshot: boolean }
  | { type: 'events'; events: LiveEvent[] }
  | { type: 'gap' }
  /** The user may not see the events of geofences, or no longer. */
  | { type: 'refused' }
