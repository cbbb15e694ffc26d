import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/** A folder and all that lies below it. */
export const everyEntry = (path: string): string[] => [
  path,
  ...readdirSync(path, { recursive: true, encoding: 'utf8' })
    .sort()
    .map((name) => join(path, name)),
]

/** What group or others may do anything with; links have no rights of their own. */
export const openBelow = (path: string): string[] =>
  everyEntry(path).filter((entry) => {
    const stat = lstatSync(entry, { throwIfNoEntry: false })
    return stat !== undefined && (stat.mode & 0o077) !== 0 && !stat.isSymbolicLink()
  })
