import type { TableStore } from '../../engines/table-store.ts'
import { boxContains, type Box } from '../../geo/box.ts'
import { toE7 } from '../../geo/coordinates.ts'
import { distanceMeters } from '../../geo/distance.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { ABSENT_VALUE } from '../../kit/http/list-query.ts'
import { seesLocations, seesWhere } from '../trackers/views.ts'
import {
  lastSeenAt,
  LATEST_POSITIONS,
  positionOf,
  seesUserOf,
  TRACKERS_TABLE,
  type LatestPositionRow,
  type Position,
  type PositionTracker,
} from './views.ts'

export interface LivePositionsServices {
  tables: Pick<TableStore, 'find' | 'scan' | 'getMany'>
  /** By the age of `lastSeenAt`. */
  statusAt: (lastSeenAt: number, now: number) => Position['status']
}

export interface Near {
  lat: number
  lng: number
}

export interface PositionFilter {
  box?: Box
  near?: Near
  /** Metres around `near`. */
  radius?: number
  trackerIds?: readonly string[]
  /** Matches any of them; `null` means trackers without one. */
  userIds?: readonly string[]
  vehicleIds?: readonly string[]
  hubIds?: readonly string[]
  teamIds?: readonly string[]
  statuses?: readonly Position['status'][]
}

/**
 * Place of a walk over positions. By tracker: the page cursor of the table (null: the first page) and the last tracker
 * that was answered. By distance: metres and tracker of the last one. A tracker that moves keeps its place in the
 * former, and changes it only in the latter.
 */
export type PositionPlace = { page: string | null; trackerId: string } | { meters: number; trackerId: string }

export interface FoundPosition {
  position: Position
  place: PositionPlace
}

export interface PositionQuestion {
  caller: UserCaller
  filter: PositionFilter
  now: number
}

/** Rows whose trackers are looked up together. */
const PAGE_ROWS = 500

/** Positions after a place, by tracker or, with `near`, by distance; `near` holds all matches, else only a page. */
export const positionsAfter = (
  services: LivePositionsServices,
  question: PositionQuestion,
  after?: PositionPlace,
): AsyncGenerator<FoundPosition> =>
  question.filter.near === undefined
    ? byTracker(services, question, after !== undefined && 'page' in after ? after : undefined)
    : byDistance(services, question, question.filter.near, after !== undefined && 'meters' in after ? after : undefined)

export const countPositions = async (services: LivePositionsServices, question: PositionQuestion): Promise<number> => {
  const { caller, filter } = question
  const isAll =
    seesLocations(caller) && caller.hubIds === 'all' && Object.values(filter).every((value) => value === undefined)
  // The table knows its size, which includes rows that deletions have not reached yet.
  if (isAll)
    return (
      (await services.tables.find(LATEST_POSITIONS.name, caller.organizationId, { limit: 1, total: true })).total ?? 0
    )
  let total = 0
  for await (const rows of tablePages(services, question)) total += (await seen(services, question, rows)).length
  return total
}

async function* byTracker(
  services: LivePositionsServices,
  question: PositionQuestion,
  after?: { page: string | null; trackerId: string },
): AsyncGenerator<FoundPosition> {
  const { caller, filter } = question
  const isAfter = ({ trackerId }: LatestPositionRow): boolean => after === undefined || trackerId > after.trackerId
  if (filter.trackerIds !== undefined) {
    const named = (await rowsOf(services, caller, filter.trackerIds)).filter(isAfter)
    for (const { row, tracker } of await seen(services, question, named))
      yield { position: shown(services, question, row, tracker), place: { page: null, trackerId: row.trackerId } }
    return
  }
  for (let page = after?.page ?? null; ; ) {
    const { rows, next } = await services.tables.find<LatestPositionRow>(LATEST_POSITIONS.name, caller.organizationId, {
      limit: PAGE_ROWS,
      after: page ?? undefined,
    })
    const left = rows.map(({ row }) => row).filter(isAfter)
    for (const { row, tracker } of await seen(services, question, left)) {
      yield { position: shown(services, question, row, tracker), place: { page, trackerId: row.trackerId } }
    }
    if (next === null) return
    page = next
  }
}

/** An organization has at most `--trackers-max` of them. */
async function* byDistance(
  services: LivePositionsServices,
  question: PositionQuestion,
  near: Near,
  after?: { meters: number; trackerId: string },
): AsyncGenerator<FoundPosition> {
  const all: (Seen & { meters: number })[] = []
  for await (const rows of tablePages(services, question)) {
    for (const one of await seen(services, question, rows)) all.push({ ...one, meters: distanceTo(near, one.row) })
  }
  all.sort((a, b) => a.meters - b.meters || (a.row.trackerId < b.row.trackerId ? -1 : 1))
  for (const { row, tracker, meters } of all) {
    const { trackerId } = row
    if (after !== undefined && (meters < after.meters || (meters === after.meters && trackerId <= after.trackerId)))
      continue
    yield { position: shown(services, question, row, tracker), place: { meters, trackerId } }
  }
}

/** The rows of the named trackers, or every row of the organization, page by page. */
async function* tablePages(
  services: LivePositionsServices,
  { caller, filter }: PositionQuestion,
): AsyncGenerator<LatestPositionRow[]> {
  const { tables } = services
  if (filter.trackerIds !== undefined) {
    yield await rowsOf(services, caller, filter.trackerIds)
    return
  }
  let page: LatestPositionRow[] = []
  for await (const { row } of tables.scan<LatestPositionRow>(LATEST_POSITIONS.name, caller.organizationId)) {
    page.push(row)
    if (page.length < PAGE_ROWS) continue
    yield page
    page = []
  }
  yield page
}

/** By tracker; without those that no point has come from. */
const rowsOf = async (
  { tables }: LivePositionsServices,
  { organizationId }: UserCaller,
  trackerIds: readonly string[],
): Promise<LatestPositionRow[]> => {
  const ids = [...new Set(trackerIds)].sort()
  const rows = await tables.getMany<LatestPositionRow>(LATEST_POSITIONS.name, organizationId, ids)
  return rows.filter((row) => row !== undefined)
}

interface Seen {
  row: LatestPositionRow
  tracker: PositionTracker
}

/** Matching rows whose tracker the caller sees. */
const seen = async (
  { tables, statusAt }: LivePositionsServices,
  { caller, filter, now }: PositionQuestion,
  rows: readonly LatestPositionRow[],
): Promise<Seen[]> => {
  const { box, near, radius, userIds, vehicleIds, hubIds, teamIds, statuses } = filter
  const here = rows.filter(
    (row) =>
      (box === undefined || boxContains(box, row.lng, row.lat)) &&
      (near === undefined || radius === undefined || distanceTo(near, row) <= radius) &&
      (statuses === undefined || statuses.includes(statusAt(lastSeenAt(row), now))),
  )
  const trackers = await tables.getMany<PositionTracker>(
    TRACKERS_TABLE,
    caller.organizationId,
    here.map(({ trackerId }) => trackerId),
  )
  return here.flatMap((row, i) => {
    const tracker = trackers[i]
    if (tracker === undefined || !seesWhere(caller, tracker)) return []
    const { teamId = [], vehicleId = [], userId = [] } = tracker
    const isAsked =
      hasAny(hubIds, tracker.hubIds) &&
      hasAny(teamIds, [teamId].flat()) &&
      hasAny(vehicleIds, [vehicleId].flat()) &&
      hasAny(userIds, seesUserOf(caller, tracker) ? [userId].flat() : [])
    return isAsked ? [{ row, tracker }] : []
  })
}

const shown = (
  { statusAt }: LivePositionsServices,
  { now, caller }: PositionQuestion,
  row: LatestPositionRow,
  { userId, ...tracker }: PositionTracker,
): Position => {
  const shownTracker = seesUserOf(caller, { ...tracker, userId }) ? { ...tracker, userId } : tracker
  return positionOf(row, shownTracker, statusAt(lastSeenAt(row), now))
}

const hasAny = (asked: readonly string[] | undefined, own: readonly string[]): boolean =>
  asked === undefined || asked.some((one) => (one === ABSENT_VALUE ? own.length === 0 : own.includes(one)))

const distanceTo = ({ lat, lng }: Near, row: Pick<LatestPositionRow, 'lat' | 'lng'>): number =>
  distanceMeters(toE7(lng), toE7(lat), row.lng, row.lat)
