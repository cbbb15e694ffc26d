import { writeSync } from 'node:fs'
import { constants } from 'node:os'
import { getSystemErrorMap } from 'node:util'

const MDB_MAP_FULL = -30_792
const MDB_PANIC = -30_795
const MDB_CORRUPTED = -30_796
const MDB_PAGE_NOTFOUND = -30_797

/** Errors that end by themselves once there is room again. */
const LACKS_ROOM: readonly unknown[] = [constants.errno.ENOSPC, constants.errno.EDQUOT, MDB_MAP_FULL]
/** Errors after which LMDB takes no transaction until its files are reopened. */
const DAMAGED: readonly unknown[] = [MDB_PANIC, MDB_CORRUPTED, MDB_PAGE_NOTFOUND]

/** Node's errors for a failed disk. It also reports missing folders, and the like, which an open file outlives. */
const DISK_FAILED: readonly unknown[] = ['EIO', 'EROFS']

/**
 * Whether an engine must stop after this error: the disk failed, was made read-only or reached a limit of file sizes.
 * LMDB's driver leaves its heap damaged and its locks held after such a write.
 */
export const isBeyondRepair = (error: unknown): boolean => {
  const code = (error as { code?: unknown } | undefined)?.code
  if (typeof code !== 'number') return DISK_FAILED.includes(code)
  return !LACKS_ROOM.includes(code) && (code > 0 || DAMAGED.includes(code))
}

/**
 * Ends this process at once, with one line on standard error. It ends by SIGKILL: an orderly exit closes damaged state,
 * and hung in one of two trials.
 */
export const endProcess = (engine: string, path: string, error: unknown): void => {
  try {
    writeSync(
      process.stderr.fd,
      `The ${engine} in ${path} cannot be written (${reasonOf(error)}): ending at once, nothing acknowledged is lost. Mend the disk and start again.\n`,
    )
  } catch {
    // A blocked reader must not keep it alive.
  }
  process.kill(process.pid, 'SIGKILL')
}

/** The driver's errors carry a number of the system's, or a negative one of LMDB's; Node's a negative `errno`. */
export const numberOf = (error: unknown): number | undefined => {
  const { code, errno } = (error ?? {}) as { code?: unknown; errno?: unknown }
  if (typeof code === 'number') return code
  return typeof errno === 'number' ? -errno : undefined
}

const reasonOf = (error: unknown): string => {
  const code = numberOf(error) as number
  const [name, meaning] = getSystemErrorMap().get(-code) ?? [`LMDB ${code}`, (error as Error).message]
  return `${name}: ${meaning}`
}
