import type { UserCaller } from '../../kernel/caller.ts'
import { Failure } from '../../kernel/errors.ts'
import type { Fact } from '../../kernel/event.ts'
import { NO_ORGANIZATION, type Row, type TableDeclaration } from '../../kernel/table.ts'

/** First event of a job; the input of the kind stands beside. */
export interface JobAsked {
  organizationId: string
  /** ms since the epoch, as in all events of jobs. */
  at: number
}

export type JobStatus = 'queued' | 'processing' | 'completed' | 'failed' | 'cancelled'

/** A job as of its last event. */
export interface JobRow<Result = unknown> extends Row {
  _id: string
  organizationId: string
  status: JobStatus
  /** Number of attempts begun. */
  attempt: number
  /** Amount of work, in the units of `processed`. */
  total?: number
  processed: number
  /** Place where the next attempt continues, and the attempt that got there; absent where each starts over. */
  reached?: { attempt: number; cursor: unknown }
  result?: Result
  error?: { code: string; message: string }
  /** ms since the epoch. */
  createdAt: number
  updatedAt: number
  version: number
}

export interface JobTypes {
  requested: string
  started: string
  progressed: string
  finished: string
  failed: string
  cancelled: string
  deleted: string
}

interface JobDeclaration<Asked extends JobAsked, Job extends JobRow> {
  /** Noun of the streams `<kind>-<id>` and of the events in them. */
  kind: string
  /** Names of events that are not `<kind>Requested.v1`, … */
  types?: Partial<JobTypes>
  /** Members of its rows taken from the request, beside the organization. */
  row(asked: Asked): Partial<Job>
  /** Attempts without progress after which it fails. Default 8. */
  attemptsMax?: number
  /** Whether another attempt would fail in the same way; by default true for `too_large` and `not_found`. */
  isFinal?(error: unknown): boolean
}

/** A kind of work that outlives its request: any process may request or cancel it, its owner runs it. */
export interface JobKind<Asked extends JobAsked = JobAsked, Job extends JobRow = JobRow>
  extends Required<JobDeclaration<Asked, Job>> {
  types: JobTypes
  /** Category of its streams, with the dash. */
  prefix: string
  stream(id: string): string
}

/** View of a kind of jobs for customers. */
export interface JobView<Job extends JobRow = JobRow> {
  kind: JobKind<never, Job>
  /** As its GET and the live channel `job` answer it to the viewer. */
  shown(job: Job, viewer: UserCaller): object
  sees(caller: UserCaller, job: Job): boolean
  /** Whether it is one of the paths that begin `/geofence`. */
  isOfGeofences?: true
}

/** A kind of jobs of customers, and the table of its rows. */
export interface KeptJobs {
  kind: JobKind<never>
  table: TableDeclaration
}

/** Limits on the jobs of a kind that customers may request. */
export interface JobBounds {
  table: TableDeclaration
  /** Name of these jobs in the message of a 429. */
  plural: string
  /** Jobs of one organization that may wait or run. */
  organizationMax: number
}

export const defineJob = <Asked extends JobAsked, Job extends JobRow>(
  declared: JobDeclaration<Asked, Job>,
): JobKind<Asked, Job> => {
  const { kind } = declared
  const types: JobTypes = {
    requested: `${kind}Requested.v1`,
    started: `${kind}Started.v1`,
    progressed: `${kind}Progressed.v1`,
    finished: `${kind}Finished.v1`,
    failed: `${kind}Failed.v1`,
    cancelled: `${kind}Cancelled.v1`,
    deleted: `${kind}Deleted.v1`,
    ...declared.types,
  }
  const prefix = `${kind}-`
  return { attemptsMax: 8, isFinal, ...declared, types, prefix, stream: (id) => prefix + id }
}

const isFinal = (error: unknown): boolean =>
  error instanceof Failure && (error.code === 'too_large' || error.code === 'not_found')

export const hasEnded = ({ status }: Pick<JobRow, 'status'>): boolean => status !== 'queued' && status !== 'processing'

/** Attempts begun since one made progress. */
export const vainAttempts = ({ attempt, reached }: JobRow): number => attempt - (reached?.attempt ?? 0)

interface JobSaid {
  attempt: number
  processed: number
  cursor?: unknown
  result?: unknown
  code: string
  message: string
  at: number
}

/** The row after one more event of its stream; undefined once it is deleted. */
export const evolveJob = <Asked extends JobAsked, Job extends JobRow>(
  { types, row: rowOf }: Pick<JobKind<Asked, Job>, 'types' | 'row'>,
  id: string,
  row: Job | undefined,
  { type, data }: Fact,
): Job | undefined => {
  if (type === types.requested) {
    const { organizationId = NO_ORGANIZATION, at } = data as Partial<Asked>
    const begin = { status: 'queued', attempt: 0, processed: 0, createdAt: at, updatedAt: at, version: 1 }
    return { _id: id, organizationId, ...rowOf(data as Asked), ...begin } as unknown as Job
  }
  if (row === undefined || type === types.deleted) return undefined
  return { ...row, version: row.version + 1, ...changeOf(types, row, type, data as JobSaid) }
}

const changeOf = (types: JobTypes, row: JobRow, type: string, said: JobSaid): Partial<JobRow> => {
  const { attempt, processed, cursor, result, code, message, at: updatedAt } = said
  if (type === types.started)
    return { updatedAt, status: 'processing', attempt, processed: row.reached === undefined ? 0 : row.processed }
  if (type === types.progressed)
    return { updatedAt, processed, ...(cursor !== undefined && { reached: { attempt, cursor } }) }
  if (type === types.finished) {
    const isCancelled = row.status === 'cancelled' // its progress by then
    return { updatedAt, processed, result, ...(!isCancelled && { status: 'completed', total: processed }) }
  }
  if (type === types.failed) return { updatedAt, status: 'failed', error: { code, message } }
  return { updatedAt, ...(type === types.cancelled && { status: 'cancelled' }) }
}
