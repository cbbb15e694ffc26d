import type { EventLog } from '../engines/event-log.ts'
import { decodeJson } from '../kernel/event.ts'
import { DECIDED, transitionStream, type Decided } from '../features/transitions/events.ts'
import { isBehind, type EventVector, type Place } from './cursor.ts'
import type { LiveEvent } from './event-ring.ts'

/** Decisions of all organizations that one resume may read before it gives up. */
const DECISIONS_MAX = 1_000_000
const PAGE_EVENTS = 256

/**
 * The organization's events between two vectors, read from the log, partition by partition. Undefined when the log no
 * longer reaches back that far, or when so much happened that a snapshot is the better answer.
 */
export const replayEvents = async (
  log: EventLog,
  organizationId: string,
  from: EventVector,
  to: EventVector,
  eventOf: (decision: Decided['decisions'][number], partition: number, place: Place) => LiveEvent,
): Promise<LiveEvent[] | undefined> => {
  const found: LiveEvent[] = []
  let read = 0
  for (let partition = 0; partition < from.length; partition++) {
    if (isBehind(to[partition], from[partition])) continue
    for (let revision = Math.max(0, from[partition].revision); revision <= to[partition].revision; ) {
      const events = await log.read(transitionStream(partition), revision, PAGE_EVENTS)
      if (events.length === 0) break
      if (events[0].revision !== revision && revision > from[partition].revision) return undefined
      if (events[0].revision > from[partition].revision + 1) return undefined
      for (const event of events) {
        if (event.revision > to[partition].revision || event.type !== DECIDED) continue
        const { decisions } = decodeJson<Decided>(event.data)
        read += decisions.length
        decisions.forEach((decision, index) => {
          const place = { revision: event.revision, seen: index + 1 }
          if (decision.organizationId === organizationId && !isBehind(place, from[partition])) found.push(eventOf(decision, partition, place))
        })
      }
      if (read > DECISIONS_MAX) return undefined
      revision = events[events.length - 1].revision + 1
    }
  }
  return found
}
