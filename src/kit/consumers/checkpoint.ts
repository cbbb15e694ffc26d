import { type Checkpoint, isSameCheckpoint, StaleCommit, type TableStore } from '../../engines/table-store.ts'
import type { NumberRows, RowChange } from '../../kernel/table.ts'

type Tables = Pick<TableStore, 'commit' | 'take'>

/** Source of a checkpoint that counts the commits which left all others where they were. */
const PART = 'part'
/** Commits without an answer that are recognized when they turn out to be stored; one of earlier ones has to be taken again. */
const UNANSWERED_MAX = 16

/**
 * The stored checkpoint of a consumer in the hands of its owner: each commit follows the one before. One commit at a time.
 * Each moves the checkpoint, if only by a number of its own: where the store loses one, the next does not follow.
 */
export class OwnedCheckpoint {
  /** The stored checkpoint; undefined for none. */
  at: Checkpoint | undefined
  /** Higher than that of any earlier owner. */
  readonly fence: number
  private readonly tables: Tables
  private readonly consumer: string
  /** Where commits ended whose outcome is unknown. */
  private unanswered: Checkpoint[] = []

  private constructor(tables: Tables, consumer: string, at: Checkpoint | undefined, fence: number) {
    this.tables = tables
    this.consumer = consumer
    this.at = at
    this.fence = fence
  }

  /** Makes the caller the owner: the previous owner can store nothing more. */
  static async take(tables: Tables, consumer: string): Promise<OwnedCheckpoint> {
    const { at, fence } = await tables.take(consumer)
    return new OwnedCheckpoint(tables, consumer, at, fence)
  }

  /** Checkpoint of the last store that completed; undefined for none. */
  get reached(): Checkpoint | undefined {
    const reached = withoutPart(this.at)
    return Object.keys(reached).length === 0 ? undefined : reached
  }

  /**
   * Stores rows, those of numbers too, and moves the checkpoint; without `at` it stays.
   * @throws StaleCommit when another owner took the consumer, or the store lost data: then it has to be taken again.
   */
  async commit(changes: readonly RowChange[], at?: Checkpoint, numbers?: NumberRows): Promise<void> {
    try {
      await this.store(changes, at, numbers)
    } catch (error) {
      const own = this.storedOwn(error)
      if (own === undefined) throw error
      this.at = own
      this.unanswered = []
      await this.store(changes, at, numbers)
    }
  }

  /** Stores rows, `rowsMax` at a time, and moves the checkpoint with the last of them: no stored row names a lost one. */
  async commitInParts(changes: readonly RowChange[], at: Checkpoint, rowsMax: number): Promise<void> {
    let from = 0
    for (; changes.length - from > rowsMax; from += rowsMax) await this.commit(changes.slice(from, from + rowsMax))
    await this.commit(changes.slice(from), at)
  }

  private async store(changes: readonly RowChange[], at?: Checkpoint, numbers?: NumberRows): Promise<void> {
    const { consumer, fence } = this
    const to = this.after(at ?? withoutPart(this.at))
    try {
      await this.tables.commit(changes, { consumer, from: this.at, at: to, fence }, numbers)
    } catch (error) {
      if (!(error instanceof StaleCommit)) this.unanswered = [...this.unanswered, to].slice(-UNANSWERED_MAX)
      throw error
    }
    this.at = to
    this.unanswered = []
  }

  /** The checkpoint of a commit that gets so far: none that was stored, or may be, is the same. */
  private after(at: Checkpoint): Checkpoint {
    const parts = [this.at ?? {}, ...this.unanswered]
      .filter((other) => isSameCheckpoint(withoutPart(other), at))
      .map((other) => other[PART] ?? 0)
    return parts.length === 0 ? at : { ...at, [PART]: Math.max(...parts) + 1 }
  }

  /** The stored checkpoint where a commit does not follow it because it is that of our own unanswered one. */
  private storedOwn(error: unknown): Checkpoint | undefined {
    if (!(error instanceof StaleCommit) || error.stored.fence !== this.fence) return undefined
    return this.unanswered.find((own) => isSameCheckpoint(own, error.stored.at))
  }
}

const withoutPart = (at: Checkpoint = {}): Checkpoint => {
  const { [PART]: _, ...rest } = at
  return rest
}
