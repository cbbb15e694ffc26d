import type { Feature } from '../../feature.ts'
import { tileRoutes } from './api.ts'
import { openBaseMap } from './base-map.ts'

export const tiles: Feature = {
  routes: ({ config }) => tileRoutes(openBaseMap(), config.mapPath),
}
