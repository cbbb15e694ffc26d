import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/** The files and folders of a folder; none where a service has deleted it meanwhile, as a database does with merged parts. */
const entriesOf = (folder: string): string[] => {
  try {
    return readdirSync(folder).sort()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

/** A folder and all that lies below it. */
export const everyEntry = (path: string): string[] => {
  if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return [path]
  return [path, ...entriesOf(path).flatMap((name) => everyEntry(join(path, name)))]
}

/** What group or others may do anything with; links have no rights of their own. */
export const openBelow = (path: string): string[] =>
  everyEntry(path).filter((entry) => {
    const stat = lstatSync(entry, { throwIfNoEntry: false })
    return stat !== undefined && (stat.mode & 0o077) !== 0 && !stat.isSymbolicLink()
  })
