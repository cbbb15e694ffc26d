import type { EventLog } from '../../engines/event-log.ts'
import { seesHubs } from '../../kernel/caller.ts'
import { dataOf, type RecordedEvent } from '../../kernel/event.ts'
import type { JsonSchema } from '../../kernel/json.ts'
import { RecentMap } from '../../kernel/recent-map.ts'
import { idOfStream, type ResourceData, rowAfter } from '../../kit/commands/declared-event.ts'
import { shownRow } from '../../kit/http/list-query.ts'
import { answered, UUID } from '../../kit/http/page-members.ts'
import { listShape } from '../../kit/resource/rows.ts'
import { partOf } from '../../live/cursor.ts'
import type { EventDocument, FeedOptions, LiveFeed } from '../../live/feed.ts'
import type { LiveEvent, Watcher } from '../../live/live-event.ts'
import { channelFeed, reachOf } from '../../live/log-feed.ts'
import { task } from './task.ts'
import { peopleOf, seesTask, TASK, TASK_STREAMS, type TaskRow, type TaskValues } from './views.ts'

/** Tasks whose places are remembered, over all organizations that are watched; twice as many at most. */
const PLACES_LEAST = 10_000

const TASK_SHAPE = listShape(task.declaration)

/** Reports each change of a task to subscribers who see it or saw it until then, as the log has it. */
export const taskFeed = (): LiveFeed =>
  channelFeed({
    channel: 'task',
    prefixes: [TASK_STREAMS],
    teller: (options) => {
      const places = new TaskPlaces(options.log)
      return (event) => taskEvent(options, places, event)
    },
  })

/** Members that decide who sees a task. */
type TaskPlace = Pick<TaskValues, 'hubId' | 'teamId' | 'assigneeIds'>

const taskEvent = async (
  { partitions }: FeedOptions,
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
  // The content of its GET depends on the role alone.
  const texts = new Map<string, string>()
  const goneText = JSON.stringify({ _id: id, gone: true })
  return {
    channel: 'task',
    partition: partOf('task', partitions),
    reach: reachOf(event.position),
    people: [...new Set([before, after].flatMap((place) => (place === undefined ? [] : peopleOf(place))))],
    isFor: (watcher) => isShown(watcher, after) || isShown(watcher, before),
    text: (watcher) => {
      if (!isShown(watcher, after)) return goneText
      const { caller } = watcher
      const known = texts.get(caller.roleId)
      if (known !== undefined) return known
      const text = JSON.stringify(shownRow(TASK_SHAPE, undefined, caller)(row))
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

/** Undefined for erased values. */
const placeOf = ({ values }: ResourceData): TaskPlace | undefined => {
  const { hubId, teamId, assigneeIds } = values as Partial<TaskValues>
  return hubId === undefined || assigneeIds === undefined ? undefined : { hubId, teamId, assigneeIds }
}

/** Places of tasks before a change: from memory, else from the log. */
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

/** The schema of a task is in the OpenAPI document. */
const SHOWN: JsonSchema = {
  type: 'object',
  description: 'As `GET /task/{taskId}` answers it to the caller, after the change.',
  properties: {
    _id: UUID,
    version: { type: 'integer', minimum: 1 },
    title: { type: 'string' },
    state: { type: 'string' },
    hubId: UUID,
  },
  required: ['_id', 'version', 'title', 'state', 'hubId'],
  additionalProperties: true,
}

const GONE: JsonSchema = answered(undefined, { _id: UUID, gone: { const: true } })

export const TASK_EVENTS: readonly EventDocument[] = [
  {
    channel: 'task',
    description:
      'A task each time that it changes. `gone` is the last that is heard of one that was deleted or left the sight of the caller, or of the subscription by its `hubId` or `teamId`. When the caller gets other hubs or teams, or begins or ceases to dispatch, `gap` says that tasks are to be read again.',
    schema: { anyOf: [SHOWN, GONE] },
    examples: [
      {
        _id: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6e',
        version: 3,
        title: 'Deliver 3 parcels',
        state: 'inProgress',
        hubId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6f',
      },
      { _id: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6e', gone: true },
    ],
  },
]
