import { locationStream } from '../features/locations/events.ts'
import { breathe } from '../kernel/breath.ts'
import { applyEntry } from './apply-entry.ts'
import type { HubOptions } from './hub-options.ts'
import type { LiveOrganization } from './organization.ts'

/**
 * Fills the fleet of an organization that somebody begins to look at. `handled`: the revision of each partition up to
 * which entries went by before; later ones reach the organization by themselves.
 */
export const loadOrganization = async (
  { sources, log }: HubOptions,
  organizationId: string,
  organization: LiveOrganization,
  handled: readonly number[],
): Promise<void> => {
  for await (const { trackerId, facts } of sources.trackers(organizationId)) organization.fleet.knowUnlessKnown(trackerId, facts)
  const { points, keptUpTo } = await sources.latestPoints(organizationId)
  for await (const point of points) if (!organization.deletedWhileLoading.has(point.trackerId)) organization.fleet.move(point)
  // Rows are kept about once a second: what came between is in the log.
  for (let partition = 0; partition < handled.length; partition++) {
    for (let revision = (keptUpTo[partition] ?? handled[partition]) + 1; revision <= handled[partition]; revision++) {
      await breathe()
      const [event] = await log.read(locationStream(partition), revision, 1)
      if (event === undefined) break
      if (event.revision <= handled[partition]) applyEntry(organizationId, organization, sources.decode(event, partition))
      revision = event.revision
    }
  }
  organization.deletedWhileLoading.clear()
  organization.isLoaded = true
}
