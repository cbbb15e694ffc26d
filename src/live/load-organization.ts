import { locationStream } from '../features/locations/events.ts'
import { breathe } from '../kernel/breath.ts'
import { applyEntry } from './apply-entry.ts'
import { Fleet } from './fleet.ts'
import type { HubOptions } from './hub-options.ts'
import type { LiveOrganization } from './organization.ts'

/**
 * Fills the fleet of an organization that somebody begins to look at. `handled`: the revision of each partition up to
 * which entries went by before; later ones reach the organization by themselves. What was before is put together apart
 * from them: a deletion in it must not forget a tracker that was made anew since.
 */
export const loadOrganization = async (
  { sources, log, ages }: HubOptions,
  organizationId: string,
  organization: LiveOrganization,
  handled: readonly number[],
): Promise<void> => {
  const { fleet, deletedWhileLoading } = organization
  for await (const { trackerId, facts } of sources.trackers(organizationId)) fleet.knowUnlessKnown(trackerId, facts)
  const before = new Fleet(ages)
  const { points, keptUpTo } = await sources.latestPoints(organizationId)
  for await (const point of points) before.move(point)
  // Rows are kept about once a second: what came between is in the log.
  for (let partition = 0; partition < handled.length; partition++) {
    for (let revision = (keptUpTo[partition] ?? -1) + 1; revision <= handled[partition]; revision++) {
      await breathe()
      const [event] = await log.read(locationStream(partition), revision, 1)
      if (event === undefined) break
      if (event.revision <= handled[partition]) applyEntry(organizationId, before, sources.decode(event, partition))
      revision = event.revision
    }
  }
  for (let slot = 0; slot < before.size; slot++) {
    await breathe()
    const { trackerId, point } = before.unit(slot)
    if (point !== undefined && !deletedWhileLoading.has(trackerId)) fleet.move(point)
  }
  deletedWhileLoading.clear()
  organization.isLoaded = true
}
