import type { TableStore } from '../../engines/table-store.ts'
import type { Clock } from '../../kernel/clock.ts'
import { defer } from './deferred.ts'
import type { Projection } from './projection.ts'
import type { Wrote } from '../http/route.ts'
import type { ProjectionRunner } from './run-projection.ts'

const POLL_MS = 20

/**
 * Lets a reply wait until whoever wrote can read its own write: until every projection that names one of the event
 * types among its inputs has applied the append, wherever it runs.
 */
export class Applied {
  private readonly projections: readonly Projection[]
  private readonly runner: ProjectionRunner | undefined
  private readonly tables: Pick<TableStore, 'checkpoint'>
  private readonly clock: Clock

  /** `runner` has those projections that run in this process; the others are asked for by their stored checkpoint. */
  constructor(
    projections: readonly Projection[],
    runner: ProjectionRunner | undefined,
    tables: Pick<TableStore, 'checkpoint'>,
    clock: Clock,
  ) {
    this.projections = projections
    this.runner = runner
    this.tables = tables
    this.clock = clock
  }

  /** Answers whether all have applied it within the time. */
  async waitApplied(wrote: Wrote, timeoutMs: number): Promise<boolean> {
    const waits = this.projections.flatMap(({ name, inputs }) => {
      const position = lastPosition(wrote, inputs)
      if (position < 0) return []
      return this.runner?.runs(name) ? [this.runner.whenApplied(name, position)] : [this.whenStored(name, position)]
    })
    if (waits.length === 0) return true
    const { promise: timeout, resolve } = defer<false>()
    const cancelTimeout = this.clock.after(timeoutMs, () => resolve(false))
    const all = Promise.all(waits.map(({ applied }) => applied)).then(() => true)
    const isApplied = await Promise.race([all, timeout]).finally(() => {
      cancelTimeout()
      for (const { cancel } of waits) cancel()
    })
    return isApplied
  }

  private whenStored(name: string, position: number): { applied: Promise<void>; cancel: () => void } {
    const { promise, resolve, reject } = defer<void>()
    let cancelTimer: () => void = () => undefined
    let isOver = false
    const look = async (): Promise<void> => {
      const stored = await this.tables.checkpoint(name)
      if ((stored?.all ?? -1) >= position) resolve()
      else if (!isOver) cancelTimer = this.clock.after(POLL_MS, () => void look().catch(reject))
    }
    look().catch(reject)
    const cancel = (): void => {
      isOver = true
      cancelTimer()
    }
    return { applied: promise, cancel }
  }
}

/** Position of the last append that the inputs name; -1 for none. A projection never hears of positions of foreign streams in time. */
const lastPosition = (wrote: Wrote, inputs: readonly string[]): number => {
  const own = wrote.types.some((type) => inputs.includes(type)) ? wrote.position : -1
  return Math.max(own, ...(wrote.before ?? []).map((earlier) => lastPosition(earlier, inputs)))
}
