import type { TableStore } from '../../engines/table-store.ts'
import { Failure } from '../../kernel/errors.ts'
import { BACKTESTS, type BacktestStatus } from './views.ts'

/** Back-tests of one organization that may wait or run. */
export const ORGANIZATION_BACKTESTS_MAX = 10
const RETRY_AFTER_S = 60
const UNFINISHED: readonly BacktestStatus[] = ['queued', 'processing']

/** Keeps an organization's jobs to their bound: counts the stored ones and those that are being asked for here. */
export class BacktestPlaces {
  private readonly tables: Pick<TableStore, 'find' | 'getMany'>
  /** Ids by organization, until their rows are stored. */
  private readonly asked = new Map<string, Set<string>>()

  constructor(tables: Pick<TableStore, 'find' | 'getMany'>) {
    this.tables = tables
  }

  /** Keeps a place for a job that is about to be logged. @throws Failure rate_limited. */
  async keep(organizationId: string, backtestId: string): Promise<void> {
    const asked = this.asked.get(organizationId) ?? new Set()
    this.asked.set(organizationId, asked.add(backtestId))
    const question = { where: { status: UNFINISHED }, limit: 1, total: true }
    const { total = 0 } = await this.tables.find(BACKTESTS.name, organizationId, question)
    const ids = [...asked]
    const rows = await this.tables.getMany(BACKTESTS.name, organizationId, ids)
    const isRepeat = rows[ids.indexOf(backtestId)] !== undefined
    for (const [i, row] of rows.entries()) if (row !== undefined) this.release(organizationId, ids[i])
    const others = total + asked.size - (isRepeat ? 0 : 1)
    if (isRepeat || others < ORGANIZATION_BACKTESTS_MAX) return
    this.release(organizationId, backtestId)
    const message = `${others} back-tests of your organization wait or run; wait for one to end, or cancel one.`
    throw new Failure('rate_limited', { message, retryAfterSeconds: RETRY_AFTER_S })
  }

  /** The job did not come into the log. */
  release(organizationId: string, backtestId: string): void {
    const asked = this.asked.get(organizationId)
    asked?.delete(backtestId)
    if (asked?.size === 0) this.asked.delete(organizationId)
  }
}
