import { existsSync, mkdirSync, opendirSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Makes a folder, and those above it that are missing. One by one: where nothing can be made although the parent exists
 * (below /proc), Node's recursion never ends.
 * @throws Error of the system for what is no folder, or cannot be made or read
 */
export const makeFolder = (path: string, mode?: number): void => {
  // Opened, not listed: a folder of mails may hold any number.
  if (existsSync(path)) return opendirSync(path).closeSync()
  makeFolder(dirname(path), mode)
  try {
    mkdirSync(path, { mode })
  } catch (error) {
    // Several processes may start at once.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}
