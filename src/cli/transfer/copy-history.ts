import { noteHistoryCopy, readHistoryCopy } from '../../engines/clickhouse-sql/copy-mark.ts'
import type { Retention } from '../../engines/clickhouse-sql/history-tables.ts'
import { openSchema } from '../../engines/clickhouse-sql/history-schema.ts'
import type { HistoryStore } from '../../engines/history-store.ts'
import type { Clock } from '../../kernel/clock.ts'
import {
  digestOfPart,
  type HistoryPart,
  historyParts,
  isSamePart,
  type HistorySlice,
  partBlocks,
  retentionOf,
  slicesOf,
} from '../../engines/clickhouse-sql/history-parts.ts'

export interface CopyHistoryOptions {
  from: HistoryStore
  to: HistoryStore
  clock: Clock
  /** Id of the log from which the rows were made. */
  logId: string
  /** Rows copied and compared at once. */
  sliceRowsMax?: number
  /** Called with each part when the other history has it. */
  onPart?(part: HistoryPart, rows: number): void
}

/**
 * Copies the rows of one history into another one, month by month, a large month in pieces, and compares each
 * afterwards. Parts that the target has already are left as they are; partial ones are inserted again, which does not
 * change existing rows. The target is marked as incomplete, so that no service starts on it, until `endHistoryCopy`.
 * Returns the number of rows.
 * @throws Error that names the part that differs
 */
export const copyHistory = async (options: CopyHistoryOptions): Promise<number> => {
  const { to, logId } = options
  if ((await readHistoryCopy(to)) === undefined) await noteHistoryCopy(to, { logId, hasEnded: false })
  return copyParts(options)
}

/** Call it once the source is known to be unchanged. */
export const endHistoryCopy = (to: HistoryStore, logId: string): Promise<void> =>
  noteHistoryCopy(to, { logId, hasEnded: true })

const copyParts = async ({ from, to, clock, sliceRowsMax, onPart }: CopyHistoryOptions): Promise<number> => {
  const retention = await retentionOf(from)
  if (retention === undefined) return 0
  await openSchema(from, retention)
  await openSchema(to, retention)
  let rows = 0
  for (const part of await historyParts(from)) {
    let partRows = 0
    for (const slice of await slicesOf(from, part, sliceRowsMax))
      partRows += await copySlice(from, to, slice, retention, clock.now())
    rows += partRows
    onPart?.(part, partRows)
  }
  return rows
}

const copySlice = async (
  from: HistoryStore,
  to: HistoryStore,
  slice: HistorySlice,
  retention: Retention,
  now: number,
): Promise<number> => {
  const wanted = await digestOfPart(from, slice, retention, now)
  if (isSamePart(wanted, await digestOfPart(to, slice, retention, now))) return wanted.rows
  let block = 0
  for await (const bytes of partBlocks(from, slice)) await to.insert(slice.table, bytes, tokenOf(slice, now, block++))
  const found = await digestOfPart(to, slice, retention, now)
  if (!isSamePart(wanted, found))
    throw new Error(
      `${slice.table} of ${slice.month} differ in the copy of the history: ${wanted.rows} rows were read and ${found.rows} are there; name an empty database`,
    )
  return wanted.rows
}

/** Unique per run: an engine that was emptied in between must not discard a repeat as a duplicate. */
const tokenOf = ({ table, month, from }: HistorySlice, now: number, block: number): string =>
  `copy:${table}:${month}:${from ?? 0}:${now}:${block}`

export const isEmptyHistory = async (store: HistoryStore): Promise<boolean> =>
  (await retentionOf(store)) === undefined || (await historyParts(store)).length === 0
