import type { EventLog } from '../engines/event-log.ts'
import type { Checkpoint } from '../engines/table-store.ts'
import type { LocationEntry } from '../features/locations/events.ts'
import type { AutomationRow, RunRow } from '../features/automations/views.ts'
import type { LatestPoint } from '../features/locations/views.ts'
import type { TaskRow } from '../features/tasks/views.ts'
import type { StatusAges, TrackerFacts } from '../features/trackers/views.ts'
import type { Decided } from '../features/transitions/events.ts'
import type { UserCaller } from '../kernel/caller.ts'
import type { Clock } from '../kernel/clock.ts'
import type { RecordedEvent } from '../kernel/event.ts'
import type { Logger } from '../kernel/logger.ts'
import type { Wrote } from '../kit/http/route.ts'

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
  /** The rows of runs, once they have what an event of their stream says; undefined for those that have expired. @throws Failure engine_down */
  runs(
    organizationId: string,
    runIds: readonly string[],
    event: Pick<RecordedEvent, 'stream' | 'revision'>,
  ): Promise<(RunRow | undefined)[]>
  /** What the GET of a run answers. */
  runShown(row: RunRow): object
  /** What the GET of an automation answers. */
  automationShown(row: AutomationRow): object
  /** What the GET of a task answers; of the viewer the role alone counts. */
  taskShown(row: TaskRow, viewer: UserCaller): object
}

export interface HubOptions {
  log: EventLog
  partitions: number
  /** Tells cursors of this log from those of another. */
  logMark: number
  sources: LiveSources
  ages: StatusAges
  clock: Clock
  logger: Logger
  /** Told how many positions a newer one replaced before they were sent. */
  onConflated: (count: number) => void
}
