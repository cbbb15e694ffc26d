import { readUuid, writeUuid } from '../../kernel/uuid-bytes.ts'
import type { JobAsked } from '../../kit/jobs/job.ts'
import type { GroupRules } from '../geofences/events.ts'

/** Page in the streams `backtestResult-<id>`, apart from the job's events, so that folding the job reads no pages. */
export const BACKTEST_PAGE = 'backtestPage.v1'

/** A back-test that is too large for one answer. */
export interface BacktestRequested extends JobAsked {
  geofenceId: string
  geofenceGroupId: string
  /** Version of the geofence at the time of the request: the number of events in its stream. */
  geofenceVersion: number
  /** The requester, and the hubs that they could see then. */
  userId: string
  hubIds: 'all' | readonly string[]
  /** ms since the epoch, inclusive. */
  from: number
  to: number
  /** Packed by `packIds`; if absent, all trackers that the user sees. */
  trackerIds?: string
  /** Rules applied: those of the group unless others were requested. */
  rules: GroupRules
  /** Estimated number of points to read. */
  total: number
}

/** Position of the transitions in the stream of the attempt that ended, oldest first. */
export interface BacktestResult {
  /** Left out: 1. */
  attempt?: number
  /** Revision of the first page. */
  first: number
  /** Revision of the last page; below `first` if there are no pages. */
  last: number
  transitions: number
}

/** A transition that would have been made; only the members by which results are sorted and shown. */
export interface FoundTransition {
  trackerId: string
  /** ms since the epoch. */
  at: number
}

export interface BacktestPage {
  organizationId: string
  transitions: FoundTransition[]
}

/** Each attempt has its own: one that was overtaken cannot touch the result of the next. */
export const resultStream = (backtestId: string, attempt = 1): string =>
  `backtestResult-${backtestId}${attempt === 1 ? '' : `.${attempt}`}`

/** Packs each UUID into 22 characters: ten thousand fit into one event. */
export const packIds = (ids: readonly string[]): string => {
  const bytes = Buffer.alloc(16 * ids.length)
  for (const [i, id] of ids.entries()) writeUuid(id, bytes, 16 * i)
  return bytes.toString('base64url')
}

export const unpackIds = (packed: string): string[] => {
  const bytes = Buffer.from(packed, 'base64url')
  return Array.from({ length: bytes.length / 16 }, (_, i) => readUuid(bytes, 16 * i))
}
