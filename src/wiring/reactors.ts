import type { Config } from '../config.ts'
import type { LogOrigin } from '../kit/consumers/log-origin.ts'
import type { Services } from '../kit/services.ts'
import { DeletionAnnouncer } from '../reactors/announce/deletions.ts'
import { FenceAnnouncer } from '../reactors/announce/fences.ts'

/** What follows the whole log and answers with commands. */
export const openReactors = async (config: Config, services: Services, origin: LogOrigin) => {
  const failed = (reactor: string) => (error: unknown) =>
    services.logger.error('reactor failed', { reactor, error: String(error) })
  const fences = new FenceAnnouncer(services, failed('announce-fences'))
  const deletions = new DeletionAnnouncer(services, origin.epoch, failed('announce-deletions'))
  const rollout = config.geofenceRollout === '*' ? '*' : [...config.geofenceRollout]
  await fences.start({ tripStopMs: config.tripStopMs, tripGapMs: config.tripGapMs, rollout })
  await deletions.start()
  return {
    fences,
    deletions,
    close: async (): Promise<void> => {
      await fences.close()
      await deletions.close()
    },
  }
}
