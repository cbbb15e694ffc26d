import type { EventLog } from '../../engines/event-log.ts'
import type { RecordedEvent } from '../../kernel/event.ts'
import type { Logger } from '../../kernel/logger.ts'
import type { PageSize } from './pages.ts'
import type { ToldEvents } from './told-events.ts'

export interface PartitionFeedOptions<Entry> {
  log: EventLog
  logger: Logger
  streamOf: (partition: number) => string
  decode: (event: RecordedEvent, partition: number) => Entry
  /** Present where other processes tell what they append. */
  told?: Pick<ToldEvents, 'hear'>
  page: PageSize // consumers of one feed learn the size of events from each other
}

export interface Waiting<Entry> {
  revision: number
  loggedAt: number
  entry: Entry
  weight: number
}
