import type { TableStore } from '../../engines/table-store.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { Logger } from '../../kernel/logger.ts'
import { NO_ORGANIZATION, type Row, type TableDeclaration } from '../../kernel/table.ts'
import { TRACKERS_TABLE } from './views.ts'

/** Points refused for good, by tracker. Written directly, not by a projection: the log never had them. */
const REJECTED_POINTS: TableDeclaration = { name: 'rejected-points', version: 1, lives: 'row' }

type RejectedRow = Row & { count: number; lastAt: number; lastCode: string }

/** Members of a tracker's answer. */
export interface RejectedPoints {
  count: number
  lastAt: string
  lastCode: string
}

const KEPT_MS = 90 * 86_400_000
/** Trackers whose counts wait to be written. */
const WAITING_MAX = 10_000

export interface RejectedPointsOptions {
  tables: Pick<TableStore, 'declare' | 'getMany' | 'commit'>
  clock: Clock
  logger: Logger
}

/** Counts refused points. Processes that count for one tracker at the same moment may lose some. */
export class RejectedPointCounts {
  private readonly options: RejectedPointsOptions
  private waiting = new Map<string, { organizationId: string; count: number; code: string }>()
  private writing: Promise<void> | undefined

  constructor(options: RejectedPointsOptions) {
    this.options = options
  }

  /** Resolves when it is written or has failed: nothing else depends on it. */
  async note(organizationId: string, trackerId: string, count: number, code: string): Promise<void> {
    const before = this.waiting.get(trackerId)
    if (before === undefined && this.waiting.size >= WAITING_MAX) return
    this.waiting.set(trackerId, { organizationId, count: count + (before?.count ?? 0), code })
    while (this.waiting.has(trackerId)) await (this.writing ??= this.writeAll())
  }

  private async writeAll(): Promise<void> {
    const waiting = this.waiting
    this.waiting = new Map()
    try {
      await this.write(waiting)
    } catch (error) {
      this.options.logger.warn('refused points could not be counted', { error: String(error) })
    } finally {
      this.writing = undefined
    }
  }

  private async write(waiting: RejectedPointCounts['waiting']): Promise<void> {
    const { tables, clock } = this.options
    await declaredIn(tables)
    const ids = [...waiting.keys()]
    const before = await tables.getMany<RejectedRow>(REJECTED_POINTS.name, NO_ORGANIZATION, ids)
    const now = clock.now()
    const changes = ids.map((id, i) => {
      const { count, code } = waiting.get(id)!
      const row: RejectedRow = { count: count + (before[i]?.count ?? 0), lastAt: now, lastCode: code }
      return { table: REJECTED_POINTS.name, scope: NO_ORGANIZATION, id, row, expiresAt: now + KEPT_MS }
    })
    const isThere = await Promise.all(ids.map((id) => this.isTracker(waiting.get(id)!.organizationId, id)))
    const ofTrackers = changes.filter((_, i) => isThere[i])
    if (ofTrackers.length > 0) await tables.commit(ofTrackers)
  }

  private async isTracker(organizationId: string, id: string): Promise<boolean> {
    const [row] = await this.options.tables.getMany(TRACKERS_TABLE, organizationId, [id])
    return row !== undefined
  }
}

/** In the order of the trackers; undefined if none was refused. */
export const rejectedPointsOf = async (
  tables: Pick<TableStore, 'declare' | 'getMany'>,
  trackerIds: readonly string[],
): Promise<(RejectedPoints | undefined)[]> => {
  await declaredIn(tables)
  const rows = await tables.getMany<RejectedRow>(REJECTED_POINTS.name, NO_ORGANIZATION, trackerIds)
  return rows.map(
    (row) => row && { count: row.count, lastAt: new Date(row.lastAt).toISOString(), lastCode: row.lastCode },
  )
}

const declared = new WeakMap<object, Promise<void>>()

/** Declares the table once in a process. */
const declaredIn = (tables: Pick<TableStore, 'declare'>): Promise<void> => {
  const known = declared.get(tables)
  if (known !== undefined) return known
  const declaring = tables.declare(REJECTED_POINTS)
  declared.set(tables, declaring)
  declaring.catch(() => declared.delete(tables))
  return declaring
}
