import type { EventLog } from '../../engines/event-log.ts'
import { decodeJson, encodeJson } from '../../kernel/event.ts'
import { idFrom, idSource } from '../../kit/commands/ids.ts'
import { defineJob, type JobAsked, type JobRow } from '../../kit/jobs/job.ts'
import type { JobWork } from '../../kit/jobs/attempt.ts'
import { NO_ORGANIZATION } from '../../kernel/table.ts'
import type { Services } from '../../kit/services.ts'

/** The consumer of maintenance tasks. */
export const UPKEEP = 'upkeep'

interface UpkeepAsked extends JobAsked {
  task: 'rebuild' | 'sweep' | 'forget'
  /** Name of the read model or consumer; empty for all. */
  name: string
}

export type UpkeepTasks = { [task in UpkeepAsked['task']]: (name: string, signal: AbortSignal) => Promise<unknown> }

/** A task requested by an operator; one runs at a time, and none is retried after a failure. */
const TASK = defineJob<UpkeepAsked, JobRow>({
  kind: UPKEEP,
  types: {
    requested: 'upkeepAsked.v1',
    started: 'upkeepBegun.v1',
    finished: 'upkeepDone.v1',
  },
  row: ({ task, name }) => ({ task, name }),
  attemptsMax: 3,
  isFinal: () => true,
})

/** Requests a task; answers the stream in which its end is logged. */
export const askUpkeep = async (
  { log, clock }: Pick<Services, 'log' | 'clock'>,
  asked: Pick<UpkeepAsked, 'task' | 'name'>,
): Promise<string> => {
  const id = idSource(clock.now()).next()
  const data: UpkeepAsked = { organizationId: NO_ORGANIZATION, ...asked, at: clock.now() }
  const metadata = { actor: `reactor:${UPKEEP}` }
  const event = { id: idFrom(UPKEEP, id), type: TASK.types.requested, data: encodeJson(data), isJson: true, metadata }
  await log.append(TASK.stream(id), [event], 'none')
  return TASK.stream(id)
}

/** The report of a task's end, wherever it ran. @throws Error with its failure's message, or when aborted. */
export const upkeepEnd = async (
  { log }: { log: Pick<EventLog, 'follow'> },
  stream: string,
  signal: AbortSignal,
): Promise<unknown> => {
  const { finished, failed } = TASK.types
  for await (const { events } of log.follow({ stream }, undefined, signal)) {
    const end = events.find(({ type }) => type === finished || type === failed)
    if (end?.type === finished) return decodeJson<{ result: unknown }>(end.data).result
    if (end !== undefined) throw new Error(decodeJson<{ message: string }>(end.data).message)
  }
  throw new Error('the service is stopping')
}

export const upkeepWork = (tasks: UpkeepTasks): JobWork<UpkeepAsked, JobRow> => ({
  kind: TASK,
  run: async ({ asked, signal }) => ({ processed: 1, result: (await tasks[asked.task](asked.name, signal)) ?? null }),
})
