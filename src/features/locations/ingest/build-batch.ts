import { AHEAD, type PointBatch } from '../events.ts'
import type { PointColumns } from '../point-columns.ts'
import { encodedBytes } from '../point-batch-codec.ts'
import type { KnownTracker } from '../../trackers/views.ts'

/** Rows `from` to `to` of some columns, in order of arrival. */
export interface RowRange {
  columns: PointColumns
  from: number
  to: number
}

let marks = 0

/** A new mark that no tracker has: a count of trackers sets it on each one that it has met. */
const nextMark = (): number => ++marks

/** One batch of all rows by tracker and `recordedAt`, without repeats (first wins; one ahead of the clock loses). */
export const buildBatch = (ranges: readonly RowRange[], loggedAt: number): PointBatch => {
  const { trackers, places, count } = countTrackers(ranges)
  const batch = emptyBatch(count, loggedAt, trackers)
  for (const { columns, from, to } of ranges) {
    for (let row = from; row < to; row++) placeRow(batch, places[columns.tracker[row].index]++, columns, row)
  }
  return isSorted(batch) ? batch : sorted(batch)
}

/**
 * Splits the batch, in its order, into parts of limited points and encoded bytes. A single point is always accepted,
 * however large: attributes are bounded at ingress.
 */
export const splitBatch = (batch: PointBatch, pointsMax: number, bytesMax: number): PointBatch[] => {
  if (batch.count <= 1 || (batch.count <= pointsMax && encodedBytes(batch) <= bytesMax)) return [batch]
  const parts: PointBatch[] = []
  const half = Math.ceil(batch.count / Math.max(2, Math.ceil(batch.count / pointsMax)))
  for (let from = 0; from < batch.count; from += half) {
    parts.push(...splitBatch(slice(batch, from, Math.min(from + half, batch.count)), pointsMax, bytesMax))
  }
  return parts
}

/** Trackers in order of first occurrence, and the start of each one's rows. */
const countTrackers = (
  ranges: readonly RowRange[],
): { trackers: KnownTracker[]; places: Uint32Array; count: number } => {
  const mark = nextMark()
  const trackers: KnownTracker[] = []
  const counts: number[] = []
  for (const { columns, from, to } of ranges) {
    for (let row = from; row < to; row++) {
      const tracker = columns.tracker[row]
      if (tracker.mark !== mark) {
        tracker.mark = mark
        tracker.index = trackers.length
        trackers.push(tracker)
        counts.push(0)
      }
      counts[tracker.index]++
    }
  }
  const places = new Uint32Array(trackers.length)
  let count = 0
  for (let i = 0; i < counts.length; i++) {
    places[i] = count
    count += counts[i]
  }
  return { trackers, places, count }
}

/** Columns for so many points, all zero. */
export const emptyBatch = (count: number, loggedAt: number, trackers: PointBatch['trackers']): PointBatch => ({
  loggedAt,
  count,
  trackers,
  tracker: new Uint16Array(count),
  recordedAt: new Float64Array(count),
  lat: new Int32Array(count),
  lng: new Int32Array(count),
  flags: new Uint16Array(count),
  accuracy: new Int32Array(count),
  altitude: new Int32Array(count),
  speed: new Int32Array(count),
  heading: new Uint16Array(count),
  battery: new Uint8Array(count),
  attributes: new Map(),
})

const placeRow = (batch: PointBatch, at: number, columns: PointColumns, row: number): void => {
  batch.tracker[at] = columns.tracker[row].index
  batch.recordedAt[at] = columns.recordedAt[row]
  batch.lat[at] = columns.lat[row]
  batch.lng[at] = columns.lng[row]
  batch.flags[at] = columns.flags[row]
  batch.accuracy[at] = columns.accuracy[row]
  batch.altitude[at] = columns.altitude[row]
  batch.speed[at] = columns.speed[row]
  batch.heading[at] = columns.heading[row]
  batch.battery[at] = columns.battery[row]
  if (columns.attributes[row] !== '') batch.attributes.set(at, columns.attributes[row])
}

const isSorted = ({ count, tracker, recordedAt }: PointBatch): boolean => {
  for (let i = 1; i < count; i++) if (recordedAt[i] <= recordedAt[i - 1] && tracker[i] === tracker[i - 1]) return false
  return true
}

/** Sorts rows, already grouped by tracker, by time within each tracker, and drops repeats. */
const sorted = (batch: PointBatch): PointBatch => {
  const { count, tracker, recordedAt, flags } = batch
  const order = Uint32Array.from({ length: count }, (_, i) => i)
  // Ties keep the order of arrival, those ahead of the clock last.
  order.sort(
    (a, b) =>
      tracker[a] - tracker[b] || recordedAt[a] - recordedAt[b] || (flags[a] & AHEAD) - (flags[b] & AHEAD) || a - b,
  )
  let kept = 0
  for (let i = 0; i < count; i++) {
    const before = order[kept - 1]
    const row = order[i]
    if (kept === 0 || tracker[row] !== tracker[before] || recordedAt[row] !== recordedAt[before]) order[kept++] = row
  }
  return gather(batch, order.subarray(0, kept))
}

const gather = (batch: PointBatch, order: Uint32Array): PointBatch => {
  const result = emptyBatch(order.length, batch.loggedAt, batch.trackers)
  for (let at = 0; at < order.length; at++) {
    const row = order[at]
    result.tracker[at] = batch.tracker[row]
    result.recordedAt[at] = batch.recordedAt[row]
    result.lat[at] = batch.lat[row]
    result.lng[at] = batch.lng[row]
    result.flags[at] = batch.flags[row]
    result.accuracy[at] = batch.accuracy[row]
    result.altitude[at] = batch.altitude[row]
    result.speed[at] = batch.speed[row]
    result.heading[at] = batch.heading[row]
    result.battery[at] = batch.battery[row]
    const attributes = batch.attributes.get(row)
    if (attributes !== undefined) result.attributes.set(at, attributes)
  }
  return result
}

const slice = (batch: PointBatch, from: number, to: number): PointBatch => {
  const first = batch.tracker[from]
  const attributes = new Map<number, string>()
  for (const [row, text] of batch.attributes) if (row >= from && row < to) attributes.set(row - from, text)
  return {
    loggedAt: batch.loggedAt,
    count: to - from,
    trackers: batch.trackers.slice(first, batch.tracker[to - 1] + 1),
    tracker: batch.tracker.slice(from, to).map((tracker) => tracker - first),
    recordedAt: batch.recordedAt.slice(from, to),
    lat: batch.lat.slice(from, to),
    lng: batch.lng.slice(from, to),
    flags: batch.flags.slice(from, to),
    accuracy: batch.accuracy.slice(from, to),
    altitude: batch.altitude.slice(from, to),
    speed: batch.speed.slice(from, to),
    heading: batch.heading.slice(from, to),
    battery: batch.battery.slice(from, to),
    attributes,
  }
}

/** Number of rows that repeat the tracker and time of another row. */
export const countRepeats = ({ count, tracker, recordedAt }: PointColumns): number => {
  const mark = nextMark()
  let trackers = 0
  const latest: number[] = []
  for (let row = 0; row < count; row++) {
    const one = tracker[row]
    if (one.mark !== mark) {
      one.mark = mark
      one.index = trackers++
      latest.push(recordedAt[row])
    } else if (recordedAt[row] > latest[one.index]) latest[one.index] = recordedAt[row]
    else return countUnordered(count, tracker, recordedAt)
  }
  return 0
}

/** Only frames in which a tracker's times do not rise need a set. */
const countUnordered = (count: number, tracker: PointColumns['tracker'], recordedAt: Float64Array): number => {
  const seen = new Map<PointColumns['tracker'][number], Set<number>>()
  let repeats = 0
  for (let row = 0; row < count; row++) {
    const times = seen.get(tracker[row])
    if (times === undefined) seen.set(tracker[row], new Set([recordedAt[row]]))
    else if (times.has(recordedAt[row])) repeats++
    else times.add(recordedAt[row])
  }
  return repeats
}
