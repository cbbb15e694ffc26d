// What the page and its live worker say to each other.
import type { Columns } from './columns.ts'

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
  /** The machine has slept: the connection is asked at once whether it still is one. */
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
