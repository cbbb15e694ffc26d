import type { Config } from '../config.ts'
import type { LogOrigin } from '../kit/consumers/log-origin.ts'
import type { Services } from '../kit/services.ts'
import { announceDeletions } from '../reactors/announce/deletions.ts'
import { announceFences } from '../reactors/announce/fences.ts'

/** What follows the whole log and answers with commands. */
export const openReactors = async (config: Config, services: Services, origin: LogOrigin) => {
  const rollout = config.geofenceRollout === '*' ? '*' : [...config.geofenceRollout]
  const fences = await announceFences(services, { tripStopMs: config.tripStopMs, tripGapMs: config.tripGapMs, rollout })
  const deletions = await announceDeletions(services, origin.epoch)
  return {
    close: async (): Promise<void> => {
      await fences.close()
      await deletions.close()
    },
  }
}
