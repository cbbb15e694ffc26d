import {
  HAS_ACCURACY,
  HAS_ALTITUDE,
  HAS_ATTRIBUTES,
  HAS_BATTERY,
  HAS_HEADING,
  HAS_SPEED,
  type PointBatch,
} from '../../features/locations/events.ts'
import type { PointValue } from '../../features/transitions/events.ts'
import {
  DECIDED,
  L_ACCURACY,
  L_ALTITUDE,
  L_AT,
  L_BITS,
  L_HEADING,
  L_LAT,
  L_LNG,
  L_SPEED,
  RECORD_DOUBLES,
  RECORD_INTS,
  type MatcherState,
  PENDING,
} from './state.ts'

/** A point of a batch, as transitions and trips carry it. */
export const pointOfBatch = (batch: PointBatch, i: number): PointValue =>
  pointValue(
    batch.recordedAt[i],
    batch.lat[i],
    batch.lng[i],
    batch.flags[i],
    batch.accuracy[i],
    batch.altitude[i],
    batch.speed[i],
    batch.heading[i],
    batch.battery[i],
    batch.attributes.get(i),
  )

/** Keeps a point of a batch as the last decided one of a lane. */
export const storePoint = (state: MatcherState, record: number, batch: PointBatch, i: number): void => {
  const offset = record * RECORD_INTS
  const { records } = state
  const flags = batch.flags[i]
  const before = records[offset + L_BITS]
  records[offset + L_BITS] = flags | DECIDED | (before & PENDING)
  records[offset + L_LAT] = batch.lat[i]
  records[offset + L_LNG] = batch.lng[i]
  records[offset + L_ACCURACY] = batch.accuracy[i]
  records[offset + L_ALTITUDE] = batch.altitude[i]
  records[offset + L_SPEED] = batch.speed[i]
  records[offset + L_HEADING] = batch.heading[i] | (batch.battery[i] << 16)
  state.recordsF[record * RECORD_DOUBLES + L_AT] = batch.recordedAt[i]
  if ((flags & HAS_ATTRIBUTES) !== 0) state.attributes.set(record, batch.attributes.get(i) as string)
  else if ((before & HAS_ATTRIBUTES) !== 0) state.attributes.delete(record)
}

export const storedPoint = (state: MatcherState, record: number): PointValue => {
  const offset = record * RECORD_INTS
  const { records } = state
  return pointValue(
    state.recordsF[record * RECORD_DOUBLES + L_AT],
    records[offset + L_LAT],
    records[offset + L_LNG],
    records[offset + L_BITS],
    records[offset + L_ACCURACY],
    records[offset + L_ALTITUDE],
    records[offset + L_SPEED],
    records[offset + L_HEADING] & 0xffff,
    records[offset + L_HEADING] >>> 16,
    state.attributes.get(record),
  )
}

const pointValue = (
  recordedAt: number,
  lat: number,
  lng: number,
  flags: number,
  accuracy: number,
  altitude: number,
  speed: number,
  heading: number,
  battery: number,
  attributes: string | undefined,
): PointValue => {
  const point: PointValue = { recordedAt, lat: lat / 1e7, lng: lng / 1e7 }
  if ((flags & HAS_ACCURACY) !== 0) point.accuracy = accuracy / 100
  if ((flags & HAS_ALTITUDE) !== 0) point.altitude = altitude / 100
  if ((flags & HAS_SPEED) !== 0) point.speed = speed / 100
  if ((flags & HAS_HEADING) !== 0) point.heading = heading / 10
  if ((flags & HAS_BATTERY) !== 0) point.battery = battery / 100
  if ((flags & HAS_ATTRIBUTES) !== 0 && attributes !== undefined) point.attributes = JSON.parse(attributes)
  return point
}
