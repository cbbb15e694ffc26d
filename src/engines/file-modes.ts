import { chmodSync, type Dirent, existsSync, lstatSync, readdirSync, realpathSync } from 'node:fs'
import { join } from 'node:path'

/** The rights of group and others on files and folders. */
const OTHERS = 0o077
/** A folder in which everybody may write, such as /tmp, must not be closed. */
const STICKY = 0o1000
/** Entries that a service puts into its data folder; all others are its operator's. */
const OURS = /^(log|tables|history|history-scratch|files|mail|keys\.json|demo\.json|node-id|owner\.lock.*|restoring)$/
const ENTRIES_MAX = 20_000
/** One of these exists as soon as a start or a restore has written something. */
const BEGUN = ['keys.json', 'node-id']
/** Below, uploads come and go. */
const DOCTOR_LEVELS = 2

/** Makes everything that this process creates from now on, also by native code and threads, its owner's alone. */
export const makeForOwnerOnly = (): void => void process.umask(OTHERS)

/**
 * Removes the rights of group and others from a data folder of an earlier version. Without the right to enter a folder
 * nobody reaches anything below it: so the top one matters, and comes first. Entries below are closed for copies made
 * of them, the upper levels first and at most 20,000: a start does not wait for millions.
 * @returns entries that could not be closed, such as the mount of another user
 */
export const closeDataFolder = (path: string): string[] => {
  const open: string[] = []
  for (const entry of entriesOf(path)) if (!close(entry)) open.push(entry)
  return open
}

/** The first entry of the upper levels of a data folder that others may read, write or enter; undefined where there is none, or no data yet. */
export const openToOthers = (path: string): string | undefined => {
  if (process.platform === 'win32' || !BEGUN.some((name) => existsSync(join(path, name)))) return undefined
  for (const entry of entriesOf(path, DOCTOR_LEVELS)) if (isOpen(entry)) return entry
  return undefined
}

/** Removes the rights of group and others from one file or folder. */
export const close = (path: string): boolean => {
  try {
    const { mode } = lstatSync(path)
    if ((mode & OTHERS) !== 0) chmodSync(path, mode & 0o7777 & ~OTHERS)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT'
  }
}

const isOpen = (path: string): boolean => ((lstatSync(path, { throwIfNoEntry: false })?.mode ?? 0) & OTHERS) !== 0

/** The folder, our entries in it, and their descendants, level by level. Links are not followed. */
function* entriesOf(path: string, levels = Number.POSITIVE_INFINITY): Generator<string> {
  const top = realpathSync(path)
  if ((lstatSync(top).mode & STICKY) === 0) yield top
  const folders = [{ folder: top, level: 1 }]
  let left = ENTRIES_MAX
  for (const { folder, level } of folders) {
    for (const entry of childrenOf(folder)) {
      if (folder === top && !OURS.test(entry.name)) continue
      if (!entry.isDirectory() && !entry.isFile()) continue
      if (left-- === 0) return
      const child = join(folder, entry.name)
      if (entry.isDirectory() && level < levels) folders.push({ folder: child, level: level + 1 })
      yield child
    }
  }
}

/** Entries of a folder; none if it is gone meanwhile, or not ours to read. */
export const childrenOf = (folder: string): Dirent[] => {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}
