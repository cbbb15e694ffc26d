import { eventsOf } from '../engines/event-log.ts'
import type { Checkpoint } from '../engines/table-store.ts'
import { locationStream } from '../features/locations/events.ts'
import { breathe } from '../kernel/breath.ts'
import type { Wrote } from '../kit/http/route.ts'
import { applyEntry } from './apply-entry.ts'
import { Fleet } from './fleet.ts'
import type { HubOptions } from './options.ts'
import type { LiveOrganization } from './organization.ts'

/**
 * Fills the fleet of an organization that gets its first viewer. `handled`: the revision of each partition through
 * which entries passed before; later ones reach the organization by themselves. Earlier state is put together apart
 * from them: a deletion in it must not forget a tracker that was made again since. `trackersWrote`: known writes of
 * trackers that may not be stored yet.
 */
export const loadOrganization = async (
  { sources, log, ages }: HubOptions,
  organizationId: string,
  organization: LiveOrganization,
  handled: readonly number[],
  trackersWrote: Wrote | undefined,
): Promise<void> => {
  const { fleet, deletedWhileLoading } = organization
  const before = new Fleet(ages, () => false)
  const learnTrackers = async (): Promise<void> => {
    for await (const { trackerId, facts } of await sources.trackers(organizationId, trackersWrote))
      fleet.knowUnlessKnown(trackerId, facts)
  }
  const readPoints = async (): Promise<Checkpoint> => {
    const { points, keptUpTo } = await sources.latestPoints(organizationId)
    for await (const point of points) before.move(point)
    return keptUpTo
  }
  // Beside each other: on a busy machine, each page of either waits long for its answer.
  const [keptUpTo] = await Promise.all([readPoints(), learnTrackers()])
  // Rows are stored about once a second: entries in between are in the log.
  await Promise.all(
    handled.map(async (last, partition) => {
      for await (const event of eventsOf(log, locationStream(partition), (keptUpTo[partition] ?? -1) + 1, last)) {
        await breathe()
        applyEntry(organizationId, before, sources.decode(event, partition))
      }
    }),
  )
  for (let slot = 0; slot < before.size; slot++) {
    await breathe()
    const point = before.pointAt(slot)
    if (point !== undefined && !deletedWhileLoading.has(point.trackerId)) fleet.move(point)
  }
  deletedWhileLoading.clear()
  organization.isLoaded = true
}
