import type { Row } from '../../kernel/table.ts'
import type { GroupRules } from '../geofences/events.ts'

/** What the streams `backtest-<id>` hold: the life of one back-test that is too large for one answer. */
export const BACKTEST_REQUESTED = 'backtestRequested.v1'
/** An attempt began: the first one, or one after a restart or a failure, which begins anew. */
export const BACKTEST_STARTED = 'backtestStarted.v1'
export const BACKTEST_PROGRESSED = 'backtestProgressed.v1'
export const BACKTEST_FINISHED = 'backtestFinished.v1'
export const BACKTEST_FAILED = 'backtestFailed.v1'
export const BACKTEST_DELETED = 'backtestDeleted.v1'
/** What the streams `backtestResult-<id>` hold. */
export const BACKTEST_PAGE = 'backtestPage.v1'

export interface BacktestRequested {
  organizationId: string
  geofenceId: string
  geofenceGroupId: string
  /** The geofence as it was when the back-test was asked for: how many events its stream had. */
  geofenceVersion: number
  /** Whoever asked for it, and the hubs that they could see then. */
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
  /** ms since the epoch, as in all these events. */
  at: number
}

export interface BacktestStarted {
  organizationId: string
  attempt: number
  at: number
}

export interface BacktestProgressed {
  organizationId: string
  attempt: number
  /** Points read so far. */
  processed: number
  at: number
}

/** Where the transitions stand in the stream of results, oldest first. */
export interface BacktestResult {
  /** Revision of the first page. */
  first: number
  /** Revision of the last page; before `first` where there is none. */
  last: number
  transitions: number
}

export interface BacktestFinished {
  organizationId: string
  attempt: number
  processed: number
  result: BacktestResult
  at: number
}

export interface BacktestFailed {
  organizationId: string
  /** A code of the table of errors. */
  code: string
  message: string
  at: number
}

export interface BacktestDeleted {
  organizationId: string
  /** The row of one that had not ended, as it was: its stream is cut off, and whoever watches it is to hear of its end. */
  cancelled?: Row
  at: number
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

export const BACKTEST_STREAMS = 'backtest-'
export const backtestStream = (backtestId: string): string => `${BACKTEST_STREAMS}${backtestId}`
/** Apart from the life of the back-test, so that whoever follows or folds that never reads pages. */
export const resultStream = (backtestId: string): string => `backtestResult-${backtestId}`

/** UUIDs as 22 characters each: ten thousand fit one event. */
export const packIds = (ids: readonly string[]): string =>
  Buffer.from(ids.join('').replaceAll('-', ''), 'hex').toString('base64url')

export const unpackIds = (packed: string): string[] =>
  (Buffer.from(packed, 'base64url').toString('hex').match(/.{32}/g) ?? []).map((hex) =>
    hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'),
  )
