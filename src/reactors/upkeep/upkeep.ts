import type { EventLog } from '../../engines/event-log.ts'
import { decodeJson, encodeJson, type NewEvent, type RecordedEvent } from '../../kernel/event.ts'
import { idOfStream } from '../../kit/commands/declared-event.ts'
import { idFrom, idSource } from '../../kit/commands/ids.ts'
import { Follower, type FollowerServices } from '../../kit/consumers/follower.ts'
import type { Services } from '../../kit/services.ts'

/**
 * What the streams `upkeep-<id>` hold: a task that somebody asked for, and how it ended. It is done once in the whole
 * service, by whichever process owns the consumer `upkeep`, also after a restart.
 */
const UPKEEP_STREAMS = 'upkeep-'
const ASKED = 'upkeepAsked.v1'
const BEGUN = 'upkeepBegun.v1'
const DONE = 'upkeepDone.v1'
const FAILED = 'upkeepFailed.v1'

export const UPKEEP = 'upkeep'

export interface UpkeepAsked {
  task: 'rebuild' | 'sweep' | 'forget'
  /** Of the read model or consumer; empty for all. */
  name: string
}

export type UpkeepTasks = { [task in UpkeepAsked['task']]: (name: string, signal: AbortSignal) => Promise<unknown> }

/** A task that was begun so often and never came to its end would do so for ever. */
const ATTEMPTS_MAX = 3
const STREAM_EVENTS_MAX = 100

/** Asks for a task; answers the stream that its end stands in. */
export const askUpkeep = async (
  { log, clock }: Pick<Services, 'log' | 'clock'>,
  asked: UpkeepAsked,
): Promise<string> => {
  const id = idSource(clock.now()).next()
  const stream = UPKEEP_STREAMS + id
  await log.append(stream, [eventOf(ASKED, asked, idFrom(UPKEEP, id))], 'none')
  return stream
}

/** What the end of a task reports, wherever it is done. @throws Error with what its failure says, or when the signal is aborted. */
export const upkeepEnd = async (
  { log }: Pick<Services, 'log'>,
  stream: string,
  signal: AbortSignal,
): Promise<unknown> => {
  for await (const { events } of log.follow({ stream }, undefined, signal)) {
    const end = events.find(({ type }) => type === DONE || type === FAILED)
    if (end?.type === DONE) return decodeJson<{ report: unknown }>(end.data).report
    if (end !== undefined) throw new Error(decodeJson<{ message: string }>(end.data).message)
  }
  throw new Error('the service is stopping')
}

/** Does what is asked for, one task after the other. */
export const doUpkeep = (services: FollowerServices & Pick<Services, 'log' | 'tables'>, tasks: UpkeepTasks): Follower =>
  new Follower(services, {
    name: UPKEEP,
    source: { prefixes: [UPKEEP_STREAMS] },
    handle: async ({ events }, signal) => {
      const asked = events.filter(({ type }) => type === ASKED)
      for (const event of asked) if (!signal.aborted) await doOne(services.log, event, tasks, signal)
      return asked.length > 0 ? [] : undefined
    },
  }).start(services.tables)

const doOne = async (log: EventLog, event: RecordedEvent, tasks: UpkeepTasks, signal: AbortSignal): Promise<void> => {
  const { stream } = event
  const events = await log.read(stream, 0, STREAM_EVENTS_MAX)
  if (events.some(({ type }) => type === DONE || type === FAILED)) return
  const attempt = events.filter(({ type }) => type === BEGUN).length + 1
  const append = (type: string, data: object) =>
    log.append(stream, [eventOf(type, data, idFrom(UPKEEP, idOfStream(stream), type, attempt))], 'any')
  if (attempt > ATTEMPTS_MAX) {
    await append(FAILED, { message: `it was begun ${ATTEMPTS_MAX} times and never came to its end` })
    return
  }
  await append(BEGUN, { attempt })
  const { task, name } = decodeJson<UpkeepAsked>(event.data)
  try {
    await append(DONE, { report: (await tasks[task](name, signal)) ?? null })
  } catch (error) {
    if (signal.aborted) return
    await append(FAILED, { message: (error as Error).message })
  }
}

const eventOf = (type: string, data: object, id: string): NewEvent => ({
  id,
  type,
  data: encodeJson(data),
  isJson: true,
  metadata: { actor: `reactor:${UPKEEP}` },
})
