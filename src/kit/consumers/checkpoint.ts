import { type Checkpoint, isSameCheckpoint, StaleCommit, type TableStore } from '../../engines/table-store.ts'
import type { RowChange } from '../../kernel/table.ts'

type Tables = Pick<TableStore, 'commit' | 'take'>

/** Source of a checkpoint that counts the parts of what is stored in several. */
const PART = 'part'

/** The stored checkpoint of a consumer in the hands of its owner: each commit follows the one before. One commit at a time. */
export class OwnedCheckpoint {
  /** What is stored; undefined for nothing. */
  at: Checkpoint | undefined
  private readonly tables: Tables
  private readonly consumer: string
  private readonly fence: number
  /** Where a commit was to end whose outcome is unknown. */
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

  /** Where the last store that came to its end has moved it; undefined for none. */
  get reached(): Checkpoint | undefined {
    const { [PART]: _, ...reached } = this.at ?? {}
    return Object.keys(reached).length === 0 ? undefined : reached
  }

  /**
   * Stores rows and moves the checkpoint; without `at` it stays.
   * @throws StaleCommit when another owner took the consumer, or the store lost what it had: then it is to be taken anew.
   */
  async commit(changes: readonly RowChange[], at?: Checkpoint): Promise<void> {
    const { consumer, fence } = this
    try {
      await this.tables.commit(changes, { consumer, from: this.at, at, fence }).catch((error: unknown) => {
        if (!this.wasStored(error)) throw error
        this.at = this.unanswered
        return this.tables.commit(changes, { consumer, from: this.at, at, fence })
      })
      // One without an answer that was to end here too is taken for this one, which may have other rows.
      const isTaken = at !== undefined && this.unanswered !== undefined && isSameCheckpoint(at, this.unanswered)
      if (isTaken) await this.tables.commit(changes, { consumer, from: at, at, fence })
    } catch (error) {
      if (!(error instanceof StaleCommit)) this.unanswered = at ?? this.unanswered
      throw error
    }
    this.at = at ?? this.at
    this.unanswered = undefined
  }

  /**
   * Stores rows, so many at a time, and moves the checkpoint with the last of them. Each part moves it by a number of its
   * own: where the store loses one, the next does not follow, and nothing is stored that names what is lost.
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

  /** Whether it is our own commit without an answer that is stored. */
  private wasStored(error: unknown): boolean {
    if (!(error instanceof StaleCommit) || this.unanswered === undefined) return false
    return error.stored.fence === this.fence && isSameCheckpoint(error.stored.at, this.unanswered)
  }
}
