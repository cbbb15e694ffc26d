import type { Feature } from '../../feature.ts'
import { ownShares } from '../../kit/http/own-share.ts'
import { trackerLookups } from '../trackers/views.ts'
import { transitionRoutes } from './api.ts'
import { TRANSITION, TRANSITION_EXAMPLE } from './schemas.ts'

export const transitions: Feature = {
  routes: ({ tables, history }) => transitionRoutes({ history: ownShares(history), ...trackerLookups(tables) }),
  liveEvents: [
    { channel: 'geofence', description: 'An entry or a leave.', schema: TRANSITION, examples: [TRANSITION_EXAMPLE] },
  ],
}
