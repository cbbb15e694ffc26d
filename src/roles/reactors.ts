import type { Config } from '../config.ts'
import type { LogOrigin } from '../kit/consumers/log-origin.ts'
import type { Settle } from '../kit/consumers/settle.ts'
import type { Services } from '../kit/services.ts'
import { announceDeletions } from '../reactors/announce/deletions.ts'
import { announceFences } from '../reactors/announce/fences.ts'
import { takeOutReferences } from '../reactors/references/take-out.ts'
import { resources } from './resources.ts'

/** What follows the whole log and answers with commands. */
export const openReactors = async (config: Config, services: Services, origin: LogOrigin, settle: Settle) => {
  const rollout = config.geofenceRollout === '*' ? '*' : [...config.geofenceRollout]
  const fences = await announceFences(services, { tripStopMs: config.tripStopMs, tripGapMs: config.tripGapMs, rollout })
  const deletions = await announceDeletions(services, origin.epoch)
  const references = takeOutReferences({ ...services, resources, settle })
  return {
    close: async (): Promise<void> => {
      await fences.close()
      await deletions.close()
      await references.close()
    },
  }
}
