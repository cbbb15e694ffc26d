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
  /** Those of automations between two places, as `missedEvents`; absent where nobody asked for them. */
  automations?(from: Place, to: Place): AsyncIterable<LiveEvent | undefined>
}

/**
 * The organization's events from a client's cursor up to a vector, from memory where that reaches back, else from the log,
 * each with the cursor that has seen it. Undefined, as the last one, where there is a gap.
 */
export async function* missedEvents(sources: MissedSources, since: string, to: EventVector): AsyncGenerator<{ event: LiveEvent; cursor: string } | undefined> {
  const { logMark } = sources
  const seen = decodeCursor(since, logMark, to.length)
  if (seen === undefined) return yield undefined
  const vector: Place[] = [...seen]
  for await (const event of eventsBetween(sources, seen, to)) {
    if (event === undefined) return yield undefined
    vector[event.partition] = event.place
    yield { event, cursor: encodeCursor(logMark, vector) }
  }
}

async function* eventsBetween({ log, organizationId, ring, eventOf, automations }: MissedSources, seen: EventVector, to: EventVector): AsyncGenerator<LiveEvent | undefined> {
  yield* ring.after(seen) ?? replayEvents(log, organizationId, seen, to, eventOf)
  if (automations !== undefined) yield* automations(seen[seen.length - 1], to[to.length - 1])
}
