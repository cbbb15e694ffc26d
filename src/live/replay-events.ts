import type { EventLog } from '../engines/event-log.ts'
import { breathe } from '../kernel/breath.ts'
import { decodeJson } from '../kernel/event.ts'
import { DECIDED, transitionStream, type Decided } from '../features/transitions/events.ts'
import { ALL_SEEN, isBehind, type EventVector, type Place } from './cursor.ts'
import type { LiveEvent } from './event-ring.ts'
import { replayJobs } from './job-feed.ts'

/** Decisions of all organizations that one resume may read before it gives up. */
const DECISIONS_MAX = 1_000_000
const PAGE_EVENTS = 64

/**
 * The organization's events between two vectors, read from the log, partition by partition, then those of jobs, no faster
 * than they are taken. Undefined, as the last one, where the log no longer reaches back that far, or where so much
 * happened that a snapshot is the better answer.
 */
export async function* replayEvents(
  log: EventLog,
  organizationId: string,
  from: EventVector,
  to: EventVector,
  eventOf: (decision: Decided['decisions'][number], partition: number, place: Place) => LiveEvent,
  signal: AbortSignal,
): AsyncGenerator<LiveEvent | undefined> {
  let read = 0
  const partitions = from.length - 2
  for (let partition = 0; partition < partitions; partition++) {
    if (isBehind(to[partition], from[partition])) continue
    const { revision: last, seen } = from[partition]
    for (let revision = seen === ALL_SEEN ? last + 1 : Math.max(0, last); revision <= to[partition].revision; ) {
      await breathe()
      if (signal.aborted) return
      const events = await log.read(transitionStream(partition), revision, PAGE_EVENTS)
      if (events.length === 0 || events[0].revision !== revision) return yield undefined
      for (const event of events) {
        revision = event.revision + 1
        if (event.revision > to[partition].revision || event.type !== DECIDED) continue
        const { decisions } = decodeJson<Decided>(event.data)
        read += decisions.length
        for (const [index, decision] of decisions.entries()) {
          const place = { revision: event.revision, seen: index + 1 }
          if (decision.organizationId === organizationId && !isBehind(place, from[partition]))
            yield eventOf(decision, partition, place)
        }
      }
      if (read > DECISIONS_MAX) return yield undefined
    }
  }
  yield* replayJobs(log, organizationId, from[partitions], to[partitions], partitions, signal)
}
