import { factOf } from '../../kernel/event.ts'
import type { Row, TableDeclaration } from '../../kernel/table.ts'
import { idOfStream } from '../commands/declared-event.ts'
import type { Projection } from '../consumers/projection.ts'
import { evolveJob, type JobAsked, type JobKind, type JobRow } from './job.ts'

/** Every job of a kind until it is deleted: the rows of its lists. */
export const jobRows = <Asked extends JobAsked, Job extends JobRow>(
  kind: JobKind<Asked, Job>,
  table: TableDeclaration,
): Projection => ({
  name: table.name,
  version: table.version,
  tables: [table],
  prefixes: [kind.prefix],
  inputs: Object.values(kind.types),
  apply: async (event, rows) => {
    const id = idOfStream(event.stream)
    const fact = factOf(event)
    const { organizationId } = fact.data as JobAsked
    const before = await rows.get<Job>(table.name, organizationId, id)
    // A crash between the rows and their checkpoint has events come again.
    if (before !== undefined && before.version > event.revision) return
    const next = evolveJob(kind, id, before, fact)
    if (next === undefined) rows.delete(table.name, organizationId, id)
    else rows.put(table.name, organizationId, id, next)
  },
})

/** The consumer that runs the jobs of customers. */
export const JOBS = 'jobs'

/** A runner's own rows: every job that is not deleted, by stream, with its data for a restart. */
export const JOB_RUNS: TableDeclaration = {
  name: 'job_runs',
  version: 1,
  lives: 'partition',
  equality: ['hasEnded'],
  range: ['askedAt'],
}

export interface JobRunRow extends Row {
  /** Category of its stream. */
  prefix: string
  organizationId: string
  /** ms since the epoch. */
  askedAt: number
  hasEnded: boolean
}
