import type { EventLog } from '../engines/event-log.ts'
import { locationEntry } from '../features/locations/location-entry.ts'
import { locationStream, type LocationEntry } from '../features/locations/events.ts'
import type { RecordedEvent } from '../kernel/event.ts'

const PAGE_EVENTS = 64

/** The events of a stream from one revision through another, as far as they are still there. */
export async function* eventsOf(
  log: EventLog,
  stream: string,
  from: number,
  through: number,
  signal: AbortSignal,
): AsyncGenerator<RecordedEvent> {
  for (let next = from; next <= through; ) {
    signal.throwIfAborted()
    const events = await log.read(stream, next, Math.min(PAGE_EVENTS, through - next + 1))
    if (events.length === 0) return
    for (const event of events) {
      if (event.revision > through) return
      yield event
    }
    next = events[events.length - 1].revision + 1
  }
}

export async function* locationEntries(
  log: EventLog,
  partition: number,
  from: number,
  through: number,
  signal: AbortSignal,
): AsyncGenerator<LocationEntry> {
  for await (const event of eventsOf(log, locationStream(partition), from, through, signal))
    yield locationEntry(event, partition)
}
