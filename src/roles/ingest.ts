import type { Config } from '../config.ts'
import { Batcher, BATCHER_LIMITS } from '../features/locations/ingest/batcher.ts'
import { partitionOf, type LocationEntry } from '../features/locations/events.ts'
import { Ingest } from '../features/locations/ingest/ingest.ts'
import { DeviceAuthenticator } from '../features/trackers/device-authenticator.ts'
import { KnownTrackers } from '../features/trackers/known-trackers.ts'
import { TrackerQuota } from '../features/trackers/tracker-quota.ts'
import { TrackerWriter } from '../features/trackers/tracker-writer.ts'
import type { Metrics } from '../kit/operations/metrics.ts'
import type { PartitionFeed } from '../kit/consumers/partition-feed.ts'
import type { Settle } from '../kit/consumers/settle.ts'
import type { Services } from '../kit/services.ts'
import { resources } from './resources.ts'

const DAY_MS = 86_400_000

/** The door for points: who they are of, and how they get into the log. */
export const openIngest = (
  config: Config,
  services: Services,
  metrics: Metrics,
  feed: PartitionFeed<LocationEntry>,
  settle: Settle,
) => {
  const { log, tables, clock, logger, keyring, partitions } = services
  const quota = new TrackerQuota(tables, clock, config.trackersMax)
  const writer = new TrackerWriter({ ...services, settle, resources }, quota)
  const known = new KnownTrackers({
    tables,
    writer,
    clock,
    partitionOf: (trackerId) => partitionOf(trackerId, partitions),
  })
  const batcher = new Batcher({
    log,
    clock,
    logger,
    partitions,
    limits: { ...BATCHER_LIMITS, organizationPointsPerSecond: config.orgPointsPerSecond },
    onAppended: (entry) => {
      const { loggedAt, count } = entry.kind === 'points' ? entry.batch : { loggedAt: clock.now(), count: 1 }
      feed.offer(entry.partition, entry.revision, loggedAt, entry, count)
    },
    startAppendTimer: () => metrics.appendSeconds.startTimer(),
  })
  const ingest = new Ingest({
    batcher,
    resolver: known,
    clock,
    retentionMs: config.locationHistoryDays * DAY_MS,
    logger,
    count: (result, points) => metrics.points.inc({ result }, points),
  })
  return { quota, writer, known, batcher, ingest, devices: new DeviceAuthenticator(tables, keyring) }
}

export type IngestParts = ReturnType<typeof openIngest>
