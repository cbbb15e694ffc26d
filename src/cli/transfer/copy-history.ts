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
  /** Id of the log that the rows were made from. */
  logId: string
  /** Rows that are copied and compared at once. */
  sliceRowsMax?: number
  /** Called with each part when the other history has it. */
  onPart?(part: HistoryPart, rows: number): void
}

/**
 * Copies the rows of one history into another one, month by month, a large month in pieces, and compares each when it is
 * there. What the target has already is left as it is; what is there in part is inserted again, which changes nothing of
 * what it has. The target says of itself that it is not whole, so that no service starts on it, until `endHistoryCopy`.
 * Answers how many rows there are.
 * @throws Error that names the part that differs
 */
export const copyHistory = async (options: CopyHistoryOptions): Promise<number> => {
  const { to, logId } = options
  if ((await readHistoryCopy(to)) === undefined) await noteHistoryCopy(to, { logId, hasEnded: false })
  return copyParts(options)
}

/** To be called when the source is known to be as it was. */
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

/** Another one for each run: an engine that was emptied in between must not take a repeat for what it knows. */
const tokenOf = ({ table, month, from }: HistorySlice, now: number, block: number): string =>
  `copy:${table}:${month}:${from ?? 0}:${now}:${block}`

/** Whether a history has rows. */
export const isEmptyHistory = async (store: HistoryStore): Promise<boolean> =>
  (await retentionOf(store)) === undefined || (await historyParts(store)).length === 0
