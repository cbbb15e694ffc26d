import type { BinaryFrame } from './binary-frame.ts'
import {
  AHEAD,
  HAS_ACCURACY,
  HAS_ALTITUDE,
  HAS_ATTRIBUTES,
  HAS_BATTERY,
  HAS_HEADING,
  HAS_SPEED,
  TRIP_FINISH,
  TRIP_START,
} from '../events.ts'
import { AHEAD_MS, judgeTime, nameTracker, type PackContext, type PackedFrame } from './pack-points.ts'
import { ATTRIBUTES_BYTES_MAX, faultOf, HUNDREDTHS_MAX } from './point-schema.ts'
import type { KnownTracker } from '../../trackers/views.ts'

const COLUMNS = HAS_ACCURACY | HAS_ALTITUDE | HAS_SPEED | HAS_HEADING | HAS_BATTERY | HAS_ATTRIBUTES
const TRIPS = TRIP_START | TRIP_FINISH
const LAT_MAX = 900_000_000
const LNG_MAX = 1_800_000_000
const COLUMN_MAX = HUNDREDTHS_MAX * 100
/** Flags that must be checked row by row. */
const RARE = TRIPS | AHEAD | HAS_ATTRIBUTES

/** Validates the points of a binary frame and packs the good ones. The packed frame is cleared first. */
export const packBinaryFrame = (binary: BinaryFrame, context: PackContext, frame: PackedFrame): void => {
  frame.clear()
  frame.columns.reserve(binary.count)
  if (packWhole(binary, context, frame)) return
  frame.clear()
  packRows(binary, context, frame)
}

/** Packs by column if every point is valid and its tracker known, the usual case; otherwise packs nothing. */
const packWhole = (binary: BinaryFrame, context: PackContext, frame: PackedFrame): boolean => {
  const { count, flags, tracker } = binary
  if (count === 0 || !areTimesUsual(binary, context) || !arePlacesRight(binary)) return false
  let any = 0
  let all = 0xffff
  for (let i = 0; i < count; i++) {
    any |= flags[i]
    all &= flags[i]
  }
  // Columns that some points lack need zeros written.
  if (any !== all || (any & RARE) !== 0 || (any & ~allowedFlags(binary)) !== 0 || !areOptionalRight(binary, any))
    return false
  const known = trackersOf(binary, context)
  if (known === undefined) return false
  const { columns, index } = frame
  for (let i = 0; i < count; i++) {
    const place = tracker === undefined ? 0 : tracker[i]
    if (place >= known.length) return false
    columns.tracker[i] = known[place]
    columns.attributes[i] = ''
    columns.recordedAt[i] = binary.baseTime + binary.times[i]
    index[i] = i
  }
  columns.lat.set(binary.lat)
  columns.lng.set(binary.lng)
  columns.flags.set(flags)
  fill(columns.accuracy, any & HAS_ACCURACY ? binary.accuracy : undefined, count)
  fill(columns.altitude, any & HAS_ALTITUDE ? binary.altitude : undefined, count)
  fill(columns.speed, any & HAS_SPEED ? binary.speed : undefined, count)
  fill(columns.heading, any & HAS_HEADING ? binary.heading : undefined, count)
  fill(columns.battery, any & HAS_BATTERY ? binary.battery : undefined, count)
  columns.count = count
  return true
}

const areTimesUsual = ({ count, times, baseTime }: BinaryFrame, { now, retentionMs }: PackContext): boolean => {
  let latest = 0
  for (let i = 0; i < count; i++) if (times[i] > latest) latest = times[i]
  return baseTime >= now - retentionMs && baseTime + latest <= now + AHEAD_MS
}

const arePlacesRight = ({ count, lat, lng }: BinaryFrame): boolean => {
  for (let i = 0; i < count; i++) {
    if (lat[i] < -LAT_MAX || lat[i] > LAT_MAX || lng[i] < -LNG_MAX || lng[i] > LNG_MAX) return false
  }
  return true
}

const areOptionalRight = (binary: BinaryFrame, flags: number): boolean => {
  if ((flags & COLUMNS) === 0) return true
  for (let i = 0; i < binary.count; i++) if (faultOfOptional(binary, i, flags) !== undefined) return false
  return true
}

/** Trackers that the frame names, or the one of its credential; undefined if one is refused or not known yet. */
const trackersOf = (
  { tracker, trackers }: BinaryFrame,
  { resolver, caller }: PackContext,
): KnownTracker[] | undefined => {
  const found: KnownTracker[] = []
  for (const { trackerId, externalId } of tracker === undefined ? ([{}] as BinaryFrame['trackers']) : trackers) {
    const known = resolver.known(caller, trackerId, externalId)
    if (known === undefined || typeof known === 'string') return undefined
    found.push(known)
  }
  return found
}

const fill = (
  column: Int32Array | Uint16Array | Uint8Array,
  values: ArrayLike<number> | undefined,
  count: number,
): void => {
  if (values === undefined) column.fill(0, 0, count)
  else column.set(values)
}

const packRows = (binary: BinaryFrame, context: PackContext, frame: PackedFrame): void => {
  const allowed = allowedFlags(binary)
  const { columns } = frame
  let named = 0
  for (let i = 0; i < binary.count; i++) {
    const flags = binary.flags[i]
    const attributes = (flags & HAS_ATTRIBUTES) === 0 ? '' : binary.attributes[named++]
    const fault =
      faultOfRow(binary, i, flags, allowed) ??
      ((flags & HAS_ATTRIBUTES) === 0 ? undefined : faultOfAttributes(attributes))
    if (fault !== undefined) {
      frame.reject(i, 'invalid', fault)
      continue
    }
    const time = binary.baseTime + binary.times[i]
    const ahead = judgeTime(frame, i, context, time)
    if (ahead < 0) continue
    const name = binary.tracker === undefined ? undefined : binary.trackers[binary.tracker[i]]
    if (!nameTracker(frame, i, context, name?.trackerId, name?.externalId)) continue
    const row = columns.count++
    frame.index.push(i)
    frame.attributesBytes += attributes.length
    columns.attributes[row] = attributes
    columns.recordedAt[row] = time
    columns.lat[row] = binary.lat[i]
    columns.lng[row] = binary.lng[i]
    columns.flags[row] = flags | ahead
    columns.accuracy[row] = (flags & HAS_ACCURACY) === 0 || binary.accuracy === undefined ? 0 : binary.accuracy[i]
    columns.altitude[row] = (flags & HAS_ALTITUDE) === 0 || binary.altitude === undefined ? 0 : binary.altitude[i]
    columns.speed[row] = (flags & HAS_SPEED) === 0 || binary.speed === undefined ? 0 : binary.speed[i]
    columns.heading[row] = (flags & HAS_HEADING) === 0 || binary.heading === undefined ? 0 : binary.heading[i]
    columns.battery[row] = (flags & HAS_BATTERY) === 0 || binary.battery === undefined ? 0 : binary.battery[i]
  }
}

/** A point may have the flag of a value only if the frame has the column; only the server sets AHEAD. */
const allowedFlags = (binary: BinaryFrame): number =>
  TRIPS |
  (binary.accuracy ? HAS_ACCURACY : 0) |
  (binary.altitude ? HAS_ALTITUDE : 0) |
  (binary.speed ? HAS_SPEED : 0) |
  (binary.heading ? HAS_HEADING : 0) |
  (binary.battery ? HAS_BATTERY : 0) |
  (binary.attributes.length > 0 ? HAS_ATTRIBUTES : 0)

const faultOfRow = (binary: BinaryFrame, i: number, flags: number, allowed: number): string | undefined => {
  const lat = binary.lat[i]
  const lng = binary.lng[i]
  if (lat < -LAT_MAX || lat > LAT_MAX) return '/lat must be >= -90 and <= 90'
  if (lng < -LNG_MAX || lng > LNG_MAX) return '/lng must be >= -180 and <= 180'
  if ((flags & ~allowed) !== 0 || (flags & AHEAD) !== 0) return '/flags name a value that the frame does not have'
  if ((flags & TRIPS) === TRIPS) return '/trip must be one of start, finish'
  if (binary.tracker !== undefined && binary.tracker[i] >= binary.trackers.length)
    return '/tracker is not in the list of trackers'
  if ((flags & COLUMNS) === 0) return undefined
  return faultOfOptional(binary, i, flags)
}

const faultOfOptional = (binary: BinaryFrame, i: number, flags: number): string | undefined => {
  const { accuracy, altitude, speed, heading, battery } = binary
  if (flags & HAS_ACCURACY && accuracy && (accuracy[i] < 0 || accuracy[i] > COLUMN_MAX)) return '/accuracy must be >= 0'
  if (flags & HAS_ALTITUDE && altitude && Math.abs(altitude[i]) > COLUMN_MAX)
    return `/altitude must be within ${HUNDREDTHS_MAX}`
  if (flags & HAS_SPEED && speed && Math.abs(speed[i]) > COLUMN_MAX) return `/speed must be within ${HUNDREDTHS_MAX}`
  if (flags & HAS_HEADING && heading && heading[i] > 3600) return '/heading must be <= 360'
  if (flags & HAS_BATTERY && battery && battery[i] > 100) return '/battery must be <= 1'
  return undefined
}

const faultOfAttributes = (text: string): string | undefined => {
  if (Buffer.byteLength(text) > ATTRIBUTES_BYTES_MAX)
    return `/attributes must be at most ${ATTRIBUTES_BYTES_MAX} bytes of JSON`
  let attributes: unknown
  try {
    attributes = JSON.parse(text)
  } catch {
    return '/attributes must be JSON'
  }
  return faultOf({ recordedAt: 0, lat: 0, lng: 0, attributes })
}
