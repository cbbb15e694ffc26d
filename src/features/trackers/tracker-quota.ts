import type { TableStore } from '../../engines/table-store.ts'
import type { Clock } from '../../kernel/clock.ts'
import { TRACKERS_TABLE } from './views.ts'

interface Count {
  trackers: number
  countedAt: number
  /** Made here, and not heard of through the log yet. */
  own: Set<string>
}

/** The table is asked again after so long: other nodes make trackers too. */
const COUNT_AGAIN_MS = 60_000
const ORGANIZATIONS_MAX = 10_000

/** How many trackers each organization has, so that `--trackers-max` can be kept without counting at each creation. */
export class TrackerQuota {
  private readonly counts = new Map<string, Promise<Count>>()
  private readonly tables: Pick<TableStore, 'find'>
  private readonly clock: Clock
  private readonly trackersMax: number

  constructor(tables: Pick<TableStore, 'find'>, clock: Clock, trackersMax: number) {
    this.tables = tables
    this.clock = clock
    this.trackersMax = trackersMax
  }

  /** Takes a place for a tracker that is about to be made; false when there is none. */
  async reserve(organizationId: string, trackerId: string): Promise<boolean> {
    const count = await this.countOf(organizationId)
    if (count.own.has(trackerId)) return true
    if (count.trackers >= this.trackersMax) return false
    count.trackers++
    count.own.add(trackerId)
    return true
  }

  /** The tracker was there already, or could not be made. */
  async release(organizationId: string, trackerId: string): Promise<void> {
    const count = await this.countOf(organizationId)
    if (count.own.delete(trackerId)) count.trackers--
  }

  /** The log has a creation, of this node or another. */
  async created(organizationId: string, trackerId: string): Promise<void> {
    const count = await this.counts.get(organizationId)
    if (count !== undefined && !count.own.delete(trackerId)) count.trackers++
  }

  async deleted(organizationId: string): Promise<void> {
    const count = await this.counts.get(organizationId)
    if (count !== undefined && count.trackers > 0) count.trackers--
  }

  private async countOf(organizationId: string): Promise<Count> {
    const known = this.counts.get(organizationId)
    if (known !== undefined) {
      const count = await known
      if (count.own.size > 0 || this.clock.monotonic() - count.countedAt < COUNT_AGAIN_MS) return count
    }
    if (this.counts.get(organizationId) === known) {
      const counting = this.count(organizationId)
      this.counts.set(organizationId, counting)
      counting.catch(() => this.counts.delete(organizationId))
      if (this.counts.size > ORGANIZATIONS_MAX) this.counts.delete(this.counts.keys().next().value as string)
    }
    return this.counts.get(organizationId) as Promise<Count>
  }

  private async count(organizationId: string): Promise<Count> {
    const { total } = await this.tables.find(TRACKERS_TABLE, organizationId, { limit: 1, total: true })
    return { trackers: total ?? 0, countedAt: this.clock.monotonic(), own: new Set() }
  }
}
