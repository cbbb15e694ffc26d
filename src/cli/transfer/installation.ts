import { resolve } from 'node:path'
import { ConfigError } from '../../config-values.ts'
import { type EngineFlag, engineUrlOf } from '../../engine-urls.ts'

/** Data locations of an installation: engines by URL, all others in a folder. */
export interface Installation {
  /** Undefined if only URLs are given. */
  folder: string | undefined
  urls: { [Flag in EngineFlag]?: string }
}

const SCHEMES: [RegExp, EngineFlag][] = [
  [/^esdb(\+discover)?:/, 'log'],
  [/^rediss?:/, 'tables'],
  [/^https?:/, 'history'],
  [/^s3:/, 'files'],
]

/** Installation of a repeated `--from` or `--to`, one location each. @throws ConfigError */
export const installationOf = (option: string, places: readonly string[]): Installation => {
  const found: Installation = { folder: undefined, urls: {} }
  for (const place of places) {
    const flag = SCHEMES.find(([scheme]) => scheme.test(place))?.[1]
    if (flag === undefined && /^[a-z0-9+]+:/i.test(place))
      throw new ConfigError(`--${option} ${place.split(':')[0]}: names no engine that Waymark has; see docs/migrate.md`)
    if ((flag === undefined ? found.folder : found.urls[flag]) !== undefined)
      throw new ConfigError(
        `--${option} names two places for ${flag === undefined ? 'the data folder' : `the ${flag}`}`,
      )
    if (flag === undefined) found.folder = resolve(place)
    else found.urls[flag] = engineUrlOf(flag, place)
  }
  return found
}

const EMBEDDED = { log: 'lmdb:', tables: 'lmdb:', history: 'chdb:' }

/** URLs of all engines of an installation with a folder. */
export const urlsOf = (folder: string, { log, tables, history, files }: Installation['urls']) => ({
  dataPath: folder,
  logUrl: log ?? EMBEDDED.log,
  tablesUrl: tables ?? EMBEDDED.tables,
  historyUrl: history ?? EMBEDDED.history,
  filesUrl: files ?? `file:${resolve(folder, 'files')}`,
})
