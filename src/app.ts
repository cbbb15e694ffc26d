import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from './config.ts'
import { ROLES } from './config-flags.ts'
import { isEmbedded } from './engine-urls.ts'
import { lockDataFolder } from './engines/data-folder.ts'
import { closeDataFolder } from './engines/file-modes.ts'
import { openSchema } from './engines/clickhouse-sql/history-schema.ts'
import { undiciCaller } from './engines/undici/undici-caller.ts'
import type { Logger } from './kernel/logger.ts'
import { systemClock } from './kernel/system-clock.ts'
import { idSource } from './kit/commands/ids.ts'
import { alone } from './kit/operations/alone.ts'
import { beginLife } from './kit/operations/life.ts'
import { openKeyring } from './kit/keys/keyring-file.ts'
import { Checkpoints } from './kit/consumers/settle.ts'
import { openLogOrigin, readLogOrigin } from './kit/consumers/log-origin.ts'
import { ProcessRunner } from './processes/runner.ts'
import { LeaseOwners } from './kit/consumers/leases.ts'
import { SoleOwner } from './kit/consumers/owners.ts'
import { openTokenKeys } from './kit/keys/rotate-token-keys.ts'
import {
  makeDataFolder,
  openFiles,
  openHistory,
  openLog,
  openMailer,
  openTables,
  openTravelTimes,
  RESTORING,
} from './open-engines.ts'
import { closeAll, openedParts } from './operations/close-all.ts'
import { assertLogReaches, lacksHistory } from './operations/log-reaches.ts'
import type { ServiceParts } from './roles/role.ts'
import { quotasOf } from './roles/quotas.ts'
import { openService, type App } from './roles/service.ts'

export type { App } from './roles/service.ts'

/** Bounds that no flag sets, lower in tests. */
export type Bounds = Pick<ServiceParts, 'backtestPointsMax'>

/**
 * Opens the engines of the configuration and the service on top of them.
 * @throws Error with one sentence for an engine that cannot be opened or a port that is taken.
 */
export const openApp = async (config: Config, logger: Logger, bounds: Bounds = {}): Promise<App> => {
  assertRoles(config)
  makeDataFolder(config.dataPath)
  if (existsSync(join(config.dataPath, RESTORING)))
    throw new Error(
      `--data ${config.dataPath} is a restore that was cut off: empty the folder and run waymark restore again`,
    )
  const { opened, kept } = openedParts()
  try {
    const folder = lockDataFolder(config.dataPath)
    kept({ close: async () => folder.release() })
    const open = closeDataFolder(config.dataPath)
    if (open.length > 0) logger.warn(OPEN_TO_OTHERS, { paths: open.slice(0, OPEN_SHOWN_MAX) })
    const clock = systemClock
    const keyring = await openKeyring(config.keysPath)
    const ids = idSource(clock.now())
    const life = beginLife(config.dataPath, () => ids.next())
    const log = kept(await openLog(config, clock, () => ids.next()))
    const tokenKeys = kept(await openTokenKeys({ keyring, clock, logger }, config.tokenTtlMs))
    const facts = { partitions: config.partitions, keyringFingerprint: keyring.fingerprint }
    const tables = kept(await openTables(config, clock))
    // Before a new log is marked as the one of these tables.
    await assertLogReaches(log, tables, (await readLogOrigin(log))?.partitions ?? config.partitions)
    const origin = await openLogOrigin(log, facts, () => ids.next())
    const history = kept(await openHistory(config))
    const files = kept(await openFiles(config))
    if (await lacksHistory(history, tables, origin.partitions)) logger.warn(EMPTY_HISTORY)
    const retention = { days: config.locationHistoryDays, runDays: config.automationLogDays }
    await alone('history-schema', { tables, clock, owner: life.id }, () => openSchema(history, retention))
    const caller = undiciCaller({ clock, allow: config.webhookAllow })
    kept({ close: () => caller.close() })
    const mailer = kept(await openMailer(config, clock))
    const travelTimes = config.osrmUrl === undefined ? undefined : kept(await openTravelTimes(config.osrmUrl, clock))
    const checkpoints = new Checkpoints(tables, clock)
    const engines = { log, tables: checkpoints.tables, checkpoints, history, files }
    const processes = new ProcessRunner({ ...engines, clock, logger })
    const quotas = quotasOf({ tables: checkpoints.tables, clock }, config.limits)
    const services = { ...engines, clock, keyring, logger, processes, quotas, partitions: origin.partitions }
    const service = await openService({
      ...bounds,
      config,
      services,
      origin,
      owners: isAlone(config) ? new SoleOwner(services) : kept(await LeaseOwners.open({ ...services, life })),
      life,
      caller,
      mailer,
      travelTimes,
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

const EMPTY_HISTORY =
  'the history is empty, and points were stored in it before: name the right one with --history (docs/migrate.md), or restore it; what the log still has comes back by waymark rebuild location-history, transitions, automation-runs and audit-log'

const OPEN_TO_OTHERS = 'other users of this machine may read the data folder: its modes could not be changed'
const OPEN_SHOWN_MAX = 10

/** LMDB serves one process. */
const isAlone = ({ tablesUrl }: Config): boolean => tablesUrl === 'lmdb:'

/** @throws Error for roles that are divided over an engine of one process. */
const assertRoles = ({ logUrl, tablesUrl, historyUrl, filesUrl, roles }: Config): void => {
  if ([logUrl, tablesUrl, historyUrl, filesUrl].some(isEmbedded) && roles.length < ROLES.length)
    throw new Error('--role splits the work over processes, which the embedded engines cannot share; leave it out')
}
