import type { Config } from '../config.ts'
import { ShapeChecker } from '../features/geofences/shape-checker.ts'
import type { Services } from '../kit/services.ts'
import type { LiveHub } from '../live/hub.ts'
import { JobFeed } from '../live/job-feed.ts'
import { openBacktests } from './backtests.ts'
import type { openReactors } from './reactors.ts'

export interface GeofenceParts {
  config: Config
  services: Services
  hub: LiveHub
  backtestPointsMax: number | undefined
}

/** What the routes of geofences and of back-tests need beside their tables, and what does back-tests and tells of them. */
export const openGeofences = async ({ config, services, hub, backtestPointsMax }: GeofenceParts, { fences }: Awaited<ReturnType<typeof openReactors>>) => {
  const shapes = new ShapeChecker(services.clock)
  const jobs = new JobFeed(hub)
  await jobs.start()
  const backtests = await openBacktests(services, config, backtestPointsMax)
  return {
    shapes,
    waitFencesInForce: fences.waitFencesInForce.bind(fences),
    backtests: backtests.routes,
    close: async (): Promise<void> => {
      await backtests.close()
      await jobs.close()
      await shapes.close()
    },
  }
}
