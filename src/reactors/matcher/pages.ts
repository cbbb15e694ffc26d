import type { Row } from '../../kernel/table.ts'
import type { Fences } from './fences.ts'
import {
  DECIDED,
  L_BITS,
  L_KEY,
  L_SET,
  RECORD_INTS,
  type MatcherState,
  PAGE_TRACKERS,
  PENDING,
  type PendingChange,
  T_ORGANIZATION,
  TRACKER_INTS,
} from './state.ts'

/** Trackers of one page as they are stored: the records unchanged, and by value the things that they number. */
export interface PageRow extends Row {
  /** Revision of the last included entry of the location stream. */
  at: number
  /** By index in the page; null where there is none. */
  trackerIds: (string | null)[]
  organizations: string[]
  trackers: Uint8Array
  /** Number of lanes of each tracker, by index in the page; `lanes` has their records in that order. */
  laneCounts: number[]
  lanes: Uint8Array
  /** Sets of geofences; a lane's record names its own by index in this list. */
  sets: string[][]
  /** By index of the lane's record in `lanes`. */
  pending: [number, PendingChange[]][]
  attributes: [number, string][]
}

export const encodePage = (state: MatcherState, page: number, revision: number): PageRow => {
  const row: PageRow = {
    at: revision,
    trackerIds: [],
    organizations: [],
    trackers: new Uint8Array(0),
    laneCounts: [],
    lanes: new Uint8Array(0),
    sets: [],
    pending: [],
    attributes: [],
  }
  const from = page * PAGE_TRACKERS
  const trackers = state.trackers.slice(from * TRACKER_INTS, (from + PAGE_TRACKERS) * TRACKER_INTS)
  const records: number[] = []
  const organizations = new Map<number, number>()
  for (let index = 0; index < PAGE_TRACKERS; index++) {
    const trackerId = state.trackerIds[from + index]
    row.trackerIds.push(trackerId ?? null)
    const own = trackerId === undefined ? [] : state.recordsOf(from + index)
    row.laneCounts.push(own.length)
    records.push(...own)
    if (trackerId === undefined) continue
    const offset = index * TRACKER_INTS + T_ORGANIZATION
    trackers[offset] = numberOf(organizations, trackers[offset], () =>
      row.organizations.push(state.organizations[trackers[offset]].organizationId),
    )
  }
  row.trackers = bytesOf(trackers)
  const lanes = new Int32Array(records.length * RECORD_INTS)
  const numbers = new SetNumbers()
  const organizationOf = ownersOf(row.laneCounts, trackers)
  records.forEach((record, i) => {
    const from = record * RECORD_INTS
    const to = i * RECORD_INTS
    for (let int = 0; int < RECORD_INTS; int++) lanes[to + int] = state.records[from + int]
    const organization = organizationOf[i]
    const key = state.records[from + L_KEY]
    const set = state.records[from + L_SET]
    lanes[to + L_SET] = numbers.of(organization, key, set, () => {
      const { fences } = state.organizations[state.organizationIndexes.get(row.organizations[organization]) as number]
      const members = fences.lane(key)?.index.members(set) ?? []
      return row.sets.push(members.map((number) => fences.numbers.idOf(number)))
    })
    const changes = state.pending.get(record)
    if (changes !== undefined) row.pending.push([i, changes])
    const attributes = state.attributes.get(record)
    if (attributes !== undefined) row.attributes.push([i, attributes])
  })
  row.lanes = bytesOf(lanes)
  return row
}

/** Puts the trackers of a stored page in their slots. The fences must be those in force at revision `row.at`. */
export const installPage = (
  state: MatcherState,
  page: number,
  row: PageRow,
  organizationOf: (organizationId: string) => number,
): void => {
  const trackers = intsOf(row.trackers)
  const lanes = intsOf(row.lanes)
  const pending = new Map(row.pending)
  const attributes = new Map(row.attributes)
  let next = 0
  row.trackerIds.forEach((trackerId, index) => {
    const first = next
    next += row.laneCounts[index]
    if (trackerId === null) return
    const elsewhere = state.slots.get(trackerId)
    if (elsewhere !== undefined) state.removeTracker(elsewhere)
    const organization = organizationOf(row.organizations[trackers[index * TRACKER_INTS + T_ORGANIZATION]])
    const slot = state.addTracker(trackerId, organization, page * PAGE_TRACKERS + index)
    state.trackers.set(trackers.subarray(index * TRACKER_INTS, (index + 1) * TRACKER_INTS), slot * TRACKER_INTS)
    state.trackers[slot * TRACKER_INTS + T_ORGANIZATION] = organization
    const { fences } = state.organizations[organization]
    const stored = Array.from({ length: next - first }, (_, i) => first + i)
    // The lanes of the fences in force, whatever is stored: the hot path walks both side by side.
    const records = fences.lanes.map((lane) => {
      const i = stored.find((record) => lanes[record * RECORD_INTS + L_KEY] === lane.key)
      const record = state.addRecord(lane.key)
      if (i === undefined) return record
      state.records.set(lanes.subarray(i * RECORD_INTS, (i + 1) * RECORD_INTS), record * RECORD_INTS)
      state.records[record * RECORD_INTS + L_SET] = setOf(fences, lane.key, row.sets[lanes[i * RECORD_INTS + L_SET]])
      state.records[record * RECORD_INTS + L_BITS] &= 0xffff | DECIDED | PENDING
      state.forgetBox(record)
      const changes = pending.get(i)
      if (changes !== undefined) state.pending.set(record, changes)
      const text = attributes.get(i)
      if (text !== undefined) state.attributes.set(record, text)
      return record
    })
    state.setRecords(slot, records)
  })
}

const setOf = (fences: Fences, key: number, ids: readonly string[]): number => {
  if (ids.length === 0) return 0
  return fences.lane(key)?.index.setOf(ids.map((geofenceId) => fences.numbers.of(geofenceId))) ?? 0
}

/** Index of the organization of each lane record. */
const ownersOf = (laneCounts: readonly number[], trackers: Int32Array): number[] =>
  laneCounts.flatMap((count, index) => new Array<number>(count).fill(trackers[index * TRACKER_INTS + T_ORGANIZATION]))

/** Numbers the sets of a page: by organization, lane and set, without a text for each of its records. */
class SetNumbers {
  private readonly lanes: Map<number, Map<number, number>>[] = []

  of(organization: number, lane: number, set: number, push: () => number): number {
    const lanes = (this.lanes[organization] ??= new Map())
    let numbers = lanes.get(lane)
    if (numbers === undefined) lanes.set(lane, (numbers = new Map()))
    return numberOf(numbers, set, push)
  }
}

/** The index of a key in a list, which `push` extends when it lacks the key. */
const numberOf = <Key>(indexes: Map<Key, number>, key: Key, push: () => number): number => {
  let index = indexes.get(key)
  if (index === undefined) {
    index = push() - 1
    indexes.set(key, index)
  }
  return index
}

const bytesOf = (ints: Int32Array): Uint8Array => new Uint8Array(ints.buffer, ints.byteOffset, ints.byteLength)

// Copied: the engine's answer need not be aligned.
const intsOf = (bytes: Uint8Array): Int32Array => new Int32Array(bytes.slice().buffer)
