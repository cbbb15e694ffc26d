import type { Route } from '../../kit/route.ts'
import type { Services } from '../../kit/services.ts'
import { trackerRoutes } from './api.ts'
import { DeviceAuthenticator } from './device-authenticator.ts'
import { ingestKeyRoutes } from './ingest-key-api.ts'
import { KnownTrackers } from './known-trackers.ts'
import type { StatusAges } from './status.ts'
import type { LastSeen } from './tracker-list.ts'
import { TrackerQuota } from './tracker-quota.ts'
import { TrackerWriter } from './tracker-writer.ts'
import { watchTrackers, type DeviceAccessChange } from './watch-trackers.ts'

export interface TrackersConfig {
  /** Of one organization. */
  trackersMax: number
  ages: StatusAges
  /** Where the points of a tracker go. */
  partitionOf: (trackerId: string) => number
  lastSeen: LastSeen
}

/** What of trackers lives in this process: routes, known trackers, credentials. */
export interface Trackers {
  writer: TrackerWriter
  known: KnownTrackers
  devices: DeviceAuthenticator
  routes: Route[]
  /** Keeps memory right by the log from now on; resolves once it listens. */
  watch(onAccessChanged: (change: DeviceAccessChange) => void, signal: AbortSignal): Promise<{ ended: Promise<void> }>
}

export const trackersContext = (services: Pick<Services, 'log' | 'tables' | 'keyring' | 'clock'>, config: TrackersConfig): Trackers => {
  const { log, tables, keyring, clock } = services
  const quota = new TrackerQuota(tables, clock, config.trackersMax)
  const writer = new TrackerWriter(services, quota)
  const known = new KnownTrackers({ tables, writer, clock, partitionOf: config.partitionOf })
  const devices = new DeviceAuthenticator(tables, keyring)
  return {
    writer,
    known,
    devices,
    routes: [...trackerRoutes({ tables, writer, lastSeen: config.lastSeen, ages: config.ages }), ...ingestKeyRoutes(services)],
    watch: (onAccessChanged, signal) => watchTrackers({ log, known, devices, quota, onAccessChanged }, signal),
  }
}
