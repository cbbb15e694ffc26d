import { shareTokens } from '../../../projections/shares.ts'
import type { Feature } from '../../feature.ts'
import { shareRoutes } from './api.ts'
import { followRoutes } from './follow-api.ts'
import { FOLLOW_BLOCKS, Guesses } from './guesses.ts'
import { Roads } from './roads.ts'
import { share } from './share.ts'
import { Tracks } from './track.ts'

export const shares: Feature = {
  resources: [share],
  projections: [shareTokens],
  tables: [FOLLOW_BLOCKS],
  routes: (services) => {
    const { travelTimes, clock } = services
    const roads = travelTimes && new Roads(travelTimes, clock)
    const parts = { tracks: new Tracks(services), guesses: new Guesses(services), ...(roads && { roads }) }
    return [...shareRoutes(services), ...followRoutes({ ...services, ...parts })]
  },
}
