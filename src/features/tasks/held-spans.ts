import { isDeepStrictEqual } from 'node:util'
import type { EventLog } from '../../engines/event-log.ts'
import { dataOf, type RecordedEvent } from '../../kernel/event.ts'
import type { ResourceData } from '../../kit/commands/declared-event.ts'
import { type Actor, actorOf, TASK, type TaskValues } from './views.ts'

/** A task as of one of its events. */
export interface TaskFact {
  revision: number
  /** Effective time: at the device if the event has it, ms since the epoch. */
  atMs: number
  by: Actor
  values: TaskValues
}

/** A time during which a user had a task and its hub, ms since the epoch; `toMs` is exclusive. */
export interface HeldSpan {
  fromMs: number
  toMs: number
  /** End of the span; absent while it lasts. */
  ended?: { by: Actor; state: TaskValues['state']; title: string }
}

type Log = Pick<EventLog, 'read'>

/** A step in one of the conditions that decide who has a task. */
interface Step {
  atMs: number
  by: Actor
  task?: TaskValues
  team?: { id: string; userIds: readonly string[] }
  hubIds?: readonly string[]
}

const BATCH_EVENTS = 200

export const factsOf = async (log: Log, taskId: string): Promise<TaskFact[]> => {
  const facts: TaskFact[] = []
  for await (const event of eventsOf(log, `task-${taskId}`)) {
    if (event.type !== TASK.created && event.type !== TASK.changed) continue
    const { values: kept, at } = dataOf<ResourceData>(event)
    const values = kept as unknown as TaskValues
    // With a clock that is ahead, a change is dated later than when it took effect.
    const atMs = Math.min(Date.parse(momentOf(facts.at(-1)?.values, values) ?? at), Date.parse(at))
    facts.push({ revision: event.revision, atMs, by: actorOf(event.metadata.actor), values })
  }
  return facts
}

const MOMENTS = ['finishedAt', 'cancelledAt', 'startedAt', 'handedAt', 'assignedAt'] as const

const momentOf = (before: TaskValues | undefined, after: TaskValues): string | undefined => {
  const changed = MOMENTS.find((name) => after[name] !== undefined && after[name] !== before?.[name])
  return changed && after[changed]
}

/** Spans in which a user had a task: assigned, or in the assigned team, with its hub. `hasAllHubs`: in any hub. */
export const heldSpans = async (
  log: Log,
  facts: readonly TaskFact[],
  { userId, hasAllHubs }: { userId: string; hasAllHubs: boolean },
): Promise<HeldSpan[]> => {
  const steps: Step[] = facts
    .filter(({ values }, i) => i === 0 || isHandedOver(facts[i - 1].values, values))
    .map(({ atMs, by, values }) => ({ atMs, by, task: values }))
  const teamIds = new Set(facts.flatMap(({ values }) => values.teamId ?? []))
  for (const id of teamIds)
    steps.push(
      ...(await listsOf(log, `team-${id}`, 'userIds')).map(({ ids, ...step }) => ({
        ...step,
        team: { id, userIds: ids },
      })),
    )
  if (!hasAllHubs)
    steps.push(...(await listsOf(log, `user-${userId}`, 'hubId')).map(({ ids, ...step }) => ({ ...step, hubIds: ids })))
  // Steps from before the task come first; those of one moment stay in log order.
  return spansIn(
    steps.sort((a, b) => a.atMs - b.atMs),
    userId,
    hasAllHubs,
  )
}

/** Whether other people have it, or it is in another hub. */
export const isHandedOver = (before: TaskValues, after: TaskValues): boolean =>
  after.hubId !== before.hubId ||
  after.teamId !== before.teamId ||
  !isDeepStrictEqual(after.assigneeIds, before.assigneeIds)

const spansIn = (steps: readonly Step[], userId: string, hasAllHubs: boolean): HeldSpan[] => {
  const spans: HeldSpan[] = []
  const teams = new Map<string, readonly string[]>()
  let task: TaskValues | undefined
  let hubIds: readonly string[] = []
  let open: HeldSpan | undefined
  for (const { atMs, by, ...step } of steps) {
    task = step.task ?? task
    hubIds = step.hubIds ?? hubIds
    if (step.team !== undefined) teams.set(step.team.id, step.team.userIds)
    const isTheirs =
      task !== undefined &&
      (task.assigneeIds.includes(userId) || (task.teamId !== undefined && teams.get(task.teamId)?.includes(userId))) &&
      (hasAllHubs || hubIds.includes(task.hubId))
    if (isTheirs && open === undefined) {
      open = { fromMs: atMs, toMs: Number.POSITIVE_INFINITY }
      spans.push(open)
    }
    if (!isTheirs && open !== undefined && task !== undefined) {
      Object.assign(open, { toMs: atMs, ended: { by, state: task.state, title: task.title } })
      open = undefined
    }
  }
  return spans
}

/** Values of a list in a record, at each of its events. */
const listsOf = async (
  log: Log,
  stream: string,
  field: string,
): Promise<{ atMs: number; by: Actor; ids: readonly string[] }[]> => {
  const lists: { atMs: number; by: Actor; ids: readonly string[] }[] = []
  for await (const event of eventsOf(log, stream)) {
    const { values, at } = dataOf<Partial<ResourceData>>(event)
    if (values === undefined || at === undefined) continue
    const ids = event.type.endsWith('Deleted') ? [] : ((values[field] ?? []) as string[])
    lists.push({ atMs: Date.parse(at), by: actorOf(event.metadata.actor), ids })
  }
  return lists
}

async function* eventsOf(log: Log, stream: string): AsyncGenerator<RecordedEvent> {
  for (let from = 0; ; ) {
    const events = await log.read(stream, from, BATCH_EVENTS)
    yield* events
    if (events.length < BATCH_EVENTS) return
    from = events[events.length - 1].revision + 1
  }
}
