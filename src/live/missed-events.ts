import { breathe } from '../kernel/breath.ts'
import { replayAutomations } from './automation-feed.ts'
import { decodeCursor, encodeCursor, type EventVector, type Place } from './cursor.ts'
import type { EventRing, LiveEvent } from './event-ring.ts'
import type { LiveHub } from './hub.ts'
import { replayEvents } from './replay-events.ts'

export interface MissedQuestion {
  organizationId: string
  ring: EventRing
  /** The client's cursor. */
  since: string
  /** Whether runs of automations were asked for: they are read from the log, whatever is in memory. */
  withAutomations: boolean
  /** Ends the reading of the log. */
  signal: AbortSignal
}

/**
 * The organization's events from a client's cursor up to a vector, from memory where that reaches back, else from the log,
 * each with the cursor that has seen it. Undefined, as the last one, where there is a gap.
 */
export async function* missedEvents(
  hub: LiveHub,
  question: MissedQuestion,
  to: EventVector,
): AsyncGenerator<{ event: LiveEvent; cursor: string } | undefined> {
  const { logMark } = hub.options
  const seen = decodeCursor(question.since, logMark, to.length)
  if (seen === undefined) return yield undefined
  const vector: Place[] = [...seen]
  for await (const event of eventsBetween(hub, question, seen, to)) {
    if (event === undefined) return yield undefined
    await breathe()
    vector[event.partition] = event.place
    yield { event, cursor: encodeCursor(logMark, vector) }
  }
}

async function* eventsBetween(
  { options, eventOf }: LiveHub,
  { organizationId, ring, withAutomations, signal }: MissedQuestion,
  seen: EventVector,
  to: EventVector,
): AsyncGenerator<LiveEvent | undefined> {
  yield* ring.after(seen) ?? replayEvents(options.log, organizationId, seen, to, eventOf, signal)
  if (withAutomations)
    yield* replayAutomations(options, organizationId, signal, seen[seen.length - 1], to[to.length - 1])
}
