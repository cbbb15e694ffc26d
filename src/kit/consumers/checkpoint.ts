import { type Checkpoint, isSameCheckpoint, StaleCommit, type TableStore } from '../../engines/table-store.ts'
import type { NumberRows, RowChange } from '../../kernel/table.ts'

type Tables = Pick<TableStore, 'commit' | 'take'>

/** Source of a checkpoint that counts the parts of rows stored in several commits. */
const PART = 'part'

/** The stored checkpoint of a consumer in the hands of its owner: each commit follows the one before. One commit at a time. */
export class OwnedCheckpoint {
  /** The stored checkpoint; undefined for none. */
  at: Checkpoint | undefined
  private readonly tables: Tables
  private readonly consumer: string
  private readonly fence: number
  /** Checkpoint of a commit whose outcome is unknown. */
  private unanswered: Checkpoint | undefined

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
    const { [PART]: _, ...reached } = this.at ?? {}
    return Object.keys(reached).length === 0 ? undefined : reached
  }

  /**
   * Stores rows, those of numbers too, and moves the checkpoint; without `at` it stays.
   * @throws StaleCommit when another owner took the consumer, or the store lost data: then it has to be taken again.
   */
  async commit(changes: readonly RowChange[], at?: Checkpoint, numbers?: NumberRows): Promise<void> {
    const { consumer, fence } = this
    const store = (from: Checkpoint | undefined): Promise<void> =>
      this.tables.commit(changes, { consumer, from, at, fence }, numbers)
    try {
      await store(this.at).catch((error: unknown) => {
        if (!this.wasStored(error)) throw error
        this.at = this.unanswered
        return store(this.at)
      })
      // An unanswered commit with the same end would be taken for this one, which may have other rows.
      const isTaken = at !== undefined && this.unanswered !== undefined && isSameCheckpoint(at, this.unanswered)
      if (isTaken) await store(at)
    } catch (error) {
      if (!(error instanceof StaleCommit)) this.unanswered = at ?? this.unanswered
      throw error
    }
    this.at = at ?? this.at
    this.unanswered = undefined
  }

  /**
   * Stores rows, `rowsMax` at a time, and moves the checkpoint with the last of them. Each part moves it by a number of
   * its own: where the store loses one, the next does not follow, and no stored row names a lost one.
   */
  async commitInParts(changes: readonly RowChange[], at: Checkpoint, rowsMax: number): Promise<void> {
    let from = 0
    for (; changes.length - from > rowsMax; from += rowsMax)
      await this.commit(changes.slice(from, from + rowsMax), { ...this.at, [PART]: (this.at?.[PART] ?? 0) + 1 })
    await this.commit(changes.slice(from), at)
  }

  /** Moves the checkpoint alone; false when the consumer is no longer ours. */
  async move(at: Checkpoint): Promise<boolean> {
    try {
      await this.commit([], at)
      return true
    } catch (error) {
      if (error instanceof StaleCommit) return false
      throw error
    }
  }

  /** Whether the stored checkpoint is that of our own unanswered commit. */
  private wasStored(error: unknown): boolean {
    if (!(error instanceof StaleCommit) || this.unanswered === undefined) return false
    return error.stored.fence === this.fence && isSameCheckpoint(error.stored.at, this.unanswered)
  }
}
