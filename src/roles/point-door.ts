import { DevicePoints } from '../features/devices/device-points.ts'
import { partitionOf } from '../features/locations/events.ts'
import { Batcher, BATCHER_LIMITS } from '../features/locations/ingest/batcher.ts'
import { PointStore } from '../features/locations/ingest/store.ts'
import { phoneTrackerIdOf, trackerIdOf } from '../features/trackers/declaration.ts'
import { KnownTrackers } from '../features/trackers/known-trackers.ts'
import { RejectedPointCounts } from '../features/trackers/rejected-points.ts'
import { TrackerWriter } from '../features/trackers/tracker-writer.ts'
import { watchTrackers } from '../features/trackers/watch-trackers.ts'
import type { Caller, IngestKeyCaller } from '../kernel/caller.ts'
import type { RoleServices } from './role.ts'

const DAY_MS = 86_400_000
const CLOSE_MS = 10_000

/** A process's only entrance for points: its roles share it, so that each partition has one append in flight. */
export interface PointDoor {
  store: PointStore
  devices: DevicePoints
  /** Code that refuses points of that name; undefined if their tracker exists or was created, as the key allows. */
  admits(caller: IngestKeyCaller, name: string): Promise<string | undefined>
  drain(): Promise<void>
  close(): Promise<void>
}

const doors = new WeakMap<object, Promise<PointDoor>>()

/** Opened by the first role that takes points, closed by the last. */
export const openPointDoor = async (services: RoleServices): Promise<PointDoor> => {
  const { feeds } = services
  const opened = doors.get(feeds) ?? openDoor(services)
  doors.set(feeds, opened)
  return opened
}

const openDoor = async (services: RoleServices): Promise<PointDoor> => {
  const { config, tables, clock, logger, partitions, metrics, feeds } = services
  const trackers = new KnownTrackers({
    tables,
    writer: new TrackerWriter(services),
    clock,
    partitionOf: (trackerId) => partitionOf(trackerId, partitions),
  })
  const batcher = new Batcher({
    ...services,
    limits: { ...BATCHER_LIMITS, organizationPointsPerSecond: config.orgPointsPerSecond },
    onAppended: (entry) => {
      const { loggedAt, count } = entry.kind === 'points' ? entry.batch : { loggedAt: clock.now(), count: 1 }
      feeds.locations.offer(entry.partition, entry.revision, loggedAt, entry, count)
    },
    startAppendTimer: () => metrics.appendSeconds.startTimer(),
  })
  const store = new PointStore({
    batcher,
    resolver: trackers,
    clock,
    retentionMs: config.locationHistoryDays * DAY_MS,
    logger,
    count: (result, points) => metrics.points.inc({ result }, points),
  })
  const devices = new DevicePoints({ store, refused: new RejectedPointCounts(services), trackerIdOf: trackerMeant })
  const watching = await watchTrackers(services, 'ingress-trackers', { known: trackers })
  let draining: Promise<void> | undefined
  let closing: Promise<void> | undefined
  return {
    store,
    devices,
    admits: async (caller, name) => {
      const known =
        trackers.known(caller, undefined, name) ?? (await trackers.resolve(caller, [{ externalId: name }]))[0]
      return typeof known === 'string' ? known : undefined
    },
    drain: () => (draining ??= batcher.close(CLOSE_MS)),
    close: () => (closing ??= watching.close()),
  }
}

const trackerMeant = (caller: Caller, name: string | undefined): string | undefined => {
  if (caller.kind === 'tracker') return caller.trackerId
  if (caller.kind === 'user') return phoneTrackerIdOf(caller.userId)
  return name === undefined ? undefined : trackerIdOf(caller.organizationId, name)
}
