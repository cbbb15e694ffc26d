import { type LmdbEventLogOptions, openLmdbEventLog } from '../../src/engines/lmdb-log/lmdb-log.ts'
import type { EventLog, FollowBatch } from '../../src/engines/event-log.ts'
import type { NewEvent, RecordedEvent } from '../../src/kernel/event.ts'

const STEP = 1_000
const PAGE_EVENTS = 1_000

/**
 * The embedded log with positions as other engines have them: far apart, at uneven distances, events of one append too,
 * and checkpoints that lie between events. Whoever calculates with positions is refused, and so is whoever repeats an
 * append with `any` and adds events to it: other engines would take it for the one before, or store all of it again.
 */
export const openGappedLog = async (options: LmdbEventLogOptions): Promise<EventLog> =>
  gapped(await openLmdbEventLog(options))

const gapped = (log: EventLog): EventLog => ({
  append: async (stream, events, expected) => {
    if (expected === 'any' && events.length > 1) await assertUnmixed(log, stream, events)
    const { revision, position } = await log.append(stream, events, expected)
    return { revision, position: outer(position) }
  },
  read: async (...question) => (await log.read(...question)).map(moved),
  follow: (source, checkpoint, signal, batchEventsMax) => {
    if ('stream' in source) return followed(log.follow(source, checkpoint, signal, batchEventsMax), (at) => at)
    const after = checkpoint === undefined ? undefined : inner(checkpoint)
    return followed(log.follow(source, after, signal, batchEventsMax), between)
  },
  head: (stream) => log.head(stream),
  headPosition: async () => between(await log.headPosition()),
  truncateBefore: (stream, revision) => log.truncateBefore(stream, revision),
  erase: (stream) => log.erase(stream),
  ping: () => log.ping(),
  close: () => log.close(),
})

const assertUnmixed = async (log: EventLog, stream: string, events: readonly NewEvent[]): Promise<void> => {
  const known = new Set<string>()
  for (let from = 0, page: RecordedEvent[] = []; from === 0 || page.length === PAGE_EVENTS; ) {
    page = await log.read(stream, from, PAGE_EVENTS)
    for (const { id } of page) known.add(id)
    from = (page.at(-1)?.revision ?? 0) + 1
  }
  const sent = events.filter(({ id }) => known.has(id)).length
  if (sent > 0 && sent < events.length)
    throw new Error(`an append to ${stream} mixes ${sent} events that it has with ${events.length - sent} new ones`)
}

async function* followed(batches: AsyncIterable<FollowBatch>, at: (checkpoint: number) => number) {
  for await (const { events, checkpoint, caughtUp } of batches)
    yield { events: events.map(moved), checkpoint: at(checkpoint), caughtUp }
}

const moved = (event: RecordedEvent): RecordedEvent => ({ ...event, position: outer(event.position) })

/** Where the event of this position is told to stand. */
const outer = (position: number): number =>
  position < 0 ? position : position * STEP + (Math.imul(position, 2_654_435_761) >>> 23) // 0 to 511

/** A place after the event of this position and before the next one. */
const between = (position: number): number => (position < 0 ? position : outer(position) + 7 + (position % 300))

/** The position of the last event up to a place. @throws Error for one that the log never told. */
const inner = (place: number): number => {
  const position = place < 0 ? place : Math.floor(place / STEP)
  if (place !== outer(position) && place !== between(position)) throw new Error(`${place} is no position of this log`)
  return position
}
