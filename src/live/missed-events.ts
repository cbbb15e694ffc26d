import type { EventLog } from '../engines/event-log.ts'
import type { Decided } from '../features/transitions/events.ts'
import { decodeCursor, encodeCursor, type EventVector, type Place } from './cursor.ts'
import type { EventRing, LiveEvent } from './event-ring.ts'
import { replayEvents } from './replay-events.ts'

export interface MissedSources {
  log: EventLog
  /** Tells cursors of this log from those of another. */
  logMark: number
  organizationId: string
  ring: EventRing
  eventOf(decision: Decided['decisions'][number], partition: number, place: Place): LiveEvent
}

/**
 * The organization's events from a client's cursor up to a vector, from memory where that reaches back, else from the log,
 * each with the cursor that has seen it. Undefined, as the last one, where there is a gap.
 */
export async function* missedEvents(sources: MissedSources, since: string, to: EventVector): AsyncGenerator<{ event: LiveEvent; cursor: string } | undefined> {
  const { log, logMark, organizationId, ring, eventOf } = sources
  const seen = decodeCursor(since, logMark, to.length)
  if (seen === undefined) return yield undefined
  const vector: Place[] = [...seen]
  for await (const event of ring.after(seen) ?? replayEvents(log, organizationId, seen, to, eventOf)) {
    if (event === undefined) return yield undefined
    vector[event.partition] = event.place
    yield { event, cursor: encodeCursor(logMark, vector) }
  }
}
