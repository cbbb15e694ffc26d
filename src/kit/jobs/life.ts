import { randomUUID } from 'node:crypto'
import type { EventLog } from '../../engines/event-log.ts'
import type { Decider } from '../../kernel/decider.ts'
import { Failure } from '../../kernel/errors.ts'
import type { Fact } from '../../kernel/event.ts'
import { type Handled, handleCommand } from '../commands/handle-command.ts'
import { evolveJob, hasEnded, type JobAsked, type JobKind, type JobRow } from './job.ts'

export interface JobState<Job extends JobRow = JobRow> {
  row: Job | undefined
  isDeleted: boolean
}

export type JobCommand<Asked extends JobAsked = JobAsked> =
  | { kind: 'request'; requested: Asked }
  | { kind: 'start'; attempt: number; at: number }
  | { kind: 'progress'; attempt: number; processed: number; cursor?: unknown; at: number }
  | { kind: 'finish'; attempt: number; processed: number; result?: unknown; at: number }
  | { kind: 'fail'; attempt: number; code: string; message: string; at: number }
  /** Ends it, unless it has ended; its record stays. */
  | { kind: 'cancel'; organizationId: string; at: number }
  /** Ends it, unless it has ended, and deletes it. */
  | { kind: 'delete'; organizationId: string; at: number }

export interface JobDeleted {
  organizationId: string
  /** Row of a job that had not ended, as it was: its stream is truncated, and its watchers are to learn of its end. */
  cancelled?: JobRow
  at: number
}

/**
 * The life of one job. Commands of an attempt that is no longer under way (cancelled, ended, restarted elsewhere) make
 * no fact; the process that runs it sees that by the state.
 */
export const jobDecider = <Asked extends JobAsked, Job extends JobRow>(
  kind: JobKind<Asked, Job>,
  id: string,
): Decider<JobState<Job>, JobCommand<Asked>> => ({
  initial: { row: undefined, isDeleted: false },
  decide: (command, { row, isDeleted }) => {
    const { types } = kind
    if (command.kind === 'request') {
      if (isDeleted) throw new Failure('not_found')
      return row === undefined ? [{ type: types.requested, data: command.requested }] : []
    }
    if (command.kind === 'delete' || command.kind === 'cancel') return end(kind, command, row)
    if (row === undefined || !isMeant(command, row)) return []
    const { kind: what, ...said } = command
    const type = { start: types.started, progress: types.progressed, finish: types.finished, fail: types.failed }[what]
    return [{ type, data: { organizationId: row.organizationId, ...said } }]
  },
  evolve: ({ row, isDeleted }, happened) => ({
    row: evolveJob(kind, id, row, happened),
    isDeleted: isDeleted || happened.type === kind.types.deleted,
  }),
})

type Said = Exclude<JobCommand, { kind: 'request' | 'cancel' | 'delete' }>

/** Whether it comes from the attempt under way. A cancelled one may still report its progress. */
const isMeant = (command: Said, row: JobRow): boolean => {
  if (command.kind === 'start') return !hasEnded(row) && command.attempt === row.attempt + 1
  const isOpen = !hasEnded(row) || (command.kind === 'finish' && row.status === 'cancelled' && row.result === undefined)
  return isOpen && command.attempt === row.attempt
}

const end = (
  { types }: Pick<JobKind, 'types'>,
  { kind, organizationId, at }: { kind: 'delete' | 'cancel'; organizationId: string; at: number },
  row: JobRow | undefined,
): Fact[] => {
  if (row === undefined || row.organizationId !== organizationId) throw new Failure('not_found')
  if (kind === 'delete')
    return [{ type: types.deleted, data: { organizationId, ...(hasEnded(row) ? {} : { cancelled: row }), at } }]
  return hasEnded(row) ? [] : [{ type: types.cancelled, data: { organizationId, at } }]
}

/** The last row that watchers see of a job deleted before its end. */
export const cancelledRow = ({ cancelled, at }: JobDeleted): JobRow | undefined =>
  cancelled && { ...cancelled, status: 'cancelled', updatedAt: at }

/** Logs the service's events of a job. No other process has their ids: its start is not taken for one's own. */
export const teller = <Asked extends JobAsked, Job extends JobRow>(
  log: EventLog,
  kind: JobKind<Asked, Job>,
  id: string,
): ((command: JobCommand<Asked>) => Promise<Handled<JobState<Job>>>) => {
  const ids = { next: () => randomUUID() }
  const metadata = { actor: `reactor:${kind.kind}`, $correlationId: id }
  return (command) => handleCommand(log, kind.stream(id), jobDecider(kind, id), command, { ids, metadata })
}
