import type { Decided } from '../features/transitions/events.ts'
import { type Owned, ownedPartitions } from '../kit/consumers/owners.ts'
import type { Metrics } from '../kit/operations/metrics.ts'
import { GeofenceMatcher } from '../reactors/matcher/match-geofences.ts'
import type { OpenRole } from './role.ts'

/** Turns points into decisions: geofences and trips. */
export const openMatcher: OpenRole = async (services) => {
  const { logger, metrics, feeds, owners, partitions } = services
  const matcher = new GeofenceMatcher(services, {
    onDecided: (partition, revision, position, decided) => {
      countTransitions(metrics, decided)
      feeds.transitions.offer(partition, revision, decided.sourceLoggedAt, { revision, position, decided })
    },
    onFailure: (partition, error) => logger.error('matcher failed', { partition, error: String(error) }),
  })
  const taking = new Set<number>()
  const parts = ownedPartitions(feeds.locations, matcher, partitions)
  const joined = await owners.join(parts.map((part, partition) => noted(part, partition, taking)))
  return {
    // The feed knows no lag of a partition before its state is there.
    lags: () =>
      [...taking].map((partition) => ({
        consumer: matcher.name,
        partition: String(partition),
        events: 1,
        seconds: 0,
      })),
    close: async () => {
      await joined.leave()
      await matcher.close()
    },
  }
}

/** The part, whose partition is among `taking` until it is taken. */
const noted = (part: Owned, partition: number, taking: Set<number>): Owned => ({
  ...part,
  take: async (isOurs) => {
    taking.add(partition)
    await part.take(isOurs)
    taking.delete(partition)
  },
  leave: () => {
    taking.delete(partition)
    return part.leave()
  },
})

const countTransitions = (metrics: Metrics, { decisions }: Decided): void => {
  for (const decision of decisions) if (decision.kind === 'transition') metrics.transitions.inc({ type: decision.type })
}
