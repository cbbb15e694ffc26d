import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Config } from '../config.ts'
import { ConfigError } from '../config-values.ts'
import { isEmbedded } from '../engine-urls.ts'
import { lockDataFolder } from '../engines/data-folder.ts'
import { systemClock } from '../kernel/system-clock.ts'
import { idSource } from '../kit/commands/ids.ts'
import { openedParts } from '../operations/close-all.ts'
import { askControl } from './control-socket.ts'
import { parseOptions } from './credentials.ts'
import { configOfFlags, flagOptions } from './flags-given.ts'
import { print } from './print.ts'

const BACKUP_USAGE = `waymark backup <folder> [--data ./data] [flags of start]
Copies log, tables, history, files and keyring into a new folder, as they were at one moment, also while the service runs. Log
and tables must be the embedded ones. Where no service runs, give --keys, --files and --history as the service has them.
Anyone who has the backup can read every secret in it. Prints what it holds as JSON.
`
const RESTORE_USAGE = `waymark restore <backup> [--data ./data] [--verify]
Makes a data folder out of a backup; the folder must be empty. --verify only reads the backup and compares its checksums.
`
const BACKUP_OPTIONS = { ...flagOptions(), help: { type: 'boolean' } } as const
const RESTORE_OPTIONS = {
  data: { type: 'string' },
  verify: { type: 'boolean', default: false },
  help: { type: 'boolean' },
} as const

/** `waymark backup`: done by the service that runs on the data folder, or by this process if none runs. */
export const backupCommand = async (args: readonly string[]): Promise<number> => {
  const { values: given, positionals } = parseOptions(args, BACKUP_OPTIONS, true)
  const { help, ...values } = given
  if (help) return print(BACKUP_USAGE)
  if (positionals.length !== 1) throw new ConfigError('name one folder for the backup; run waymark backup --help')
  const folder = resolve(positionals[0])
  const config = configOfFlags(values)
  if (!existsSync(config.dataPath)) throw new ConfigError(`--data ${config.dataPath} does not exist`)
  const answer = await askControl(config.dataPath, { command: 'backup', name: folder })
  if (answer?.ok === false) return failed(answer.error)
  try {
    return print(`${JSON.stringify(answer?.report ?? (await backupAlone(config, folder)))}\n`)
  } catch (error) {
    return failed((error as Error).message)
  }
}

export const restoreCommand = async (args: readonly string[]): Promise<number> => {
  const { values, positionals } = parseOptions(args, RESTORE_OPTIONS, true)
  if (values.help) return print(RESTORE_USAGE)
  if (positionals.length !== 1) throw new ConfigError('name the folder of one backup; run waymark restore --help')
  const folder = resolve(positionals[0])
  const { restore, verifyBackup } = await import('./transfer/restore.ts')
  const { reportOf } = await import('../operations/backup.ts')
  try {
    const manifest = values.verify
      ? await verifyBackup(folder)
      : await restore(folder, configOfFlags({ data: values.data }).dataPath)
    return print(`${JSON.stringify(reportOf(manifest))}\n`)
  } catch (error) {
    return failed((error as Error).message)
  }
}

const backupAlone = async (config: Config, folder: string) => {
  const { openFiles, openHistory, openLog, openTables } = await import('../open-engines.ts')
  const { backUp, reportOf } = await import('../operations/backup.ts')
  const { readLogOrigin } = await import('../kit/consumers/log-origin.ts')
  if (![config.logUrl, config.tablesUrl].every(isEmbedded))
    throw new Error('log or tables are servers, which have backups of their own; see docs/backup.md')
  const lock = lockDataFolder(config.dataPath)
  const { opened, kept } = openedParts()
  try {
    const ids = idSource(systemClock.now())
    const log = kept(await openLog(config, systemClock, () => ids.next()))
    const origin = await readLogOrigin(log)
    if (origin === undefined) throw new Error(`there is nothing to back up in ${config.dataPath}`)
    const tables = kept(await openTables(config, systemClock))
    const history = kept(await openHistory(config))
    const files = kept(await openFiles(config))
    const { keysPath } = config
    return reportOf(
      await backUp({ log, tables, history, files, clock: systemClock, keysPath, logId: origin.logId }, folder),
    )
  } finally {
    for (const engine of opened) await engine.close()
    lock.release()
  }
}

const failed = (why: string | undefined): number => {
  process.stderr.write(`not done: ${why}\n`)
  return 1
}
