import { createHash } from 'node:crypto'
import {
  HAS_ATTRIBUTES,
  partitionOf,
  type LocationEntry,
  type PointBatch,
} from '../../src/features/locations/events.ts'

/** A point as plain as can be, for computing in memory what the engine should answer. */
export interface PlainPoint {
  organizationId: string
  trackerId: string
  recordedAt: number
  latE7: number
  lngE7: number
  flags: number
  accuracyCm?: number
  altitudeCm?: number
  speedCms?: number
  headingTenths?: number
  batteryPercent?: number
  attributes?: string
}

/** A UUID that follows from a text, for data whose ids are none. */
export const uuidOf = (text: string): string =>
  createHash('sha256')
    .update(text)
    .digest('hex')
    .replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-7$3-8$4-$5')

/** The points as a log of `partitions` would hold them: batches of at most `batchMax` that came together. */
export const entriesOf = (
  points: readonly PlainPoint[],
  partitions = 16,
  batchMax = 1_000,
  windowMs = 1_000,
): LocationEntry[] => {
  const entries: LocationEntry[] = []
  const revisions = new Map<number, number>()
  const emit = (group: PlainPoint[]): void => {
    const byPartition = new Map<number, PlainPoint[]>()
    for (const point of group) {
      const partition = partitionOf(point.trackerId, partitions)
      byPartition.set(partition, [...(byPartition.get(partition) ?? []), point])
    }
    for (const [partition, members] of byPartition) {
      const revision = revisions.get(partition) ?? 0
      revisions.set(partition, revision + 1)
      entries.push({ partition, revision, position: entries.length, kind: 'points', batch: batchOf(members) })
    }
  }
  let group: PlainPoint[] = []
  for (const point of points) {
    if (
      group.length === batchMax ||
      (group.length > 0 && Math.abs(point.recordedAt - group[0].recordedAt) > windowMs)
    ) {
      emit(group)
      group = []
    }
    group.push(point)
  }
  if (group.length > 0) emit(group)
  return entries
}

/** One batch, sorted and without repeats, as the door makes it. */
export const batchOf = (
  points: readonly PlainPoint[],
  loggedAt = Math.max(...points.map(({ recordedAt }) => recordedAt)),
): PointBatch => {
  const first = new Map<string, PlainPoint>()
  for (const point of points) {
    const key = `${point.organizationId}|${point.trackerId}|${point.recordedAt}`
    if (!first.has(key)) first.set(key, point)
  }
  const sorted = [...first.values()].sort((a, b) =>
    a.trackerId < b.trackerId ? -1 : a.trackerId > b.trackerId ? 1 : a.recordedAt - b.recordedAt,
  )
  const ids = [...new Set(sorted.map(({ trackerId }) => trackerId))]
  const column = <A extends ArrayLike<number>>(
    from: (values: number[]) => A,
    value: (point: PlainPoint) => number,
  ): A => from(sorted.map(value))
  return {
    loggedAt,
    count: sorted.length,
    trackers: ids.map((trackerId) => ({
      trackerId,
      organizationId: sorted.find((point) => point.trackerId === trackerId)!.organizationId,
    })),
    tracker: column(
      (values) => Uint16Array.from(values),
      ({ trackerId }) => ids.indexOf(trackerId),
    ),
    recordedAt: column(
      (values) => Float64Array.from(values),
      ({ recordedAt }) => recordedAt,
    ),
    lat: column(
      (values) => Int32Array.from(values),
      ({ latE7 }) => latE7,
    ),
    lng: column(
      (values) => Int32Array.from(values),
      ({ lngE7 }) => lngE7,
    ),
    flags: column(
      (values) => Uint16Array.from(values),
      ({ flags, attributes }) => flags | (attributes === undefined ? 0 : HAS_ATTRIBUTES),
    ),
    accuracy: column(
      (values) => Int32Array.from(values),
      ({ accuracyCm }) => accuracyCm ?? 0,
    ),
    altitude: column(
      (values) => Int32Array.from(values),
      ({ altitudeCm }) => altitudeCm ?? 0,
    ),
    speed: column(
      (values) => Int32Array.from(values),
      ({ speedCms }) => speedCms ?? 0,
    ),
    heading: column(
      (values) => Uint16Array.from(values),
      ({ headingTenths }) => headingTenths ?? 0,
    ),
    battery: column(
      (values) => Uint8Array.from(values),
      ({ batteryPercent }) => batteryPercent ?? 0,
    ),
    attributes: new Map(
      sorted.flatMap(({ attributes }, place) => (attributes === undefined ? [] : [[place, attributes] as const])),
    ),
  }
}
