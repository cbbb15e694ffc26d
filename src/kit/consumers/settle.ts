import type { EventLog } from '../../engines/event-log.ts'
import { type Checkpoint, type TableStore, tablesWith } from '../../engines/table-store.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { Settlement, Wrote } from '../http/route.ts'
import type { Projection } from './projection.ts'

/** Whether all consumers that must follow a write have stored it, wherever they run; false after `timeoutMs`. */
export type Settle = (wrote: Wrote, timeoutMs: number, steps?: readonly Settlement[]) => Promise<boolean>

/** Longest wait of an answer, and of the end of a job, for consumers that follow its write. */
export const SETTLE_TIMEOUT_MS = 2_000
/** Interval of looks at a checkpoint that another process stores. */
const POLL_MS = 20

interface Waiter {
  consumer: string
  at: Checkpoint
  reached(): void
}

/**
 * The one place that waits for consumers: by their stored checkpoints, so that it does not matter where they run.
 * Checkpoints stored through `tables` are noticed at once, the others are polled.
 */
export class Checkpoints {
  /** The tables as everything in this process should use them. */
  readonly tables: TableStore
  private readonly store: TableStore
  private readonly clock: Clock
  private readonly heard = new Map<string, Checkpoint>()
  private readonly changed = new Map<string, number>()
  private readonly waiters = new Set<Waiter>()

  constructor(store: TableStore, clock: Clock) {
    this.store = store
    this.clock = clock
    this.tables = this.heardTables()
    store.onLoss(() => {
      this.heard.clear()
      this.changed.clear()
    })
  }

  /** Whether the consumer's stored checkpoint gets that far within the time. @throws Failure engine_down. */
  reached(consumer: string, at: Checkpoint, timeoutMs: number): Promise<boolean> {
    const heard = this.heard.get(consumer)
    if (heard !== undefined && isPast(heard, at)) return Promise.resolve(true)
    return new Promise((resolve, reject) => {
      let cancelLook = (): void => undefined
      const cancelTimeout = this.clock.after(timeoutMs, () => finish(() => resolve(false)))
      const waiter: Waiter = { consumer, at, reached: () => finish(() => resolve(true)) }
      const finish = (end: () => void): void => {
        this.waiters.delete(waiter)
        cancelTimeout()
        cancelLook()
        end()
      }
      const look = async (): Promise<void> => {
        const stored = await this.store.checkpoint(consumer)
        if (!this.waiters.has(waiter)) return
        if (isPast(stored, at)) waiter.reached()
        else lookLater()
      }
      const lookNow = (): void => void look().catch((error: unknown) => finish(() => reject(error)))
      const lookLater = (): void => {
        cancelLook = this.clock.after(POLL_MS, lookNow)
      }
      this.waiters.add(waiter)
      // A consumer already noticed runs here, and will be noticed again.
      if (heard === undefined) lookNow()
      else lookLater()
    })
  }

  /**
   * Position through which these consumers of the whole log have changed rows; later events are of other streams. Where
   * another process stores the rows, the position that it has read; -1 for nothing. @throws Failure engine_down.
   */
  async changedThrough(consumers: readonly string[]): Promise<number> {
    let through = -1
    for (const consumer of consumers) {
      const read = (await this.store.checkpoint(consumer))?.all ?? -1
      const isOurs = read === this.heard.get(consumer)?.all
      through = Math.max(through, (isOurs ? this.changed.get(consumer) : undefined) ?? read)
    }
    return through
  }

  private stored(consumer: string, at: Checkpoint): void {
    const heard = { ...this.heard.get(consumer), ...at }
    this.heard.set(consumer, heard)
    for (const waiter of this.waiters) if (waiter.consumer === consumer && isPast(heard, waiter.at)) waiter.reached()
  }

  private forget(consumer: string): void {
    this.heard.delete(consumer)
    this.changed.delete(consumer)
  }

  private heardTables(): TableStore {
    const { store } = this
    return tablesWith(store, {
      commit: async (changes, move, numbers) => {
        await store.commit(changes, move, numbers)
        if (move?.at === undefined) return
        const { consumer, from, at } = move
        // The rows before may be another process's.
        const isKnown = this.changed.has(consumer) && from?.all === this.heard.get(consumer)?.all
        if (changes.length > 0 || numbers !== undefined || !isKnown) this.changed.set(consumer, at.all ?? -1)
        this.stored(consumer, at)
      },
      promote: async (tables, consumer) => {
        await store.promote(tables, consumer)
        this.forget(consumer)
      },
      reset: async (tables, consumer) => {
        await store.reset(tables, consumer)
        this.forget(consumer)
      },
    })
  }
}

/** Waits for the read models that a write feeds, and for the further steps, one after the other. */
export const settling =
  (
    { log, clock, checkpoints }: { log: Pick<EventLog, 'head'>; clock: Clock; checkpoints: Checkpoints },
    projections: readonly Pick<Projection, 'name' | 'inputs'>[],
  ): Settle =>
  async (wrote, timeoutMs, steps = []) => {
    const endMs = clock.monotonic() + timeoutMs
    const leftMs = (): number => Math.max(0, endMs - clock.monotonic())
    const follow = async (): Promise<boolean> => {
      for (const step of steps) {
        const at = 'stream' in step ? { [step.source]: await log.head(step.stream) } : { all: wrote.position }
        if (!(await checkpoints.reached(step.consumer, at, leftMs()))) return false
      }
      return true
    }
    const last = lastPositions(wrote)
    const readModels = projections.flatMap(({ name, inputs }) => {
      const position = Math.max(-1, ...inputs.map((type) => last.get(type) ?? -1))
      return position < 0 ? [] : [checkpoints.reached(name, { all: position }, timeoutMs)]
    })
    return (await Promise.all([...readModels, follow()])).every((isReached) => isReached)
  }

const isPast = (stored: Checkpoint | undefined, at: Checkpoint): boolean =>
  Object.entries(at).every(([source, place]) => (stored?.[source] ?? -1) >= place)

/** Position of the last append of each type of events. A projection does not learn of foreign positions in time. */
const lastPositions = (wrote: Wrote, last = new Map<string, number>()): Map<string, number> => {
  for (const type of wrote.types) last.set(type, Math.max(last.get(type) ?? -1, wrote.position))
  for (const earlier of wrote.before ?? []) lastPositions(earlier, last)
  return last
}
