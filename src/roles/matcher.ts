import type { Decided } from '../features/transitions/events.ts'
import { ownedPartitions } from '../kit/consumers/owners.ts'
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
  const joined = await owners.join(ownedPartitions(feeds.locations, matcher, partitions))
  return {
    close: async () => {
      await joined.leave()
      await matcher.close()
    },
  }
}

const countTransitions = (metrics: Metrics, { decisions }: Decided): void => {
  for (const decision of decisions) if (decision.kind === 'transition') metrics.transitions.inc({ type: decision.type })
}
