import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { ROLES, type Config } from './config.ts'
import { openClickhouseHistory } from './engines/clickhouse-history/clickhouse-history.ts'
import type { EventLog } from './engines/event-log.ts'
import { lockDataFolder } from './engines/data-folder.ts'
import { openEventstoredbLog } from './engines/eventstoredb-log/eventstoredb-log.ts'
import { openFileFolder } from './engines/file-folder/file-folder.ts'
import type { FileStore } from './engines/file-store.ts'
import type { HistoryStore } from './engines/history-store.ts'
import { openLmdbEventLog } from './engines/lmdb-log/lmdb-log.ts'
import { migrateHistory } from './engines/clickhouse-sql/migrate.ts'
import { openChdbHistoryStore } from './engines/chdb/chdb-history.ts'
import { undiciCaller } from './engines/undici/undici-caller.ts'
import { openFileMailer } from './engines/file-mailer/file-mailer.ts'
import type { Mailer } from './engines/mailer.ts'
import { openSmtpMailer } from './engines/smtp-mailer/smtp-mailer.ts'
import { openLmdbTableStore } from './engines/lmdb-tables/lmdb-tables.ts'
import { openRedisTables } from './engines/redis-tables/redis-tables.ts'
import type { TableStore } from './engines/table-store.ts'
import type { Clock } from './kernel/clock.ts'
import { Failure } from './kernel/errors.ts'
import type { Logger } from './kernel/logger.ts'
import { systemClock } from './kernel/system-clock.ts'
import { idSource } from './kit/commands/ids.ts'
import { alone } from './kit/operations/alone.ts'
import { beginLife } from './kit/operations/life.ts'
import { openKeyring } from './kit/keys/keyring-file.ts'
import { Checkpoints } from './kit/consumers/settle.ts'
import { openLogOrigin } from './kit/consumers/log-origin.ts'
import { ProcessRunner } from './processes/runner.ts'
import { LeaseOwners } from './kit/consumers/leases.ts'
import { SoleOwner } from './kit/consumers/owners.ts'
import { openTokenKeys } from './kit/keys/rotate-token-keys.ts'
import { closeAll } from './roles/close-all.ts'
import type { ServiceParts } from './roles/role.ts'
import { openService, type App } from './roles/service.ts'

export type { App } from './roles/service.ts'

/** Bounds that no flag sets, lower in tests. */
export type Bounds = Pick<ServiceParts, 'backtestPointsMax'>

/**
 * Opens the engines that the configuration names and the service on top of them.
 * @throws Error with one sentence for an engine that cannot be opened or a port that is taken.
 */
export const openApp = async (config: Config, logger: Logger, bounds: Bounds = {}): Promise<App> => {
  assertEngines(config)
  makeFolder(config.dataPath)
  const opened: { close(): Promise<void> }[] = []
  const kept = <Engine extends { close(): Promise<void> }>(engine: Engine): Engine => {
    opened.unshift(engine)
    return engine
  }
  try {
    const folder = lockDataFolder(config.dataPath)
    kept({ close: async () => folder.release() })
    const clock = systemClock
    const keyring = await openKeyring(config.keysPath)
    const ids = idSource(clock.now())
    const life = beginLife(config.dataPath, () => ids.next())
    const log = kept(await openLog(config, clock, () => ids.next()))
    const tokenKeys = kept(await openTokenKeys({ keyring, clock, logger }, config.tokenTtlMs))
    const facts = { partitions: config.partitions, keyringFingerprint: keyring.fingerprint }
    const origin = await openLogOrigin(log, facts, () => ids.next())
    const tables = kept(await openTables(config, clock))
    const history = kept(await openHistory(config))
    const files = kept(await openFiles(config))
    const retention = { days: config.locationHistoryDays, runDays: config.automationLogDays }
    await alone('history-schema', { tables, clock, owner: life.id }, () => migrateHistory(history, retention))
    const caller = undiciCaller({ clock, allow: config.webhookAllow })
    kept({ close: () => caller.close() })
    const mailer = kept(await openMailer(config, clock))
    const checkpoints = new Checkpoints(tables, clock)
    const processes = new ProcessRunner({ log, tables: checkpoints.tables, clock, logger })
    const engines = { log, tables: checkpoints.tables, checkpoints, history, files }
    const services = { ...engines, clock, keyring, logger, processes, partitions: origin.partitions }
    const service = await openService({
      ...bounds,
      config,
      services,
      origin,
      owners: isAlone(config) ? new SoleOwner(services) : kept(await LeaseOwners.open({ ...services, life })),
      life,
      caller,
      mailer,
      rotateTokenKey: tokenKeys.rotate,
    })
    const close = async (): Promise<void> => {
      await service.close()
      await closeAll(opened.splice(0), logger)
    }
    return { ...service, close }
  } catch (error) {
    await closeAll(opened.splice(0), logger)
    throw error
  }
}

/** LMDB serves one process. */
const isAlone = ({ tablesUrl }: Config): boolean => tablesUrl === 'lmdb:'

const makeFolder = (path: string): void => {
  try {
    makeAll(resolve(path))
  } catch (error) {
    throw new Error(`--data ${path} cannot be made a folder: ${(error as Error).message}`)
  }
}

/** One by one: where nothing can be made although the parent is there (below /proc), Node's own recursion never ends. */
const makeAll = (path: string): void => {
  if (existsSync(path)) return void readdirSync(path)
  makeAll(dirname(path))
  mkdirSync(path)
}

const openLog = ({ logUrl, dataPath }: Config, clock: Clock, newId: () => string): Promise<EventLog> =>
  logUrl === 'lmdb:'
    ? openLmdbEventLog({ path: join(dataPath, 'log'), clock })
    : named('log', logUrl, () => openEventstoredbLog({ url: logUrl, newId }))

const openTables = ({ tablesUrl, dataPath }: Config, clock: Clock): Promise<TableStore> =>
  tablesUrl === 'lmdb:'
    ? openLmdbTableStore({ path: join(dataPath, 'tables'), clock })
    : named('tables', tablesUrl, () => openRedisTables({ url: tablesUrl }))

const openHistory = ({ historyUrl, dataPath }: Config): Promise<HistoryStore> =>
  historyUrl === 'chdb:'
    ? openChdbHistoryStore({ path: join(dataPath, 'history'), scratchPath: join(dataPath, 'history-scratch') })
    : named('history', historyUrl, () => openClickhouseHistory({ url: historyUrl }))

const openFiles = ({ filesUrl }: Config): Promise<FileStore> =>
  filesUrl.startsWith('file:')
    ? openFileFolder(folderOf(filesUrl))
    : named('files', filesUrl, async () => {
        // Its driver is large, and most installations have a folder.
        const { openS3Files } = await import('./engines/s3-files/s3-files.ts')
        return openS3Files({ url: filesUrl })
      })

const openMailer = async ({ smtpUrl, mailFrom }: Config, clock: Clock): Promise<Mailer> =>
  smtpUrl.startsWith('file:')
    ? openFileMailer({ path: folderOf(smtpUrl), from: mailFrom })
    : openSmtpMailer({ url: smtpUrl, from: mailFrom, clock })

/** Of `file:<folder>` and `file:///<folder>`. */
const folderOf = (url: string): string => resolve(url.slice('file:'.length).replace(/^\/\/(?=\/)/, ''))

/** @throws Error that says which engine does not answer, without the password in its URL. */
const named = async <Engine>(flag: string, url: string, open: () => Promise<Engine>): Promise<Engine> => {
  try {
    return await open()
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    const shown = url.replace(/\/\/[^@/]*@/, '//***@')
    throw new Error(`--${flag} ${shown} does not answer: ${reasonOf(error)}`, { cause: error })
  }
}

const reasonOf = (error: Error): string => (error.cause instanceof Error ? reasonOf(error.cause) : error.message)

const SCHEMES = {
  log: /^(lmdb:$|esdb(\+discover)?:\/\/)/,
  tables: /^(lmdb:$|rediss?:\/\/)/,
  history: /^(chdb:$|https?:\/\/)/,
  files: /^(file:.|s3:\/\/.)/,
}

/** @throws Error for a URL of no engine, and for roles that are divided over an engine of one process. */
const assertEngines = ({ logUrl, tablesUrl, historyUrl, filesUrl, roles }: Config): void => {
  const given = { log: logUrl, tables: tablesUrl, history: historyUrl, files: filesUrl }
  for (const [flag, scheme] of Object.entries(SCHEMES)) {
    const url = given[flag as keyof typeof given]
    if (!scheme.test(url))
      throw new Error(
        `--${flag} ${url.replace(/\/\/[^@/]*@/, '//***@')} names no engine that Waymark has; see docs/operations.md`,
      )
  }
  const isEmbedded = [logUrl, tablesUrl, historyUrl, filesUrl].some((url) => /^(lmdb|chdb|file):/.test(url))
  if (isEmbedded && roles.length < ROLES.length)
    throw new Error('--role splits the work over processes, which the embedded engines cannot share; leave it out')
}
