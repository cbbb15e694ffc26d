import { existsSync, readFileSync, statSync } from 'node:fs'

/** Files that a bundle was made from, by path from the folder of what is built: time of the last change, and bytes. */
type Inputs = { [path: string]: readonly [changedMs: number, bytes: number] }

/**
 * The bundled command line in the folder of what is built (scripts/build-bundle.mjs), unless a file that it was made from
 * has changed since. A package and the image hold the bundle alone.
 */
export const currentBundle = (built: string): string | undefined => {
  const bundle = `${built}/bundle/cli-command-line.js`
  if (!existsSync(`${built}/src/cli/command-line.js`)) return bundle
  const list = `${built}/bundle/inputs.json`
  if (!existsSync(list)) return undefined
  const inputs = JSON.parse(readFileSync(list, 'utf8')) as Inputs
  const isCurrent = Object.entries(inputs).every(([path, [changedMs, bytes]]) => {
    const file = statSync(`${built}/${path}`, { throwIfNoEntry: false })
    return file?.mtimeMs === changedMs && file.size === bytes
  })
  return isCurrent ? bundle : undefined
}
