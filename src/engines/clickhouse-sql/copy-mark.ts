import type { HistoryStore } from '../history-store.ts'
import { createCopied, layoutOf } from './layout.ts'

/** Records, in a history that is a copy, the log of its rows and whether all are there. */
const COPIES = 'history_copies'

export interface HistoryCopy {
  /** Id of the log that the rows were made from. */
  logId: string
  hasEnded: boolean
}

type Store = Pick<HistoryStore, 'rows' | 'command' | 'cluster'>

/** Undefined for a history that is no copy. */
export const readHistoryCopy = async (store: Pick<HistoryStore, 'rows'>): Promise<HistoryCopy | undefined> => {
  const [{ tables }] = await store.rows<{ tables: number }>(
    'SELECT count() AS tables FROM system.tables WHERE database = currentDatabase() AND name = {name:String}',
    { name: COPIES },
  )
  if (tables === 0) return undefined
  const [found] = await store.rows<{ logId: string; ended: number }>(
    `SELECT logId, max(hasEnded) AS ended FROM ${COPIES} GROUP BY logId ORDER BY min(notedAt) LIMIT 1`,
  )
  return found && { logId: found.logId, hasEnded: found.ended === 1 }
}

export const noteHistoryCopy = async (store: Store, { logId, hasEnded }: HistoryCopy): Promise<void> => {
  const columns = "logId String, hasEnded UInt8, notedAt DateTime64(3, 'UTC')"
  await store.command(createCopied(COPIES, columns, 'ORDER BY notedAt', await layoutOf(store)))
  await store.command(`INSERT INTO ${COPIES} SELECT {logId:String}, {hasEnded:UInt8}, now64(3)`, {
    logId,
    hasEnded: hasEnded ? 1 : 0,
  })
}
