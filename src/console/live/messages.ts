// What the page and its live worker say to each other.
import type { Fix } from './fleet.ts'

export interface Subscription {
  channels: string[]
  interval: number
  trackerIds?: string[]
}

export type ToWorker =
  | { type: 'open'; url: string; token: string; subscription: Subscription }
  /** A token that goes on where the last one ends. */
  | { type: 'token'; token: string }
  | { type: 'retry' }
  | { type: 'close' }

export interface LiveEvent {
  channel: string
  event: { [member: string]: unknown }
}

export type Connection = 'connecting' | 'live' | 'lost' | 'signed-out'

export type FromWorker =
  | { type: 'connection'; connection: Connection }
  | { type: 'positions'; fixes: Fix[]; gone: string[]; isSnapshot: boolean }
  | { type: 'events'; events: LiveEvent[] }
  | { type: 'gap' }
