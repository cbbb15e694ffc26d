import type { FileStore } from '../../engines/file-store.ts'
import type { Clock } from '../../kernel/clock.ts'

/** Files of one kind, and who refers to them. */
export interface FileOwner {
  /** Of their keys. */
  prefix: string
  /** Whether something names the file. */
  isNamed(key: string): Promise<boolean>
}

/** A file is put before what names it is written: a younger one may still be named. */
const YOUNG_MS = 24 * 3_600_000

/** Deletes files that nothing names any more, such as a logo that was replaced; answers how many. */
export const sweepFiles = async (
  { files, clock }: { files: Pick<FileStore, 'list' | 'delete'>; clock: Pick<Clock, 'now'> },
  owners: readonly FileOwner[],
  signal: AbortSignal,
): Promise<number> => {
  let deleted = 0
  for (const { prefix, isNamed } of owners) {
    for await (const { key, putAt } of files.list(prefix)) {
      if (signal.aborted) return deleted
      if (putAt > clock.now() - YOUNG_MS || (await isNamed(key))) continue
      await files.delete(key)
      deleted++
    }
  }
  return deleted
}
