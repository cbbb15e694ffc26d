import type { EventLog } from '../engines/event-log.ts'
import { factOf, type Fact, type RecordedEvent } from '../kernel/event.ts'

const PAGE_EVENTS = 500

/** What a stream says up to and with one of its events. */
export const rowAt = async <Row>(
  log: Pick<EventLog, 'read'>,
  { stream, revision }: RecordedEvent,
  evolve: (row: Row | undefined, fact: Fact) => Row | undefined,
): Promise<Row | undefined> => {
  let row: Row | undefined
  for (let from = 0; from <= revision; ) {
    const events = await log.read(stream, from, Math.min(PAGE_EVENTS, revision + 1 - from))
    if (events.length === 0) break
    for (const event of events) if (event.revision <= revision) row = evolve(row, factOf(event))
    from = events[events.length - 1].revision + 1
  }
  return row
}
