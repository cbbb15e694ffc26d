import type { JobAsked } from '../../kit/jobs/job.ts'
import type { GroupRules } from '../geofences/events.ts'

/** What the streams `backtestResult-<id>` hold, apart from the life of the job, so that nobody who folds that reads pages. */
export const BACKTEST_PAGE = 'backtestPage.v1'

/** A back-test that is too large for one answer. */
export interface BacktestRequested extends JobAsked {
  geofenceId: string
  geofenceGroupId: string
  /** The geofence as it was when the back-test was asked for: how many events its stream had. */
  geofenceVersion: number
  /** The user who asked for it, and the hubs that they could see then. */
  userId: string
  hubIds: 'all' | readonly string[]
  /** ms since the epoch, inclusive. */
  from: number
  to: number
  /** Packed by `packIds`; absent: all that the user sees. */
  trackerIds?: string
  /** As they count: those of the group where none were asked for. */
  rules: GroupRules
  /** Points that it will read, about. */
  total: number
}

/** Where the transitions stand in the stream of results, oldest first. */
export interface BacktestResult {
  /** Revision of the first page. */
  first: number
  /** Revision of the last page; before `first` where there is none. */
  last: number
  transitions: number
}

/** A transition that would have been made; here only what results are sorted and shown by. */
export interface FoundTransition {
  trackerId: string
  /** ms since the epoch. */
  at: number
}

/** A part of a result. */
export interface BacktestPage {
  organizationId: string
  transitions: FoundTransition[]
}

export const resultStream = (backtestId: string): string => `backtestResult-${backtestId}`

/** UUIDs as 22 characters each: ten thousand fit one event. */
export const packIds = (ids: readonly string[]): string =>
  Buffer.from(ids.join('').replaceAll('-', ''), 'hex').toString('base64url')

export const unpackIds = (packed: string): string[] =>
  (Buffer.from(packed, 'base64url').toString('hex').match(/.{32}/g) ?? []).map((hex) =>
    hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'),
  )
