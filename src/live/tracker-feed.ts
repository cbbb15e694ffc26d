import type { TableStore } from '../engines/table-store.ts'
import { TRACKER_STREAMS } from '../features/trackers/events.ts'
import { decodeJson, type RecordedEvent } from '../kernel/event.ts'
import { idOfStream } from '../kit/commands/declared-event.ts'
import { allWrote } from '../kit/commands/wrote.ts'
import { Follower } from '../kit/consumers/follower.ts'
import { DIRECTORY } from '../kit/consumers/projection.ts'
import type { Wrote } from '../kit/http/route.ts'
import type { LiveHub } from './hub.ts'

/** A user's hubs are those of their phone. */
const USER_STREAMS = 'user-'

/**
 * Updates the live view for trackers made, renamed, moved or deleted by any process. It begins where the tables end, which may be
 * behind the log: the first viewer reads them.
 */
export const trackerFeed = async (
  hub: LiveHub,
  tables: Pick<TableStore, 'checkpoint' | 'onLoss'>,
): Promise<Follower> => {
  // Trackers that were asked for between a loss and their return to the tables are missing, and nobody would tell of them.
  tables.onLoss(() => hub.startAnew())
  const { sources } = hub.options
  const newest = new Map<string, number>()
  const tellEach = async (events: readonly RecordedEvent[], wrote: Wrote): Promise<void> => {
    for (const [organizationId, own] of byOrganization(events)) {
      if (!hub.isWatched(organizationId)) continue
      const ids = (prefix: string): string[] => [
        ...new Set(own.filter(({ stream }) => stream.startsWith(prefix)).map(({ stream }) => idOfStream(stream))),
      ]
      const changed = { trackerIds: ids(TRACKER_STREAMS), userIds: ids(USER_STREAMS) }
      const gone = new Set(changed.trackerIds)
      for (const { trackerId, facts } of await sources.factsOf(organizationId, changed, wrote)) {
        gone.delete(trackerId)
        hub.trackerChanged(organizationId, trackerId, facts)
      }
      for (const trackerId of gone) hub.trackerGone(organizationId, trackerId)
    }
  }
  return new Follower(hub.options, {
    name: 'live-trackers',
    source: { prefixes: [TRACKER_STREAMS, USER_STREAMS] },
    handle: async ({ events }) => {
      for (const { type, position } of events) newest.set(type, position)
      // Before anything is awaited: a new viewer reads the stored rows of these.
      hub.trackersWrote = allWrote(...[...newest].map(([type, position]) => ({ position, types: [type] })))
      if (hub.trackersWrote !== undefined) await tellEach(events, hub.trackersWrote)
      return undefined
    },
  }).startBehindRows(tables, DIRECTORY)
}

const byOrganization = (events: readonly RecordedEvent[]): Map<string, RecordedEvent[]> => {
  const organizations = new Map<string, RecordedEvent[]>()
  for (const event of events) {
    const organizationId =
      event.metadata.organizationId ?? decodeJson<{ organizationId?: string }>(event.data).organizationId
    if (organizationId === undefined) continue
    const own = organizations.get(organizationId)
    if (own === undefined) organizations.set(organizationId, [event])
    else own.push(event)
  }
  return organizations
}
