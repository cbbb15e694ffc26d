import type { Feature } from '../../feature.ts'
import { ownShares } from '../../kit/http/own-share.ts'
import { statusAt } from '../trackers/status.ts'
import { trackerLookups } from '../trackers/views.ts'
import { historyRoutes } from './history/api.ts'
import { livePositionsRoute } from './live-positions-api.ts'

export const locations: Feature = {
  routes: ({ tables, history, config }) => [
    livePositionsRoute({ tables, statusAt: (seenAt, now) => statusAt(seenAt, now, config) }),
    ...historyRoutes({
      history: ownShares(history),
      ...trackerLookups(tables),
      visibleTrackers: trackerLookups(tables).locatedTrackers,
    }),
  ],
}
