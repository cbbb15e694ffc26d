import type { UserCaller } from '../../kernel/caller.ts'
import { invalid } from '../../kernel/errors.ts'
import { timeBounds } from '../../kit/http/time-parameter.ts'
import { trackerLookups, type TrackersAsked, trackersAsked } from '../trackers/views.ts'
import type { ReportScope } from './tracker-walk.ts'

export interface ScopeQuery extends TrackersAsked {
  from: string
  to: string
}

const DAYS_MAX = 400
const DAY_MS = 86_400_000

/** Requested trackers and times that the caller may see. @throws Failure invalid for times invalid or too far apart. */
export const scopeOf = async (
  tables: Parameters<typeof trackerLookups>[0],
  visibleTrackers: (caller: UserCaller) => Promise<'all' | readonly string[]>,
  caller: UserCaller,
  query: ScopeQuery,
): Promise<ReportScope> => {
  const { organizationId } = caller
  const bounds = reportBounds(query)
  const { trackersOf } = trackerLookups(tables)
  const trackerIds = (await trackersAsked(trackersOf, organizationId, query, await visibleTrackers(caller))) ?? 'all'
  return { organizationId, trackerIds, ...bounds }
}

/** Bounds of a report, inclusive, ms since the epoch. */
export const reportBounds = (query: { from: string; to: string }): { from: number; to: number } => {
  const { from, to } = timeBounds(query) as { from: number; to: number }
  if (to - from > DAYS_MAX * DAY_MS) throw invalid('/to', `must be at most ${DAYS_MAX} days after from`)
  return { from, to }
}
