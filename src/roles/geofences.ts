import type { Config } from '../config.ts'
import { ShapeChecker } from '../features/geofences/shape-checker.ts'
import type { Services } from '../kit/services.ts'
import { openBacktests } from './backtests.ts'

export interface GeofenceParts {
  config: Config
  services: Services
  backtestPointsMax: number | undefined
}

/** What the routes of geofences and of back-tests need beside their tables, and what does back-tests. */
export const openGeofences = async ({ config, services, backtestPointsMax }: GeofenceParts) => {
  const shapes = new ShapeChecker(services.clock)
  const backtests = await openBacktests(services, config, backtestPointsMax)
  return {
    shapes,
    backtests: backtests.routes,
    close: async (): Promise<void> => {
      await backtests.close()
      await shapes.close()
    },
  }
}
