import type { EventLog } from '../../engines/event-log.ts'
import type { TableStore } from '../../engines/table-store.ts'
import { Failure } from '../../kernel/errors.ts'
import { handleCommand, type Handled, stateBy } from '../commands/handle-command.ts'
import { metadataOf } from '../http/request-context.ts'
import type { RouteRequest } from '../http/route.ts'
import type { JobAsked, JobBounds, JobKind, JobRow } from './job.ts'
import { type JobCommand, jobDecider, type JobState } from './life.ts'
import { JOB_RUNS, JOBS } from './rows.ts'

/** Jobs of customers that may wait or run over all organizations. */
const ALL_MAX = 1_000
const RETRY_AFTER_S = 60

type PlaceTables = Pick<TableStore, 'declare' | 'find' | 'getMany'>

/** Enforces the bounds of jobs: counts the stored ones and those being requested here. */
export class JobPlaces {
  private readonly tables: PlaceTables
  private readonly bounds: JobBounds
  private readonly allMax: number
  /** Ids by organization, until their rows are stored. */
  private readonly asked = new Map<string, Set<string>>()

  constructor(tables: PlaceTables, bounds: JobBounds, allMax = ALL_MAX) {
    this.tables = tables
    this.bounds = bounds
    this.allMax = allMax
  }

  /** Keeps a place for a job that is about to be logged. @throws Failure rate_limited, overloaded. */
  async keep(organizationId: string, id: string): Promise<void> {
    const { plural, organizationMax } = this.bounds
    const asked = this.asked.get(organizationId) ?? new Set()
    this.asked.set(organizationId, asked.add(id))
    const { total, stored } = await this.counted(organizationId, [...asked])
    for (const one of stored) this.release(organizationId, one)
    if (stored.includes(id)) return // a repeat
    const others = total + asked.size - 1
    if (others >= organizationMax) {
      this.release(organizationId, id)
      const message = `${others} ${plural} of your organization wait or run; wait for one to end, or cancel one.`
      throw new Failure('rate_limited', { message, retryAfterSeconds: RETRY_AFTER_S })
    }
    // Where others have taken all places, an organization with none waiting still gets one.
    if ((await this.all()) < (others === 0 ? 2 : 1) * this.allMax) return
    this.release(organizationId, id)
    throw new Failure('overloaded', {
      message: 'Too many jobs wait; try again later.',
      retryAfterSeconds: RETRY_AFTER_S,
    })
  }

  /** The job did not come into the log. */
  release(organizationId: string, id: string): void {
    const asked = this.asked.get(organizationId)
    asked?.delete(id)
    if (asked?.size === 0) this.asked.delete(organizationId)
  }

  /** Jobs that wait or run by their rows, and those of the ids that have rows: by the same rows, so that none is counted twice or left out. */
  private async counted(organizationId: string, ids: readonly string[]): Promise<{ total: number; stored: string[] }> {
    const { table } = this.bounds
    const withRows = async (): Promise<string[]> => {
      const rows = await this.tables.getMany(table.name, organizationId, ids)
      return ids.filter((_, i) => rows[i] !== undefined)
    }
    const question = { where: { status: ['queued', 'processing'] }, limit: 1, total: true }
    for (let before = await withRows(); ; ) {
      const { total = 0 } = await this.tables.find(table.name, organizationId, question)
      const stored = await withRows()
      if (stored.length === before.length) return { total, stored }
      before = stored
    }
  }

  private async all(): Promise<number> {
    await this.tables.declare(JOB_RUNS)
    const { total = 0 } = await this.tables.find(JOB_RUNS.name, JOBS, {
      where: { hasEnded: false },
      limit: 1,
      total: true,
    })
    return total
  }
}

type Asking = Pick<RouteRequest, 'ids' | 'now' | 'caller' | 'address' | 'correlationId'> &
  Parameters<typeof metadataOf>[0]

/** Requests a job, if there is a place for it. @throws Failure rate_limited, overloaded, engine_down. */
export const askJob = <Asked extends JobAsked, Job extends JobRow>(
  { log, places }: { log: EventLog; places: JobPlaces },
  kind: JobKind<Asked, Job>,
  request: Asking,
  id: string,
  requested: Asked,
): Promise<Handled<JobState<Job>>> =>
  inPlace(places, requested.organizationId, id, () => requestJob(log, kind, request, id, requested))

/** Work that requests a job, if there is a place for it. @throws Failure rate_limited, overloaded, and of the work. */
export const inPlace = async <Result>(
  places: JobPlaces,
  organizationId: string,
  id: string,
  work: () => Promise<Result>,
): Promise<Result> => {
  await places.keep(organizationId, id)
  try {
    return await work()
  } catch (error) {
    places.release(organizationId, id)
    throw error
  }
}

/** Requests a job that has its place. @throws Failure engine_down */
export const requestJob = <Asked extends JobAsked, Job extends JobRow>(
  log: EventLog,
  kind: JobKind<Asked, Job>,
  request: Asking,
  id: string,
  requested: Asked,
): Promise<Handled<JobState<Job>>> => tell(log, kind, request, id, { kind: 'request', requested })

/** The job that an interrupted request asked for before; undefined where it did not get that far. */
export const askedBefore = async <Asked extends JobAsked, Job extends JobRow>(
  log: EventLog,
  kind: JobKind<Asked, Job>,
  id: string,
): Promise<Handled<JobState<Job>> | undefined> => {
  const asked = await stateBy(log, kind.stream(id), jobDecider(kind, id), () => true)
  return asked?.state.row && asked
}

/** Ends a job: `cancel` keeps its record, `delete` removes it. @throws Failure not_found, engine_down. */
export const endJob = <Asked extends JobAsked, Job extends JobRow>(
  log: EventLog,
  kind: JobKind<Asked, Job>,
  request: Asking,
  { _id, organizationId }: Pick<JobRow, '_id' | 'organizationId'>,
  how: 'cancel' | 'delete',
): Promise<Handled<JobState<Job>>> => tell(log, kind, request, _id, { kind: how, organizationId, at: request.now })

const tell = <Asked extends JobAsked, Job extends JobRow>(
  log: EventLog,
  kind: JobKind<Asked, Job>,
  request: Asking,
  id: string,
  command: JobCommand<Asked>,
): Promise<Handled<JobState<Job>>> =>
  handleCommand(log, kind.stream(id), jobDecider(kind, id), command, {
    ids: request.ids,
    metadata: metadataOf(request),
  })
