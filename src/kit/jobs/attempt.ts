import type { EventLog } from '../../engines/event-log.ts'
import { anyAborted } from '../../kernel/any-aborted.ts'
import type { Clock } from '../../kernel/clock.ts'
import { decodeJson } from '../../kernel/event.ts'
import { hasEnded, type JobAsked, type JobKind, type JobRow } from './job.ts'
import { teller } from './life.ts'

/** One attempt, as its work sees it. */
export interface JobRun<Asked extends JobAsked = JobAsked> {
  id: string
  attempt: number
  asked: Asked
  /** As the last attempt that made progress left it. */
  cursor: unknown
  processed: number
  /** Aborts when the job is cancelled or deleted, when another attempt has begun, and when the service stops. */
  signal: AbortSignal
  /** Reports the progress, and where another attempt may continue. Most calls log nothing. */
  progress(processed: number, cursor?: unknown): Promise<void>
}

/** The work of a kind of jobs. */
export interface JobWork<Asked extends JobAsked = JobAsked, Job extends JobRow = JobRow> {
  kind: JobKind<Asked, Job>
  /** A failure that is not final is retried. A result answered although the job was cancelled is kept with it. */
  run(run: JobRun<Asked>): Promise<{ processed: number; result?: unknown }>
  /** Removes data that attempts up to this one have stored elsewhere. */
  release?(id: string, attempt: number): Promise<void>
}

/** Progress is logged after this share of the total at the earliest, and this long after it was logged last. */
const PROGRESS_SHARE = 0.01
const PROGRESS_MS = 1_000

interface AttemptServices {
  log: EventLog
  clock: Clock
  /** Aborts when the service stops: a result answered then is of an interrupted attempt. */
  closing: AbortSignal
}

/**
 * Begins an attempt and sees it to its end; the state tells whether it is still wanted. False where another attempt was
 * begun meanwhile, by a process that may have lost the job since. @throws its failure.
 */
export const runAttempt = async <Asked extends JobAsked>(
  { log, clock, closing }: AttemptServices,
  work: JobWork<Asked>,
  before: JobRow,
  ended: AbortSignal,
): Promise<boolean> => {
  const { kind } = work
  const { _id: id } = before
  const attempt = before.attempt + 1
  const tell = teller(log, kind, id)
  const { state, wrote } = await tell({ kind: 'start', attempt, at: clock.now() })
  const { row } = state
  const [first] = await log.read(kind.stream(id), 0, 1)
  // Without an event of its own it was begun by another process.
  if (row === undefined || wrote === undefined || first?.revision !== 0) return isOver(row)
  const overtaken = new AbortController()
  let overtaker: JobRow | undefined
  const { signal, release } = anyAborted(ended, overtaken.signal)
  const told = { processed: row.processed, atMs: clock.monotonic() }
  const progress = async (processed: number, cursor?: unknown): Promise<void> => {
    const nowMs = clock.monotonic()
    const isLittle = processed - told.processed < (row.total ?? 0) * PROGRESS_SHARE
    if (isLittle || nowMs - told.atMs < PROGRESS_MS) return
    // If the total is an estimate, there may be more.
    const shown = Math.min(processed, row.total ?? Number.POSITIVE_INFINITY)
    const said = { attempt, processed: shown, ...(cursor !== undefined && { cursor }), at: clock.now() }
    const { state: now } = await tell({ kind: 'progress', ...said })
    if (now.row?.attempt !== attempt) {
      overtaker = now.row
      overtaken.abort()
    }
    Object.assign(told, { processed, atMs: nowMs })
  }
  const asked = decodeJson<Asked>(first.data)
  const run = { id, attempt, asked, cursor: row.reached?.cursor, processed: row.processed, signal, progress }
  try {
    const end = await work.run(run)
    return closing.aborted || isOver((await tell({ kind: 'finish', attempt, ...end, at: clock.now() })).state.row)
  } catch (error) {
    if (!overtaken.signal.aborted) throw error
    return isOver(overtaker)
  } finally {
    release()
  }
}

export const isOver = (row: JobRow | undefined): boolean => row === undefined || hasEnded(row)
