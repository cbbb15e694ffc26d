import { spaceName } from './terms.ts'
import type { TableEnvironment, TableRecord } from './layout.ts'

/*
 * How often what a question looks at was changed, within one scope of a table: a count for its rows, one for which rows
 * there are, one for each index. They are stored with the changes, so a snapshot shows the counts of what it shows.
 */
export const ROWS_SLOT = 0
export const MEMBERS_SLOT = 1
export const TEXT_SLOT = 2
const FIRST_INDEX_SLOT = 3

export const equalitySlot = (record: TableRecord, field: string): number =>
  FIRST_INDEX_SLOT + record.equality.indexOf(field)

export const rangeSlot = (record: TableRecord, field: string): number =>
  FIRST_INDEX_SLOT + record.equality.length + record.range.indexOf(field)

/** Collects what one transaction changes. */
export class Changes {
  private readonly spaces = new Map<number, { key: Buffer; slots: Set<number> }>()

  /** The slots of a space, to add to. */
  of(space: Buffer): Set<number> {
    const name = spaceName(space)
    let entry = this.spaces.get(name)
    if (entry === undefined) {
      entry = { key: space, slots: new Set() }
      this.spaces.set(name, entry)
    }
    return entry.slots
  }

  flush(env: TableEnvironment): void {
    for (const { key, slots } of this.spaces.values()) {
      const before = env.changes.getBinary(key)
      const counts = Buffer.alloc(Math.max(before?.length ?? 0, 4 * (Math.max(...slots) + 1)))
      if (before !== undefined) counts.set(before)
      for (const slot of slots) counts.writeUInt32BE((countIn(counts, slot) + 1) >>> 0, 4 * slot)
      env.changes.putSync(key, counts)
    }
    this.spaces.clear()
  }
}

export const countIn = (counts: Buffer | undefined, slot: number): number =>
  counts === undefined || counts.length < 4 * slot + 4 ? 0 : counts.readUInt32BE(4 * slot)
