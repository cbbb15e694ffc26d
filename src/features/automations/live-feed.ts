import { historyConsumer } from '../../../projections/history-checkpoints.ts'
import { RUNS_HISTORY } from '../../../projections/runs-history.ts'
import { HistoryRows } from '../../engines/clickhouse-sql/rows.ts'
import type { LiveServices } from '../../feature.ts'
import { Failure } from '../../kernel/errors.ts'
import { dataOf, type Fact, type RecordedEvent } from '../../kernel/event.ts'
import type { JsonSchema } from '../../kernel/json.ts'
import type { ResourceData } from '../../kit/commands/declared-event.ts'
import { foldStream } from '../../kit/commands/fold-stream.ts'
import type { Follower } from '../../kit/consumers/follower.ts'
import { UUID } from '../../kit/http/page-members.ts'
import { isBehind, partOf, type Reach } from '../../live/cursor.ts'
import type { EventDocument, FeedHub, FeedOptions, LiveFeed, ReplayQuestion } from '../../live/feed.ts'
import type { LiveEvent } from '../../live/live-event.ts'
import { endOfNext, followLive, reachOf } from '../../live/log-feed.ts'
import { TASK, TASK_STREAMS, type TaskValues } from '../tasks/views.ts'
import { showAutomation } from './declaration.ts'
import {
  AUTOMATION_DEACTIVATED,
  partitionOfRuns,
  RUNS_OWED,
  type RunsOwed,
  runFactOf,
  runsStream,
  type Subject,
} from './events.ts'
import { changesOf, readAhead, type RunsAt } from './run-changes.ts'
import { showRun } from './run-shown.ts'
import { sightOfRun } from './run-sight.ts'
import { RUN, RUN_EXAMPLE } from './schemas.ts'
import { AUTOMATION_RUNS, type AutomationRow, evolveRow, owedRows, type RunRow } from './views.ts'

/** Prefix of the streams of automations and their runs. */
const AUTOMATION_STREAMS = 'automation-'
/** Most events of all organizations that one resume reads before it gives up; each event concerns one run or many. */
const REPLAY_EVENTS_MAX = 200_000
const REPLAY_PAGE_EVENTS = 64
/** Longest wait for the rows of an event that was just logged. */
const STORED_LIMIT_MS = 5_000

const AUTOMATION: JsonSchema = {
  type: 'object',
  description: 'As `GET /automation/{automationId}` answers it, with `notice`.',
  properties: { _id: UUID, isActive: { const: false }, notice: { type: 'object' } },
  required: ['_id', 'isActive', 'notice'],
  additionalProperties: true,
}

export const AUTOMATION_EVENTS: readonly EventDocument[] = [
  {
    channel: 'automation',
    description: 'A run each time that it changes, or an automation that the service deactivates.',
    schema: { anyOf: [RUN, AUTOMATION] },
    examples: [
      RUN_EXAMPLE,
      {
        _id: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6d',
        name: 'Tell the yard',
        isActive: false,
        notice: { reason: 'failing', at: '2026-05-09T09:30:00.000Z' },
      },
    ],
  },
]

/** Reports runs of the organization's automations to subscribers, as the log has them. */
export const automationFeed = (services: LiveServices): LiveFeed => {
  const listed = new HistoryRows(services.history, services.clock)
  const sources: RunSources = {
    runs: async (organizationId, runIds, events) => {
      for (const { stream, revision } of events) {
        const partition = partitionOfRuns(stream)
        const consumer = historyConsumer(RUNS_HISTORY, partition)
        if (!(await services.checkpoints.reached(consumer, { [partition]: revision }, STORED_LIMIT_MS)))
          throw new Failure('engine_down', { message: 'The read models are behind.' })
      }
      return listed.getMany<RunRow>(AUTOMATION_RUNS.name, organizationId, runIds)
    },
    task: taskIn(services.log),
    runShown: (row) => showRun(services.keyring, row),
    automationShown: (row) => showAutomation(services, row),
  }
  return {
    channel: 'automation',
    follow: (hub) => follow(hub, sources),
    replay: (options, question) => replay(options, sources, question),
    endOf: ({ log }, { revision }, signal) => endOfNext(log, [AUTOMATION_STREAMS], revision, signal),
  }
}

/** Sources of the rows that events name, and their answered form. */
interface RunSources {
  runs: RunsAt
  /** Undefined for one that is gone, and for other subjects. */
  task(subject: Subject): Promise<TaskValues | undefined>
  runShown(row: RunRow): object
  automationShown(row: AutomationRow): object
}

/** Skips events unparsed when nobody asked for automations. */
const follow = (hub: FeedHub, sources: RunSources): Promise<Follower> => {
  const index = automationIndex(hub.options)
  const tellEach = async (event: RecordedEvent, before: number): Promise<void> => {
    for (const { organizationId, told } of await watchedEvents(hub, sources, event, before)) {
      hub.seen(index, told.reach)
      hub.offer(organizationId, told)
    }
    hub.seen(index, reachOf(event.position))
  }
  const tell = (event: RecordedEvent, before: number): Promise<void> | void =>
    hub.asksFor('automation') ? tellEach(event, before) : hub.seen(index, reachOf(event.position))
  return followLive(hub, { name: 'live-automations', index, prefixes: [AUTOMATION_STREAMS], tell })
}

/** Events of an organization between two reaches, from the log; a final undefined marks a gap or too much to read. */
async function* replay(
  options: FeedOptions,
  sources: RunSources,
  { organizationId, from, to, signal }: ReplayQuestion,
): AsyncGenerator<LiveEvent | undefined> {
  if (isBehind(to, from)) return
  if (await isTruncatedAfter(options, from)) return yield undefined
  const index = automationIndex(options)
  let before = from.revision
  let read = 0
  for await (const { events, checkpoint } of options.log.follow(
    { prefixes: [AUTOMATION_STREAMS] },
    from.revision,
    signal,
    REPLAY_PAGE_EVENTS,
  )) {
    const isOwn = (one: string): boolean => one === organizationId
    const paged = {
      ...sources,
      task: onceEach(sources.task),
      runs: await readAhead(sources.runs, organizationId, events),
    }
    for (const event of events) {
      for (const { told } of await automationEvents(options, paged, event, { index, before }, isOwn)) {
        if (!isBehind(told.reach, from) && isBehind(told.reach, to)) yield told
      }
      before = event.position
    }
    read += events.length
    if (checkpoint > to.revision || (checkpoint === to.revision && to.seen === 0)) return
    if (read > REPLAY_EVENTS_MAX) return yield undefined
  }
}

const automationIndex = ({ partitions }: FeedOptions): number => partOf('automation', partitions)

/** Event for all subscribers; built again for subscribers that joined while its rows were read. */
const watchedEvents = async (
  hub: FeedHub,
  sources: RunSources,
  event: RecordedEvent,
  before: number,
): ReturnType<typeof automationEvents> => {
  const { options } = hub
  const at = { index: automationIndex(options), before }
  const asks = (organizationId: string): boolean => hub.asksFor('automation', organizationId)
  for (;;) {
    const left = new Set<string>()
    const isWatched = (organizationId: string): boolean => asks(organizationId) || !left.add(organizationId)
    const once = { ...sources, task: onceEach(sources.task) }
    const events = await automationEvents(options, once, event, at, isWatched)
    if (![...left].some(asks)) return events
  }
}

/** Whether runs reported after it may have been truncated from the log. */
const isTruncatedAfter = async ({ log, partitions }: FeedOptions, { revision: position }: Reach): Promise<boolean> => {
  for (let partition = 0; partition < partitions; partition++) {
    const [first] = await log.read(runsStream(partition), 0, 1)
    if (first !== undefined && first.revision > 0 && first.position > position) return true
  }
  return false
}

/**
 * Runs of an event, each as its GET showed it then, or the automation that it deactivates; for the chosen
 * organizations. `at` names the part of the cursor that the event moves, and the position that it follows.
 */
const automationEvents = async (
  { log }: FeedOptions,
  sources: RunSources,
  event: RecordedEvent,
  at: { index: number; before: number },
  isChosen: (organizationId: string) => boolean,
): Promise<{ organizationId: string; told: LiveEvent }[]> => {
  const liveEvent = (seen: number, shown: () => object, sight: ReturnType<typeof sightOfRun> = {}): LiveEvent => {
    let text: string | undefined
    return {
      channel: 'automation',
      ...sight,
      partition: at.index,
      reach: { revision: at.before, seen },
      text: () => (text ??= JSON.stringify(shown())),
    }
  }
  if (event.type === AUTOMATION_DEACTIVATED) {
    const organizationId = event.metadata.organizationId ?? ''
    const row = isChosen(organizationId)
      ? await foldStream<AutomationRow | undefined>(log, event.stream, event.revision, undefined, evolveRow)
      : undefined
    return row === undefined ? [] : [{ organizationId, told: liveEvent(1, () => sources.automationShown(row)) }]
  }
  const fact = runFactOf(event)
  const runs =
    fact.type === RUNS_OWED
      ? owedRuns(fact.data as RunsOwed, event.stream, isChosen)
      : await changedRuns(sources, fact, event, isChosen)
  return Promise.all(
    runs.map(async ({ row, ordinal }) => {
      const { subject } = row.trigger
      const sight = sightOfRun(subject, await sources.task(subject))
      return { organizationId: row.organizationId, told: liveEvent(ordinal, () => sources.runShown(row), sight) }
    }),
  )
}

/** The task that a run is about, as it is now: the tables may lack one that was just made. */
const taskIn =
  (log: LiveServices['log']): RunSources['task'] =>
  async ({ type, id }) => {
    const [last] = type === 'task' ? await log.read(TASK_STREAMS + id, 'end', 1, 'backwards') : []
    if (last?.type !== TASK.created && last?.type !== TASK.changed) return undefined
    return dataOf<ResourceData>(last).values as unknown as TaskValues
  }

/** The same, each task read once: for an event, or a page of them, as tasks may be large. */
const onceEach = (task: RunSources['task']): RunSources['task'] => {
  const known = new Map<string, ReturnType<typeof task>>()
  return (subject) => {
    // Records of several kinds may share an id.
    const key = `${subject.type} ${subject.id}`
    const found = known.get(key) ?? task(subject)
    known.set(key, found)
    return found
  }
}

/** A run as of an event. */
interface RunThen {
  row: RunRow
  ordinal: number
}

const owedRuns = (owed: RunsOwed, stream: string, isChosen: (organizationId: string) => boolean): RunThen[] =>
  owedRows(owed, stream)
    .map((row, i) => ({ row, ordinal: i + 1 }))
    .filter(({ row }) => isChosen(row.organizationId))

const changedRuns = async (
  sources: RunSources,
  fact: Fact,
  event: RecordedEvent,
  isChosen: (organizationId: string) => boolean,
): Promise<RunThen[]> => {
  const changes = changesOf(fact, event.loggedAt).filter(({ organizationId }) => isChosen(organizationId))
  const runs: RunThen[] = []
  for (const organizationId of new Set(changes.map((change) => change.organizationId))) {
    const own = changes.filter((change) => change.organizationId === organizationId)
    const rows = await sources.runs(
      organizationId,
      own.map(({ runId }) => runId),
      [event],
    )
    for (const [i, { at, ordinal }] of own.entries()) {
      const row = rows[i]
      if (row !== undefined) runs.push({ row: at(row), ordinal })
    }
  }
  return runs.sort((a, b) => a.ordinal - b.ordinal)
}
