import { createHash } from 'node:crypto'
import { locationEntry } from '../features/locations/location-entry.ts'
import { tripToken } from '../features/locations/trip-token.ts'
import { LATEST_POSITIONS, type LatestPoint, type LatestPositionRow } from '../features/locations/views.ts'
import { trackerLookups } from '../features/trackers/views.ts'
import type { Decision } from '../features/transitions/events.ts'
import { transitionShown } from '../features/transitions/views.ts'
import { tripRow, tripShown } from '../features/trips/views.ts'
import { Failure } from '../kernel/errors.ts'
import type { Follower } from '../kit/consumers/follower.ts'
import { liveChannel } from '../live/client.ts'
import { LiveHub } from '../live/hub.ts'
import { jobFeed } from '../live/job-feed.ts'
import type { LiveSources } from '../live/options.ts'
import { trackerFeed } from '../live/tracker-feed.ts'
import { FEATURES } from '../product.ts'
import { latestCheckpoint } from '../../projections/latest-restore.ts'
import type { OpenRole, RoleServices } from './role.ts'

/** Longest wait for rows of an event that was just logged. */
const STORED_LIMIT_MS = 5_000

/** The live view. Every process that serves it follows every partition. */
export const openLive: OpenRole = async (services) => {
  const { partitions, tables, clock, feeds, metrics } = services
  const hub = liveHub(services)
  metrics.beforeScrape(() => metrics.liveClients.set(hub.clientCount))
  const followers: Follower[] = [await trackerFeed(hub, tables)]
  const follow = async (partition: number): Promise<void> => {
    await feeds.transitions.add(hub.events, partition)
    await feeds.locations.add(hub.positions, partition)
  }
  await Promise.all(Array.from({ length: partitions }, (_, partition) => follow(partition)))
  followers.push(...(await Promise.all(hub.options.feeds.map((feed) => feed.follow(hub)))))
  return {
    channels: [liveChannel(hub, services.inRollout)],
    lags: () => followers.map((follower) => follower.lag(clock.now())),
    close: async () => {
      for (const follower of followers) await follower.close()
      for (let partition = 0; partition < partitions; partition++) {
        await feeds.transitions.remove(hub.events, partition)
        await feeds.locations.remove(hub.positions, partition)
      }
    },
  }
}

export const liveHub = (
  services: SourceServices & Pick<RoleServices, 'log' | 'config' | 'origin' | 'logger' | 'metrics'>,
): LiveHub => {
  const { log, config, origin, partitions, clock, logger, metrics } = services
  return new LiveHub({
    log,
    partitions,
    logMark: createHash('sha256').update(`${origin.logId}:${origin.epoch}`).digest().readUInt32BE(0),
    ages: config,
    clock,
    logger,
    onConflated: (count) => metrics.liveConflated.inc(count),
    sources: sourcesOf(services),
    feeds: [
      ...FEATURES.flatMap(({ live }) => live?.(services) ?? []),
      jobFeed(FEATURES.flatMap(({ jobViews = [] }) => jobViews)),
    ],
  })
}

type SourceServices = Pick<
  RoleServices,
  'tables' | 'history' | 'clock' | 'checkpoints' | 'keyring' | 'actions' | 'partitions' | 'settle'
>

/** Data that the live view reads from tables for a new subscription, and the form in which it shows decisions. */
const sourcesOf = ({ tables, keyring, partitions, settle }: SourceServices): LiveSources => {
  const { trackerFacts, trackersOf, factsOfTrackers } = trackerLookups(tables)
  const stored = async (isStored: Promise<boolean>): Promise<void> => {
    if (!(await isStored)) throw new Failure('engine_down', { message: 'The read models are behind.' })
  }
  return {
    latestPoints: async (organizationId) => {
      const keptUpTo = await latestCheckpoint(tables, partitions)
      return { points: latestPoints(tables, organizationId), keptUpTo }
    },
    trackers: async (organizationId, wrote) => {
      if (wrote !== undefined) await stored(settle(wrote, STORED_LIMIT_MS))
      return trackerFacts(organizationId)
    },
    factsOf: async (organizationId, { trackerIds, userIds }, wrote) => {
      await stored(settle(wrote, STORED_LIMIT_MS))
      const phones = await Promise.all(userIds.map((userId) => trackersOf(organizationId, 'userId', userId)))
      return factsOfTrackers(organizationId, [...trackerIds, ...phones.flat()])
    },
    decode: locationEntry,
    eventOf: (decision) => eventOf(decision, (trackerId, startedAt) => tripToken(keyring, trackerId, startedAt)),
  }
}

async function* latestPoints(tables: RoleServices['tables'], organizationId: string): AsyncGenerator<LatestPoint> {
  for await (const { row } of tables.scan<LatestPositionRow>(LATEST_POSITIONS.name, organizationId)) yield row
}

const eventOf = (decision: Decision, tokenOf: (trackerId: string, startedAt: number) => string): object =>
  decision.kind === 'transition'
    ? transitionShown(decision)
    : tripShown(tripRow(decision), tokenOf(decision.trackerId, decision.startedAt))
