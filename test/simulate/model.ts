import {
  GEOFENCE_DELETED,
  geofenceStream,
  type GeofenceChanged,
  type GeofenceCreated,
} from '../../src/features/geofences/events.ts'
import { AHEAD, type LocationEntry, locationStream } from '../../src/features/locations/events.ts'
import { locationEntry } from '../../src/features/locations/location-entry.ts'
import { decodeJson, type RecordedEvent } from '../../src/kernel/event.ts'
import { FENCES, isIn, type Reach, reachOf, type shapeOf } from './fleet.ts'
import type { MemoryLog } from './memory-log.ts'

const DEGREES_E7 = 100_000

/** What the log of points means, worked out by itself: nothing of the product but its format is used. */
export interface Expected {
  /** `<tracker> <ms since the epoch>` of every point. */
  points: Set<string>
  /** Of each tracker, when its newest point was recorded. */
  latest: Map<string, number>
  /** `<partition> <source revision> <tracker> <fence> <type> <ms since the epoch>` of every transition. */
  transitions: string[]
}

interface Tracker {
  recordedAt: number
  place: number
  within: Set<string>
}

export const expectedOf = (log: MemoryLog, partitions: number): Expected => {
  const expected: Expected = { points: new Set(), latest: new Map(), transitions: [] }
  for (let partition = 0; partition < partitions; partition++) {
    const model = new PartitionModel(log, partition, expected)
    for (const event of log.everything(locationStream(partition))) model.take(event)
  }
  return expected
}

class PartitionModel {
  private readonly log: MemoryLog
  private readonly partition: number
  private readonly expected: Expected
  private readonly trackers = new Map<string, Tracker>()
  /** Without a reach: inactive, or deleted. */
  private readonly fences = new Map<string, { reach: Reach | undefined; revision: number }>()

  constructor(log: MemoryLog, partition: number, expected: Expected) {
    this.log = log
    this.partition = partition
    this.expected = expected
  }

  take(event: RecordedEvent): void {
    const entry = locationEntry(event, this.partition)
    if (entry.kind === 'points') this.takePoints(entry)
    if (entry.kind === 'trackerDeleted') this.forget(entry, entry.deletion.trackerId)
    if (entry.kind !== 'fencesChanged') return
    for (const { geofenceId, revision } of entry.change.geofences) {
      const known = this.fences.get(geofenceId)
      if (known !== undefined && known.revision >= revision) continue
      this.fences.set(geofenceId, { reach: this.reachAt(geofenceId, revision), revision })
      for (const [trackerId, tracker] of this.trackers) this.decide(entry, trackerId, tracker, geofenceId)
    }
  }

  private takePoints(entry: LocationEntry & { kind: 'points' }): void {
    const { batch } = entry
    for (let i = 0; i < batch.count; i++) {
      const { trackerId } = batch.trackers[batch.tracker[i]]
      const recordedAt = batch.recordedAt[i]
      this.expected.points.add(`${trackerId} ${recordedAt}`)
      if ((batch.flags[i] & AHEAD) !== 0) continue
      const known = this.trackers.get(trackerId)
      if (known !== undefined && recordedAt <= known.recordedAt) continue
      const tracker = known ?? { recordedAt, place: 0, within: new Set<string>() }
      tracker.recordedAt = recordedAt
      tracker.place = Math.round(batch.lng[i] / DEGREES_E7)
      this.trackers.set(trackerId, tracker)
      this.expected.latest.set(trackerId, recordedAt)
      for (const geofenceId of this.fences.keys()) this.decide(entry, trackerId, tracker, geofenceId)
    }
  }

  /** It leaves where it was, and begins anew if it comes back. */
  private forget(entry: LocationEntry, trackerId: string): void {
    const tracker = this.trackers.get(trackerId)
    this.trackers.delete(trackerId)
    this.expected.latest.delete(trackerId)
    for (const geofenceId of tracker?.within ?? []) this.tell(entry, trackerId, tracker!, geofenceId, 'leave')
  }

  private decide(entry: LocationEntry, trackerId: string, tracker: Tracker, geofenceId: string): void {
    const { reach } = this.fences.get(geofenceId)!
    const isWithin = reach !== undefined && isIn(tracker.place, reach)
    if (isWithin === tracker.within.has(geofenceId)) return
    if (isWithin) tracker.within.add(geofenceId)
    else tracker.within.delete(geofenceId)
    this.tell(entry, trackerId, tracker, geofenceId, isWithin ? 'entry' : 'leave')
  }

  private tell(
    entry: LocationEntry,
    trackerId: string,
    { recordedAt }: Tracker,
    geofenceId: string,
    type: string,
  ): void {
    const { revision } = entry
    const key = `${this.partition} ${revision} ${trackerId} ${FENCES.indexOf(geofenceId)} ${type} ${recordedAt}`
    this.expected.transitions.push(key)
  }

  private reachAt(geofenceId: string, revision: number): Reach | undefined {
    let reach: Reach | undefined
    let isActive = true
    for (const { type, data: bytes } of this.log.read(geofenceStream(geofenceId), 0, revision + 1)) {
      if (type === GEOFENCE_DELETED) return undefined
      const data = decodeJson<Partial<GeofenceCreated & GeofenceChanged>>(bytes)
      const shape = data.shape ?? data.changes?.shape
      if (shape !== undefined) reach = reachOf(shape as ReturnType<typeof shapeOf>)
      isActive = data.isActive ?? data.changes?.isActive ?? isActive
    }
    return isActive ? reach : undefined
  }
}
