import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { ConfigError } from '../config-values.ts'
import { parseOptions } from './credentials.ts'
import { print } from './print.ts'
import { installationOf } from './transfer/installation.ts'

const USAGE = `waymark migrate --from <data folder> [--from <url> …] --to <url> [--to <url> …] [--to <folder>] [--keys <file>]
Copies an installation to other engines: the log with every revision, position and time, the history with what the log no
longer has, files and keys. Tables are built from the log at the first start. Stop the service first. Each URL says by its
scheme what it is for: esdb:// the log, redis:// the tables, http:// the history, s3:// the files. What --to does not name stays
where it is, so the history alone, or the files alone, can move; with a folder there, the rest is copied into that, with the
embedded engines. Whatever ends it, run it again: it goes on.

  waymark migrate --from ./data --to esdb://log:2113 --to redis://tables:6379 --to http://history:8123/waymark
  waymark migrate --from ./data --to http://history:8123/waymark
`

const OPTIONS = {
  from: { type: 'string', multiple: true },
  to: { type: 'string', multiple: true },
  keys: { type: 'string' },
  help: { type: 'boolean', default: false },
} as const

/** `waymark migrate`: reports progress on standard error, and prints a summary as one line of JSON. */
export const migrateCommand = async (args: readonly string[]): Promise<number> => {
  const { values } = parseOptions(args, OPTIONS)
  if (values.help) return print(USAGE)
  const from = installationOf('from', (values.from ?? []) as string[])
  const to = installationOf('to', (values.to ?? []) as string[])
  const { folder } = from
  if (folder === undefined)
    throw new ConfigError('--from must name the data folder, for its keys; see waymark migrate --help')
  if (!existsSync(folder)) throw new ConfigError(`--from ${folder} does not exist`)
  if (to.folder === folder)
    throw new ConfigError('--to names the folder of --from; leave it out, what is not named stays there')
  if (to.folder === undefined && [to.urls.log, to.urls.history, to.urls.files].every((url) => url === undefined))
    throw new ConfigError(
      '--to must name a log, a history or a place for files: tables are not copied, they are built from the log at the first start on them',
    )
  for (const [flag, url] of Object.entries(to.urls))
    if (from.urls[flag as 'log'] === url) throw new ConfigError(`--from and --to name the same ${flag}`)
  if (to.folder !== undefined && from.urls.history === undefined && to.urls.history === undefined)
    throw new ConfigError(
      'one process has one embedded history: use waymark backup and waymark restore to copy a folder',
    )
  const keysPath = resolve((values.keys as string | undefined) ?? join(folder, 'keys.json'))
  const { migrate } = await import('./transfer/migrate.ts')
  const onProgress = (line: string): void => void process.stderr.write(`${line}\n`)
  try {
    const report = await migrate({ from: { ...from, folder }, to, keysPath, onProgress })
    return print(`${JSON.stringify(report)}\n`)
  } catch (error) {
    process.stderr.write(`not complete: ${(error as Error).message}\n`)
    return 1
  }
}
