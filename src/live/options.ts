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

/** Sources of the live view beside its events: earlier state, and the names of trackers. */
export interface LiveSources {
  /** The rows of the latest positions, and the stored revision of each partition before they were read. */
  latestPoints(organizationId: string): Promise<{ points: AsyncIterable<LatestPoint>; keptUpTo: Checkpoint }>
  /** Every tracker, once these writes are stored (undefined: the present state). @throws Failure engine_down */
  trackers(organizationId: string, wrote: Wrote | undefined): Promise<AsyncIterable<NamedTracker>>
  /** The existing ones of these trackers and of the phones of these users; as `trackers`. */
  factsOf(
    organizationId: string,
    changed: { trackerIds: readonly string[]; userIds: readonly string[] },
    wrote: Wrote,
  ): Promise<readonly NamedTracker[]>
  decode(event: RecordedEvent, partition: number): LocationEntry
  /** A decision, as its GET answers it. */
  eventOf(decision: Decided['decisions'][number]): object
}

export interface HubOptions extends FeedOptions {
  /** Tells cursors of this log from those of another. */
  logMark: number
  sources: LiveSources
  /** Channels that follow the log, beside positions and decisions. */
  feeds: readonly LiveFeed[]
  ages: StatusAges
  /** Called with the number of positions replaced by newer ones before they were sent. */
  onConflated: (count: number) => void
}
