import { decisionBuffer, type DecidedEntry } from '../../projections/decisions-history.ts'
import { Erased, HistoryErasures } from '../../projections/erasures.ts'
import type { HistoryStore } from '../../src/engines/history-store.ts'

/** Puts what was decided at one place of a partition into the history, without a log. */
export const insertDecided = async (
  history: Pick<HistoryStore, 'insert'>,
  { partition = 0, ...entry }: DecidedEntry & { partition?: number },
  token: string,
): Promise<void> => {
  const buffer = decisionBuffer(0, new Erased())
  buffer.add(entry, partition)
  for (const { table, block } of await buffer.blocks()) await history.insert(table, block, token)
}

/** For consumers without a log: nothing is erased. */
export const noErasures = (): HistoryErasures => new HistoryErasures({} as never)
