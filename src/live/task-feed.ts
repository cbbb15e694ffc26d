import type { EventLog } from '../engines/event-log.ts'
import { seesTask, TASK, TASK_STREAMS, type TaskRow, type TaskValues } from '../features/tasks/views.ts'
import { seesHubs } from '../kernel/caller.ts'
import { dataOf, type RecordedEvent } from '../kernel/event.ts'
import { RecentMap } from '../kernel/recent-map.ts'
import { idOfStream, type ResourceData, rowAfter } from '../kit/commands/declared-event.ts'
import type { Follower } from '../kit/consumers/follower.ts'
import { partOf } from './cursor.ts'
import type { LiveHub } from './hub.ts'
import type { LiveEvent, Watcher } from './live-event.ts'
import { followChannel, reachOf, replayFeed, type ReplayQuestion } from './log-feed.ts'
import type { HubOptions } from './options.ts'

/** Tasks of which it is remembered where they stood, over all organizations that are watched; twice as many at most. */
const PLACES_LEAST = 10_000

/** Tells those who asked for it of each change of a task that they see or saw until then, as the log has it. */
export const taskFeed = (hub: LiveHub): Promise<Follower> => {
  const places = new TaskPlaces(hub.options.log)
  const told = (event: RecordedEvent): Promise<LiveEvent | undefined> => taskEvent(hub.options, places, event)
  return followChannel(hub, { channel: 'task', prefixes: [TASK_STREAMS], told })
}

/** The organization's events of tasks from one reach to another, from the log. */
export const replayTasks = (
  options: HubOptions,
  question: Omit<ReplayQuestion, 'prefixes' | 'told'>,
): AsyncGenerator<LiveEvent | undefined> => {
  const places = new TaskPlaces(options.log)
  const told = (event: RecordedEvent): Promise<LiveEvent | undefined> => taskEvent(options, places, event)
  return replayFeed(options.log, { ...question, prefixes: [TASK_STREAMS], told })
}

/** What decides who sees a task. */
type TaskPlace = Pick<TaskValues, 'hubId' | 'teamId' | 'assigneeIds'>

const taskEvent = async (
  { sources, partitions }: HubOptions,
  places: TaskPlaces,
  event: RecordedEvent,
): Promise<LiveEvent | undefined> => {
  if (event.type !== TASK.created && event.type !== TASK.changed && event.type !== TASK.deleted) return undefined
  const id = idOfStream(event.stream)
  const data = dataOf<ResourceData>(event)
  const row = rowAfter(event, data) as TaskRow
  const isGone = event.type === TASK.deleted
  const before = isGone ? placeOf(data) : event.type === TASK.created ? undefined : await places.before(event)
  const after = isGone ? undefined : placeOf(data)
  places.know(event, after)
  // What its GET answers depends on the role alone.
  const texts = new Map<string, string>()
  const goneText = JSON.stringify({ _id: id, gone: true })
  return {
    channel: 'task',
    partition: partOf('task', partitions),
    reach: reachOf(event.position),
    people: [...new Set([...peopleOf(before), ...peopleOf(after)])],
    isFor: (watcher) => isShown(watcher, after) || isShown(watcher, before),
    text: (watcher) => {
      if (!isShown(watcher, after)) return goneText
      const { caller } = watcher
      const known = texts.get(caller.roleId)
      if (known !== undefined) return known
      const text = JSON.stringify(sources.taskShown(row, caller))
      texts.set(caller.roleId, text)
      return text
    },
  }
}

const isShown = ({ wanted, caller }: Watcher, place: TaskPlace | undefined): boolean => {
  if (place === undefined) return false
  if (wanted.hubId !== undefined && wanted.hubId !== place.hubId) return false
  if (wanted.teamId !== undefined && wanted.teamId !== place.teamId) return false
  return seesHubs(caller, [place.hubId]) && seesTask(caller, place)
}

const peopleOf = (place: TaskPlace | undefined): string[] =>
  place === undefined ? [] : [...place.assigneeIds, ...(place.teamId === undefined ? [] : [place.teamId])]

/** Undefined for what was erased. */
const placeOf = ({ values }: ResourceData): TaskPlace | undefined => {
  const { hubId, teamId, assigneeIds } = values as Partial<TaskValues>
  return hubId === undefined || assigneeIds === undefined ? undefined : { hubId, teamId, assigneeIds }
}

/** Where tasks stood before a change: from memory, else from the log. */
class TaskPlaces {
  private readonly log: Pick<EventLog, 'read'>
  /** By stream. */
  private readonly known = new RecentMap<string, { revision: number; place: TaskPlace | undefined }>(PLACES_LEAST)

  constructor(log: Pick<EventLog, 'read'>) {
    this.log = log
  }

  async before({ stream, revision }: RecordedEvent): Promise<TaskPlace | undefined> {
    const known = this.known.get(stream)
    if (known?.revision === revision - 1) return known.place
    const [event] = await this.log.read(stream, revision - 1, 1)
    return event?.revision === revision - 1 ? placeOf(dataOf<ResourceData>(event)) : undefined
  }

  know({ stream, revision }: RecordedEvent, place: TaskPlace | undefined): void {
    this.known.set(stream, { revision, place })
  }
}
