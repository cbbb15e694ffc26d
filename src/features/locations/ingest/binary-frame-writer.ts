import { BINARY_HEADER_BYTES, BINARY_MAGIC, NAMED_BY_EXTERNAL_ID } from './binary-frame.ts'
import {
  HAS_ACCURACY,
  HAS_ALTITUDE,
  HAS_ATTRIBUTES,
  HAS_BATTERY,
  HAS_HEADING,
  HAS_SPEED,
  TRIP_FINISH,
  TRIP_START,
} from '../events.ts'
import type { TrackerName } from '../../trackers/views.ts'
import { writeUuid } from '../../../kernel/uuid-bytes.ts'

const COLUMNS = HAS_ACCURACY | HAS_ALTITUDE | HAS_SPEED | HAS_HEADING | HAS_BATTERY | HAS_ATTRIBUTES

/** One point of a sender; units as in JSON. */
export interface BinaryPoint extends TrackerName {
  /** ms since the epoch. */
  recordedAt: number
  lat: number
  lng: number
  accuracy?: number
  altitude?: number
  speed?: number
  heading?: number
  battery?: number
  trip?: 'start' | 'finish'
  attributes?: { [name: string]: unknown }
}

/** Bytes of a frame: the reference for senders, used by tests, benches and the replay of traces. */
export const writeBinaryFrame = (seq: number, points: readonly BinaryPoint[]): Uint8Array<ArrayBuffer> => {
  const { trackers, tracker } = dictionaryOf(points)
  const flags = points.map(flagsOf)
  const kinds = flags.reduce((all, one) => all | one, 0) & COLUMNS
  const baseTime = points.reduce((least, { recordedAt }) => Math.min(least, recordedAt), points[0]?.recordedAt ?? 0)
  const parts: Uint8Array[] = []
  const column = (values: Uint32Array | Int32Array | Uint16Array | Uint8Array) =>
    parts.push(new Uint8Array(values.buffer, values.byteOffset, values.byteLength))
  const hundredths = (has: number, value: (point: BinaryPoint) => number | undefined) => {
    if (kinds & has) column(Int32Array.from(points, (point) => Math.round((value(point) ?? 0) * 100)))
  }
  column(Uint32Array.from(points, ({ recordedAt }) => recordedAt - baseTime))
  column(Int32Array.from(points, ({ lat }) => Math.round(lat * 1e7)))
  column(Int32Array.from(points, ({ lng }) => Math.round(lng * 1e7)))
  hundredths(HAS_ACCURACY, ({ accuracy }) => accuracy)
  hundredths(HAS_ALTITUDE, ({ altitude }) => altitude)
  hundredths(HAS_SPEED, ({ speed }) => speed)
  column(Uint16Array.from(flags))
  if (trackers.length > 0) column(Uint16Array.from(tracker))
  if (kinds & HAS_HEADING) column(Uint16Array.from(points, ({ heading }) => Math.round((heading ?? 0) * 10)))
  if (kinds & HAS_BATTERY) column(Uint8Array.from(points, ({ battery }) => Math.round((battery ?? 0) * 100)))
  for (const name of trackers) parts.push(nameBytes(name))
  for (const { attributes } of points) if (attributes !== undefined) parts.push(textBytes(JSON.stringify(attributes)))
  const header = Buffer.alloc(BINARY_HEADER_BYTES)
  header.writeUInt32LE(BINARY_MAGIC, 0)
  header.writeUInt32LE(seq, 4)
  header.writeUInt32LE(points.length, 8)
  header.writeUInt16LE(kinds, 12)
  header.writeUInt16LE(trackers.length, 14)
  header.writeDoubleLE(baseTime, 16)
  return Uint8Array.from(Buffer.concat([header, ...parts]))
}

const dictionaryOf = (points: readonly BinaryPoint[]): { trackers: TrackerName[]; tracker: number[] } => {
  const places = new Map<string, number>()
  const trackers: TrackerName[] = []
  const tracker = points.map(({ trackerId, externalId }) => {
    if (trackerId === undefined && externalId === undefined) return 0
    const key = trackerId ?? `=${externalId}`
    const place = places.get(key)
    if (place !== undefined) return place
    places.set(key, trackers.length)
    return trackers.push(trackerId === undefined ? { externalId } : { trackerId }) - 1
  })
  return { trackers, tracker }
}

const flagsOf = (point: BinaryPoint): number =>
  (point.accuracy === undefined ? 0 : HAS_ACCURACY) |
  (point.altitude === undefined ? 0 : HAS_ALTITUDE) |
  (point.speed === undefined ? 0 : HAS_SPEED) |
  (point.heading === undefined ? 0 : HAS_HEADING) |
  (point.battery === undefined ? 0 : HAS_BATTERY) |
  (point.attributes === undefined ? 0 : HAS_ATTRIBUTES) |
  (point.trip === undefined ? 0 : point.trip === 'start' ? TRIP_START : TRIP_FINISH)

const textBytes = (text: string): Uint8Array => {
  const bytes = Buffer.from(text)
  return Buffer.concat([Uint8Array.of(bytes.length & 255, bytes.length >> 8), bytes])
}

const nameBytes = ({ trackerId, externalId }: TrackerName): Uint8Array => {
  if (trackerId === undefined) return Buffer.concat([Uint8Array.of(NAMED_BY_EXTERNAL_ID), textBytes(externalId ?? '')])
  const bytes = new Uint8Array(17)
  writeUuid(trackerId, bytes, 1)
  return bytes
}
