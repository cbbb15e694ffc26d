import type { EventLog } from '../engines/event-log.ts'
import { DECIDED, type Decided, transitionStream } from '../features/transitions/events.ts'
import { breathe } from '../kernel/breath.ts'
import { decodeJson } from '../kernel/event.ts'
import {
  ALL_SEEN,
  decodeCursor,
  encodeCursor,
  type EventVector,
  isBehind,
  partOf,
  REMEMBERED_FEED,
  type Reach,
} from './cursor.ts'
import type { RecentLiveEvents } from './recent-live-events.ts'
import type { LiveHub } from './hub.ts'
import type { ChannelName, LiveEvent } from './live-event.ts'

/** Decisions of all organizations that one resume may read before it gives up. */
const DECISIONS_MAX = 1_000_000
const PAGE_EVENTS = 64

export interface MissedQuestion {
  organizationId: string
  ring: RecentLiveEvents
  /** Events that the client has seen; undefined for a cursor without meaning here. */
  seen: EventVector | undefined
  /** Subscribed channels: only these are read. */
  channels: ReadonlySet<ChannelName>
  /** Ends the reading of the log. */
  signal: AbortSignal
}

/**
 * Events that a client's cursor has seen, maybe at another process that was ahead of this one. Undefined for a foreign
 * cursor, and when the log ends before it: one that was restored from an older copy.
 */
export const seenBy = async (
  { options: { log, logMark, partitions }, vector }: LiveHub,
  since: string,
): Promise<EventVector | undefined> => {
  const seen = decodeCursor(since, logMark, vector.length)
  if (seen === undefined) return undefined
  for (const [part, reach] of seen.entries()) {
    if (reach.revision <= vector[part].revision) continue
    const end = part < partitions ? await log.head(transitionStream(part)) : await log.headPosition()
    if (end < reach.revision) return undefined
  }
  return seen
}

/**
 * For each feed whose events hold several: the end of the one that the client has seen in part. The rest of it is read
 * from the log, since the same place within it has another name at each process.
 */
export const endsOfBegun = async (
  { options, vector }: LiveHub,
  { channels, seen, signal }: Pick<MissedQuestion, 'channels' | 'seen' | 'signal'>,
): Promise<EventVector> => {
  const ends: Reach[] = vector.map(() => ({ revision: -1, seen: 0 }))
  for (const { channel, endOf } of options.feeds) {
    const part = partOf(channel, options.partitions)
    if (seen === undefined || seen[part].seen === 0 || !channels.has(channel)) continue
    ends[part] = (await endOf?.(options, seen[part], signal)) ?? ends[part]
  }
  return ends
}

/**
 * The organization's events after those that a client has seen, up to a vector, from memory where that reaches back,
 * else from the log, each with the cursor that has seen it. Undefined, as the last one, where there is a gap.
 */
export async function* missedEvents(
  hub: LiveHub,
  question: MissedQuestion,
  to: EventVector,
): AsyncGenerator<{ event: LiveEvent; cursor: string } | undefined> {
  const { logMark } = hub.options
  const { seen } = question
  if (seen === undefined) return yield undefined
  const vector: Reach[] = [...seen]
  for await (const event of eventsBetween(hub, question, seen, to)) {
    if (event === undefined) return yield undefined
    await breathe()
    vector[event.partition] = event.reach
    yield { event, cursor: encodeCursor(logMark, vector) }
  }
}

async function* eventsBetween(
  { options, eventOf }: LiveHub,
  { organizationId, ring, channels, signal }: MissedQuestion,
  seen: EventVector,
  to: EventVector,
): AsyncGenerator<LiveEvent | undefined> {
  const { log, partitions } = options
  const remembered = ring.after(seen)
  if (remembered !== undefined) yield* remembered
  else if (channels.has('geofence') || channels.has('trip'))
    yield* replayEvents(log, organizationId, seen.slice(0, partitions), to, eventOf, signal)
  for (const { channel, replay } of options.feeds) {
    if (!channels.has(channel) || (channel === REMEMBERED_FEED && remembered !== undefined)) continue
    const part = partOf(channel, partitions)
    yield* replay(options, { organizationId, from: seen[part], to: to[part], signal })
  }
}

/**
 * The organization's events between two vectors of partitions, read from the log, one partition after the other, no
 * faster than they are taken. Undefined, as the last one, where the log no longer reaches back that far, or where there
 * are so many that a snapshot is the better answer.
 */
export async function* replayEvents(
  log: EventLog,
  organizationId: string,
  from: EventVector,
  to: EventVector,
  eventOf: (decision: Decided['decisions'][number], partition: number, reach: Reach) => LiveEvent,
  signal: AbortSignal,
): AsyncGenerator<LiveEvent | undefined> {
  let read = 0
  for (let partition = 0; partition < from.length; partition++) {
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
          const reach = { revision: event.revision, seen: index + 1 }
          if (decision.organizationId === organizationId && !isBehind(reach, from[partition]))
            yield eventOf(decision, partition, reach)
        }
      }
      if (read > DECISIONS_MAX) return yield undefined
    }
  }
}
