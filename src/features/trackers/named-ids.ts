import { breathe } from '../../kernel/breath.ts'
import { trackerIdOf } from './declaration.ts'
import type { TrackerName } from './views.ts'

/** Present or future ids of named trackers. Some thousands of hashes take a while, so others get turns in between. */
export const idsOf = async (organizationId: string, names: readonly TrackerName[]): Promise<string[]> => {
  const ids: string[] = []
  for (const name of names) {
    const pause = breathe()
    if (pause !== undefined) await pause
    ids.push(idOf(organizationId, name))
  }
  return ids
}

/** By its id in any case, or by the organization's name for it. */
const idOf = (organizationId: string, { trackerId, externalId }: TrackerName): string =>
  trackerId !== undefined ? trackerId.toLowerCase() : trackerIdOf(organizationId, externalId ?? '')
