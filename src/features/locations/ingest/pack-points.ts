import type { Caller } from '../../../kernel/caller.ts'
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
import { parseTime } from '../../../kit/http/parse-time.ts'
import { PointColumns } from '../point-columns.ts'
import { arePoints, ATTRIBUTES_BYTES_MAX, faultOf, type PointInput } from './point-schema.ts'
import type { RejectCode, Rejected } from './views.ts'
import {
  type KnownTracker,
  nameFault,
  type TrackerName,
  type TrackerRefusal,
  type TrackerResolver,
} from '../../trackers/views.ts'

export interface PackContext {
  caller: Caller
  resolver: TrackerResolver
  /** ms since the epoch. */
  now: number
  /** How long history is kept. */
  retentionMs: number
}

/** Good points of one frame, as columns. Those whose tracker is not known yet are listed in `unresolved`. */
export class PackedFrame {
  readonly columns: PointColumns
  /** Index in the frame of each row. */
  readonly index: number[] = []
  readonly rejected: Rejected[] = []
  readonly unresolved: { row: number; name: TrackerName }[] = []
  attributesBytes = 0

  constructor(capacity: number) {
    this.columns = new PointColumns(capacity)
  }

  clear(): void {
    this.columns.rewind()
    if (this.index.length > 0) this.index.length = 0
    if (this.rejected.length > 0) this.rejected.length = 0
    if (this.unresolved.length > 0) this.unresolved.length = 0
    this.attributesBytes = 0
  }

  /** Removes all other rows. */
  keep(isKept: (row: number) => boolean): void {
    const { columns, index } = this
    const count = columns.count
    columns.count = 0
    for (let row = 0; row < count; row++) {
      if (!isKept(row)) continue
      index[columns.count] = index[row]
      columns.appendRow(columns, row)
    }
    index.length = columns.count
  }

  reject(index: number, code: RejectCode, message: string = TEXTS[code]): void {
    this.rejected.push({ index, code, message })
  }

  rejectTracker(index: number, code: TrackerRefusal, name: TrackerName): void {
    this.reject(index, code, code === 'invalid' ? nameFault(name) : undefined)
  }
}

export const AHEAD_MS = 10 * 60_000
const TOO_FAR_AHEAD_MS = 24 * 3_600_000

const TEXTS: { [code in RejectCode]: string } = {
  invalid: 'The point is not valid.',
  too_old: '/recordedAt is older than the retention of this server',
  too_far_ahead: "/recordedAt is over 24 hours ahead of the server's clock",
  unknown_tracker: 'There is no such tracker.',
  forbidden_tracker: 'This credential cannot send points of that tracker.',
  tracker_limit: 'The organization has as many trackers as this server allows.',
}

/** Validates the points of one frame and packs the good ones. The frame is cleared first. */
export const packPoints = (points: readonly unknown[], context: PackContext, frame: PackedFrame): void => {
  frame.clear()
  frame.columns.reserve(points.length)
  if (arePoints(points)) {
    for (let index = 0; index < points.length; index++) packPoint(points[index] as PointInput, index, context, frame)
    return
  }
  for (let index = 0; index < points.length; index++) {
    const fault = faultOf(points[index])
    if (fault === undefined) packPoint(points[index] as PointInput, index, context, frame)
    else frame.reject(index, 'invalid', fault)
  }
}

/** Finds the tracker of the row to be added; false if the point was refused. */
export const nameTracker = (
  frame: PackedFrame,
  index: number,
  context: PackContext,
  trackerId: string | undefined,
  externalId: string | undefined,
): boolean => {
  const known = context.resolver.known(context.caller, trackerId, externalId)
  const row = frame.columns.count
  if (typeof known === 'string') {
    frame.rejectTracker(index, known, { trackerId, externalId })
    return false
  }
  if (known === undefined) frame.unresolved.push({ row, name: { trackerId, externalId } })
  frame.columns.tracker[row] = known as KnownTracker
  return true
}

/** The AHEAD flag or 0; -1 if the point was refused for its time. */
export const judgeTime = (frame: PackedFrame, index: number, context: PackContext, recordedAt: number): number => {
  const aheadMs = recordedAt - context.now
  if (aheadMs <= AHEAD_MS) {
    if (aheadMs >= -context.retentionMs) return 0
    frame.reject(index, 'too_old')
  } else {
    if (aheadMs <= TOO_FAR_AHEAD_MS) return AHEAD
    frame.reject(index, 'too_far_ahead')
  }
  return -1
}

const packPoint = (point: PointInput, index: number, context: PackContext, frame: PackedFrame): void => {
  const { recordedAt } = point
  const time = typeof recordedAt === 'string' ? parseTime(recordedAt) : Math.round(recordedAt)
  if (Number.isNaN(time))
    return frame.reject(index, 'invalid', '/recordedAt must be an RFC 3339 time or milliseconds since the epoch')
  const ahead = judgeTime(frame, index, context, time)
  if (ahead < 0) return
  const attributes = point.attributes === undefined ? '' : JSON.stringify(point.attributes)
  if (attributes.length > ATTRIBUTES_BYTES_MAX / 4 && Buffer.byteLength(attributes) > ATTRIBUTES_BYTES_MAX) {
    return frame.reject(index, 'invalid', `/attributes must be at most ${ATTRIBUTES_BYTES_MAX} bytes of JSON`)
  }
  if (!nameTracker(frame, index, context, point.trackerId, point.externalId)) return

  const { columns } = frame
  const row = columns.count++
  frame.index.push(index)
  frame.attributesBytes += attributes.length
  columns.attributes[row] = attributes
  columns.recordedAt[row] = time
  columns.lat[row] = Math.round(point.lat * 1e7)
  columns.lng[row] = Math.round(point.lng * 1e7)
  columns.flags[row] = ahead | packOptional(point, columns, row)
}

/** Writes the values of the point and returns their flags. */
const packOptional = (point: PointInput, columns: PointColumns, row: number): number => {
  const { accuracy, altitude, speed, heading, battery, trip } = point
  let flags = point.attributes === undefined ? 0 : HAS_ATTRIBUTES
  if (accuracy !== undefined) flags |= HAS_ACCURACY
  if (altitude !== undefined) flags |= HAS_ALTITUDE
  if (speed !== undefined) flags |= HAS_SPEED
  if (heading !== undefined) flags |= HAS_HEADING
  if (battery !== undefined) flags |= HAS_BATTERY
  if (trip !== undefined) flags |= trip === 'start' ? TRIP_START : TRIP_FINISH
  columns.accuracy[row] = accuracy === undefined ? 0 : Math.round(accuracy * 100)
  columns.altitude[row] = altitude === undefined ? 0 : Math.round(altitude * 100)
  columns.speed[row] = speed === undefined ? 0 : Math.round(speed * 100)
  columns.heading[row] = heading === undefined ? 0 : Math.round(heading * 10)
  columns.battery[row] = battery === undefined ? 0 : Math.round(battery * 100)
  return flags
}
