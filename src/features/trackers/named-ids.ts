import { breathe } from '../../kernel/breath.ts'
import { trackerIdOf } from './declaration.ts'
import type { TrackerName } from './views.ts'

/** The ids that trackers of these names have or would have. Some thousands of hashes take a while, which others get in between. */
export const idsOf = async (organizationId: string, names: readonly TrackerName[]): Promise<string[]> => {
  const ids: string[] = []
  for (const name of names) {
    const pause = breathe()
    if (pause !== undefined) await pause
    ids.push(idOf(organizationId, name))
  }
  return ids
}

/** By its id in any case, or by what the organization calls it. */
const idOf = (organizationId: string, { trackerId, externalId }: TrackerName): string =>
  trackerId !== undefined ? trackerId.toLowerCase() : trackerIdOf(organizationId, externalId ?? '')
