import { Batcher, BATCHER_LIMITS } from '../features/locations/ingest/batcher.ts'
import { bulkRoute } from '../features/locations/ingest/bulk-api.ts'
import { ingestChannel } from '../features/locations/ingest/channel.ts'
import { PointStore } from '../features/locations/ingest/store.ts'
import { partitionOf } from '../features/locations/events.ts'
import { KnownTrackers } from '../features/trackers/known-trackers.ts'
import { TrackerWriter } from '../features/trackers/tracker-writer.ts'
import { watchTrackers } from '../features/trackers/watch-trackers.ts'
import type { OpenRole } from './role.ts'

const DAY_MS = 86_400_000
const CLOSE_MS = 10_000

/** The door for points: who they are of, and how they get into the log. */
export const openIngress: OpenRole = async (services) => {
  const { config, tables, clock, logger, keyring, partitions, metrics, feeds } = services
  const known = new KnownTrackers({
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
    resolver: known,
    clock,
    retentionMs: config.locationHistoryDays * DAY_MS,
    logger,
    count: (result, points) => metrics.points.inc({ result }, points),
  })
  const watching = await watchTrackers(services, 'ingress-trackers', { known })
  return {
    routes: [bulkRoute(store, keyring)],
    channels: [ingestChannel(store)],
    drain: () => batcher.close(CLOSE_MS),
    close: () => watching.close(),
  }
}
