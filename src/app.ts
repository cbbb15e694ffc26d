import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { ROLES, type Config } from './config.ts'
import { openLmdbEventLog } from './engines/lmdb-log/lmdb-log.ts'
import { migrateHistory } from './engines/clickhouse-sql/migrate.ts'
import { openChdbHistoryStore } from './engines/chdb/chdb-history.ts'
import { undiciCaller } from './engines/undici/undici-caller.ts'
import { openLmdbTableStore } from './engines/lmdb-tables/lmdb-tables.ts'
import type { Logger } from './kernel/logger.ts'
import { systemClock } from './kernel/system-clock.ts'
import { idSource } from './kit/commands/ids.ts'
import { alone } from './kit/operations/alone.ts'
import { openKeyring } from './kit/keys/keyring-file.ts'
import { Checkpoints } from './kit/consumers/settle.ts'
import { openLogOrigin } from './kit/consumers/log-origin.ts'
import type { Services } from './kit/services.ts'
import { openTokenKeys } from './roles/token-keys.ts'
import { closeAll } from './roles/close-all.ts'
import { openService, type App, type ServiceParts } from './roles/service.ts'

export type { App } from './roles/service.ts'

/** Bounds that no flag sets, lower in tests. */
export type Bounds = Pick<ServiceParts, 'backtestPointsMax'>

/**
 * Opens the engines that the configuration names and the service on top of them.
 * @throws Error with one sentence for an engine that cannot be opened or a port that is taken.
 */
export const openApp = async (config: Config, logger: Logger, bounds: Bounds = {}): Promise<App> => {
  assertEmbedded(config)
  makeFolder(config.dataPath)
  const opened: { close(): Promise<void> }[] = []
  const kept = <Engine extends { close(): Promise<void> }>(engine: Engine): Engine => {
    opened.unshift(engine)
    return engine
  }
  try {
    const clock = systemClock
    const keyring = await openKeyring(config.keysPath)
    const log = kept(await openLmdbEventLog({ path: join(config.dataPath, 'log'), clock }))
    const tokenKeys = kept(await openTokenKeys({ keyring, clock, logger }, config.tokenTtlMs))
    const ids = idSource(clock.now())
    const origin = await openLogOrigin(
      log,
      { partitions: config.partitions, keyringFingerprint: keyring.fingerprint },
      () => ids.next(),
    )
    const tables = kept(await openLmdbTableStore({ path: join(config.dataPath, 'tables'), clock }))
    const history = kept(
      await openChdbHistoryStore({
        path: join(config.dataPath, 'history'),
        scratchPath: join(config.dataPath, 'history-scratch'),
      }),
    )
    const retention = { days: config.locationHistoryDays, runDays: config.automationLogDays }
    await alone('history-schema', { tables, clock, owner: ids.next() }, () => migrateHistory(history, retention))
    const caller = undiciCaller({ clock, allow: config.webhookAllow })
    kept({ close: () => caller.close() })
    const checkpoints = new Checkpoints(tables, clock)
    const services: Services = {
      log,
      tables: checkpoints.tables,
      checkpoints,
      history,
      clock,
      keyring,
      logger,
      partitions: origin.partitions,
    }
    return await openService({
      ...bounds,
      config,
      services,
      origin,
      caller,
      rotateTokenKey: tokenKeys.rotate,
      closeEngines: () => closeAll(opened.splice(0), logger),
    })
  } catch (error) {
    await closeAll(opened.splice(0), logger)
    throw error
  }
}

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

/** The embedded engines belong to one process, so it must do everything. */
const assertEmbedded = ({ logUrl, tablesUrl, historyUrl, roles }: Config): void => {
  const wanted = { log: [logUrl, 'lmdb:'], tables: [tablesUrl, 'lmdb:'], history: [historyUrl, 'chdb:'] }
  for (const [flag, [url, embedded]] of Object.entries(wanted)) {
    if (url !== embedded)
      throw new Error(`--${flag} ${url} names an engine that this version does not have; it has ${embedded}`)
  }
  if (roles.length < ROLES.length)
    throw new Error('--role splits the work over processes, which the embedded engines cannot share; leave it out')
}
