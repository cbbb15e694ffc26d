import { runsStream } from '../features/automations/events.ts'
import type { RecordedEvent } from '../kernel/event.ts'
import type { Follower } from '../kit/consumers/follower.ts'
import { AUTOMATION_STREAMS, automationEvents } from './automation-events.ts'
import { ALL_SEEN, isBehind, type Place } from './cursor.ts'
import type { LiveEvent } from './event-ring.ts'
import type { HubOptions } from './hub-options.ts'
import type { LiveHub } from './hub.ts'
import { followLive, placeOf } from './log-feed.ts'

/** Events of all organizations that one resume may read before it gives up; each is of one run or of many. */
const REPLAY_EVENTS_MAX = 200_000
const REPLAY_PAGE_EVENTS = 64

/**
 * Tells those who asked for it how the runs of their organization's automations go, as the log has it. Automations have one
 * place in cursors, the last one. Where nobody asked, an event is passed without being looked into.
 */
export const automationFeed = (hub: LiveHub): Promise<Follower> => {
  const place = automationPlace(hub.options)
  const watchers = hub.automationWatchers
  const tellEach = async (event: RecordedEvent): Promise<void> => {
    for (const { organizationId, told } of await watchedEvents(hub, event)) {
      hub.seen(place, told.place)
      hub.offer(organizationId, told)
    }
    hub.seen(place, placeOf(event.position))
  }
  const tell = (event: RecordedEvent): Promise<void> | void =>
    watchers.isEmpty ? hub.seen(place, placeOf(event.position)) : tellEach(event)
  return followLive(hub, { name: 'live-automations', place, prefixes: [AUTOMATION_STREAMS], tell })
}

/** The organization's events of automations between two places, from the log; undefined, as the last one, where there is a gap or too much to read. */
export async function* replayAutomations(
  options: HubOptions,
  organizationId: string,
  signal: AbortSignal,
  from: Place,
  to: Place,
): AsyncGenerator<LiveEvent | undefined> {
  if (isBehind(to, from)) return
  if (await isTruncatedAfter(options, from)) return yield undefined
  const place = automationPlace(options)
  const after = from.seen === ALL_SEEN ? from.revision : from.revision - 1
  let read = 0
  for await (const { events, checkpoint } of options.log.follow(
    { prefixes: [AUTOMATION_STREAMS] },
    after,
    signal,
    REPLAY_PAGE_EVENTS,
  )) {
    for (const event of events) {
      if (event.position > to.revision) continue
      for (const { told } of await automationEvents(options, event, place, (one) => one === organizationId)) {
        if (event.position > from.revision || told.place.seen > from.seen) yield told
      }
    }
    read += events.length
    if (checkpoint >= to.revision) return
    if (read > REPLAY_EVENTS_MAX) return yield undefined
  }
}

const automationPlace = ({ partitions }: HubOptions): number => partitions + 1

/** The event for all who ask; made again for one who began to while its rows were read. */
const watchedEvents = async (
  { options, automationWatchers }: LiveHub,
  event: RecordedEvent,
): ReturnType<typeof automationEvents> => {
  for (;;) {
    const left = new Set<string>()
    const isWatched = (organizationId: string): boolean =>
      automationWatchers.has(organizationId) || !left.add(organizationId)
    const events = await automationEvents(options, event, automationPlace(options), isWatched)
    if (![...left].some((organizationId) => automationWatchers.has(organizationId))) return events
  }
}

/** Whether runs may have left the log that were told after the place. */
const isTruncatedAfter = async ({ log, partitions }: HubOptions, { revision: position }: Place): Promise<boolean> => {
  for (let partition = 0; partition < partitions; partition++) {
    const [first] = await log.read(runsStream(partition), 0, 1)
    if (first !== undefined && first.revision > 0 && first.position > position) return true
  }
  return false
}
