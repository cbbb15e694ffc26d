import type { Checkpoint } from '../engines/table-store.ts'
import type { LocationEntry } from '../features/locations/events.ts'
import type { LatestPoint } from '../features/locations/views.ts'
import type { StatusAges } from '../features/trackers/status.ts'
import type { TrackerFacts } from '../features/trackers/views.ts'
import type { Decided } from '../features/transitions/events.ts'
import type { RecordedEvent } from '../kernel/event.ts'
import type { Wrote } from '../kit/http/route.ts'
import type { FeedOptions, LiveFeed } from './feed.ts'

export interface NamedTracker {
  trackerId: string
  facts: TrackerFacts
}

/** Where the live view takes what it cannot hear: what was there before, and what trackers are called. */
export interface LiveSources {
  /** The rows of the latest positions, and up to where of each partition they had been kept before they were read. */
  latestPoints(organizationId: string): Promise<{ points: AsyncIterable<LatestPoint>; keptUpTo: Checkpoint }>
  /** Every tracker, once what was written is stored (undefined: as it is). @throws Failure engine_down */
  trackers(organizationId: string, wrote: Wrote | undefined): Promise<AsyncIterable<NamedTracker>>
  /** These trackers and the phones of these users, where they are there; as `trackers`. */
  factsOf(
    organizationId: string,
    changed: { trackerIds: readonly string[]; userIds: readonly string[] },
    wrote: Wrote,
  ): Promise<readonly NamedTracker[]>
  decode(event: RecordedEvent, partition: number): LocationEntry
  /** What the GET of a decision answers. */
  eventOf(decision: Decided['decisions'][number]): object
}

export interface HubOptions extends FeedOptions {
  /** Tells cursors of this log from those of another. */
  logMark: number
  sources: LiveSources
  /** Channels that follow the log, beside positions and decisions. */
  feeds: readonly LiveFeed[]
  ages: StatusAges
  /** Called with the number of positions that a newer one replaced before they were sent. */
  onConflated: (count: number) => void
}
