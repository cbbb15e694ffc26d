import { EXPORT } from '../../src/features/exports/views.ts'
import { NOTIFICATION_MADE, type NotificationMade } from '../../src/features/notifications/events.ts'
import { TASK, TASK_STREAMS } from '../../src/features/tasks/views.ts'
import { TRACKER } from '../../src/features/trackers/events.ts'
import { DECIDED, type Decided } from '../../src/features/transitions/events.ts'
import { decodeJson, type RecordedEvent } from '../../src/kernel/event.ts'
import { idOfStream } from '../../src/kit/commands/declared-event.ts'
import { EDITOR } from './fleet.ts'
import type { World } from './host.ts'
import type { MemoryLog } from './memory-log.ts'
import type { Expected } from './model.ts'
import type { ToldEvent } from './told.ts'
import type { Watcher } from './watchers.ts'

/** What is told of an event of the log: in this order among those of its lane. */
interface Expectation {
  key: string
  lane: string
  /** Number of the event in the log. */
  at: number
}

/** Live: each dashboard shows the newest position of each tracker, and was told of each event once and in order. */
export const watcherFaults = ({ log }: World, watchers: readonly Watcher[], expectation: Expected): string[] => {
  const deleted = deletedTrackers(log)
  const latest = new Map([...expectation.latest].filter(([trackerId]) => !deleted.has(trackerId)))
  const expected = log.events.flatMap((event, at) => keysOf(event).map(([lane, key]) => ({ lane, key, at })))
  return watchers.flatMap((watcher, number) => {
    const faults = [...watcher.faults, ...positionFaults(watcher, latest), ...eventFaults(watcher, expected)]
    return faults.map((fault) => `dashboard ${number}: ${fault}`)
  })
}

/** Trackers that nobody may see any more, though points of them may have been on their way when they were deleted. */
const deletedTrackers = ({ events }: MemoryLog): Set<string> => {
  const deleted = new Set<string>()
  for (const { stream, type } of events) {
    if (type === TRACKER.deleted) deleted.add(idOfStream(stream))
    if (type === TRACKER.created) deleted.delete(idOfStream(stream))
  }
  return deleted
}

const positionFaults = ({ positions }: Watcher, latest: Expected['latest']): string[] =>
  [...new Set([...positions.keys(), ...latest.keys()])].flatMap((trackerId) => {
    const [shown, newest] = [positions.get(trackerId), latest.get(trackerId)]
    const isRight = newest !== undefined && shown !== undefined && Date.parse(shown) === newest
    return isRight ? [] : [`it shows ${trackerId} of ${shown}, not of ${newest && new Date(newest).toISOString()}`]
  })

const eventFaults = ({ events, sees }: Watcher, expected: readonly Expectation[]): string[] => {
  if (sees === undefined) return ['it was never answered']
  // A trip begins again under its id where its first point comes again after the tracker was deleted.
  const places = new Map<string, number[]>()
  for (const [place, { key }] of expected.entries()) places.set(key, [...(places.get(key) ?? []), place])
  const last = new Map<string, number>()
  const faults: string[] = []
  const heard = new Map<string, number>()
  for (const { channel, event } of events) {
    const key = keyOf(channel, event)
    const known = places.get(key)
    if (known === undefined) {
      faults.push(`it was told of ${key}, which is not in the log`)
      continue
    }
    const { lane } = expected[known[0]]
    const place = known.find((one) => one > (last.get(lane) ?? -1))
    if (place === undefined) faults.push(`it was told of ${key} again or too late`)
    else heard.set(key, (heard.get(key) ?? 0) + 1)
    last.set(lane, place ?? known[0])
  }
  const isDue = (place: number): boolean => expected[place].at >= sees
  const missed = [...places].filter(([key, own]) => own.filter(isDue).length > (heard.get(key) ?? 0))
  if (missed.length > 0) faults.push(`it was not told of ${missed.length}: ${missed[0][0]}`)
  return faults
}

const keyOf = (channel: string, { _id, version, state, gone }: ToldEvent['event']): string => {
  if (channel === 'task') return `task ${_id} ${gone ? 'gone' : version}`
  if (channel === 'job') return `job ${_id} ${version}`
  return channel === 'trip' ? `trip ${_id} ${state}` : `${channel} ${_id}`
}

/** Lanes and keys of what the editor is told of an event. */
const keysOf = ({ stream, type, data, revision }: RecordedEvent): [string, string][] => {
  if (type === DECIDED)
    return decodeJson<Decided>(data).decisions.map(({ kind, _id }) => {
      if (kind === 'transition') return [stream, `geofence ${_id}`]
      return [stream, `trip ${_id} ${kind === 'tripStarted' ? 'running' : 'finished'}`]
    })
  const id = idOfStream(stream)
  if (stream.startsWith(TASK_STREAMS)) return [['task', `task ${id} ${type === TASK.deleted ? 'gone' : revision + 1}`]]
  if (stream.startsWith(EXPORT.prefix)) return [['job', `job ${id} ${revision + 1}`]]
  if (type !== NOTIFICATION_MADE) return []
  const { userId, notificationId } = decodeJson<NotificationMade>(data)
  return userId === EDITOR ? [['notification', `notification ${notificationId}`]] : []
}
