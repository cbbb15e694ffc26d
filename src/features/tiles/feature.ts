import type { Feature } from '../../feature.ts'
import { trackerLookups } from '../trackers/views.ts'
import { tileRoutes, traceRoutes } from './api.ts'
import { openBaseMap } from './base-map.ts'

export const tiles: Feature = {
  routes: ({ config, tables, history }) => [
    ...tileRoutes(openBaseMap(), config.mapPath),
    ...traceRoutes({ history, visibleTrackers: trackerLookups(tables).locatedTrackers, gapMs: config.tripGapMs }),
  ],
}
