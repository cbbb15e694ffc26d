import { migrateHistory } from '../../engines/clickhouse-sql/migrate.ts'
import type { HistoryStore } from '../../engines/history-store.ts'
import type { Clock } from '../../kernel/clock.ts'
import {
  digestOfPart,
  type HistoryPart,
  historyParts,
  isSamePart,
  partBlocks,
  retentionOf,
} from '../../engines/clickhouse-sql/history-parts.ts'

export interface CopyHistoryOptions {
  from: HistoryStore
  to: HistoryStore
  clock: Clock
  /** Called with each part when the other history has it. */
  onPart?(part: HistoryPart, rows: number): void
}

/**
 * Copies the rows of one history into another one, month by month, and compares each when it is there. A month that the
 * target has already is left as it is; one that is there in part is inserted again, which changes nothing of what it has.
 * Answers how many rows there are.
 * @throws Error that names the part that differs
 */
export const copyHistory = async ({ from, to, clock, onPart }: CopyHistoryOptions): Promise<number> => {
  const retention = await retentionOf(from)
  if (retention === undefined) return 0
  await migrateHistory(from, retention)
  await migrateHistory(to, retention)
  let rows = 0
  for (const part of await historyParts(from)) {
    const now = clock.now()
    const wanted = await digestOfPart(from, part, retention, now)
    if (!isSamePart(wanted, await digestOfPart(to, part, retention, now))) {
      let block = 0
      for await (const bytes of partBlocks(from, part)) await to.insert(part.table, bytes, tokenOf(part, now, block++))
      const found = await digestOfPart(to, part, retention, now)
      if (!isSamePart(wanted, found))
        throw new Error(
          `${part.table} of ${part.month} differ in the copy of the history: ${wanted.rows} rows were read and ${found.rows} are there; name an empty database`,
        )
    }
    rows += wanted.rows
    onPart?.(part, wanted.rows)
  }
  return rows
}

/** Another one for each run: an engine that was emptied in between must not take a repeat for what it knows. */
const tokenOf = ({ table, month }: HistoryPart, now: number, block: number): string =>
  `copy:${table}:${month}:${now}:${block}`

/** Whether a history has rows. */
export const isEmptyHistory = async (store: HistoryStore): Promise<boolean> =>
  (await retentionOf(store)) === undefined || (await historyParts(store)).length === 0
