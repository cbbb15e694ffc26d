import { join } from 'node:path'
import { v7 } from 'uuid'
import { readConfig } from '../../src/config.ts'
import { type Role, ROLES } from '../../src/config-flags.ts'
import { openChdbHistoryStore } from '../../src/engines/chdb/chdb-history.ts'
import { openSchema } from '../../src/engines/clickhouse-sql/history-schema.ts'
import { openFileFolder } from '../../src/engines/file-folder/file-folder.ts'
import { openFileMailer } from '../../src/engines/file-mailer/file-mailer.ts'
import { openLmdbTableStore } from '../../src/engines/lmdb-tables/lmdb-tables.ts'
import { undiciCaller } from '../../src/engines/undici/undici-caller.ts'
import type { Clock } from '../../src/kernel/clock.ts'
import type { Logger } from '../../src/kernel/logger.ts'
import { systemClock } from '../../src/kernel/system-clock.ts'
import { LeaseOwners } from '../../src/kit/consumers/leases.ts'
import { openLogOrigin } from '../../src/kit/consumers/log-origin.ts'
import { Checkpoints } from '../../src/kit/consumers/settle.ts'
import { openKeyring } from '../../src/kit/keys/keyring-file.ts'
import { ProcessRunner } from '../../src/processes/runner.ts'
import { openService } from '../../src/roles/service.ts'
import { openGappedLog } from './gapped-log.ts'

const PARTITIONS = 4
/** So much faster than real time do leases run here: a life of eight seconds lasts one. */
const FASTER = 8

/** A clock of leases that can be stopped, as for a process that stands still while what it began goes on. */
class LeaseClock implements Clock {
  private isStopped = false
  private due: (() => void)[] = []

  now(): number {
    return systemClock.now()
  }

  monotonic(): number {
    return systemClock.monotonic() * FASTER
  }

  after(delayMs: number, run: () => void): () => void {
    let isCancelled = false
    const go = (): void => {
      if (isCancelled) return
      if (this.isStopped) this.due.push(go)
      else run()
    }
    systemClock.after(delayMs / FASTER, go)
    return () => {
      isCancelled = true
    }
  }

  stop(): void {
    this.isStopped = true
  }

  goOn(): void {
    this.isStopped = false
    for (const run of this.due.splice(0)) run()
  }
}

/** One log, tables and history, and what opens the service over them, as often as wanted, each time with some of the roles. */
export const openEngines = async (folder: string) => {
  const clock = systemClock
  const log = await openGappedLog({ path: join(folder, 'log'), clock })
  const tables = await openLmdbTableStore({ path: join(folder, 'tables'), clock })
  const history = await openChdbHistoryStore({ path: join(folder, 'history'), scratchPath: join(folder, 'scratch') })
  await openSchema(history, { days: 365, runDays: 30 })
  const files = await openFileFolder(join(folder, 'files'))
  const keysPath = join(folder, 'keys.json')
  const { fingerprint } = await openKeyring(keysPath)
  const origin = await openLogOrigin(log, { partitions: PARTITIONS, keyringFingerprint: fingerprint }, () => v7())
  return {
    log,
    tables,
    partitions: PARTITIONS,
    open: (name: string, roles: readonly Role[] = ROLES) =>
      openNode({ log, tables, history, files, origin }, { name, roles, folder, keysPath }),
    close: async () => {
      await files.close()
      await history.close()
      await tables.close()
      await log.close()
    },
  }
}

interface Shared {
  log: Awaited<ReturnType<typeof openGappedLog>>
  tables: Awaited<ReturnType<typeof openLmdbTableStore>>
  history: Awaited<ReturnType<typeof openChdbHistoryStore>>
  files: Awaited<ReturnType<typeof openFileFolder>>
  origin: Awaited<ReturnType<typeof openLogOrigin>>
}

export type Engines = Awaited<ReturnType<typeof openEngines>>

/** A process of the service, as far as one in this process can be: it shares nothing with others but the engines. */
const openNode = async (
  { log, tables, history, files, origin }: Shared,
  { name, roles, folder, keysPath }: { name: string; roles: readonly Role[]; folder: string; keysPath: string },
) => {
  const clock = systemClock
  const flags = ['--data', join(folder, name), '--port', '0', '--webhook-allow', '127.0.0.0/8']
  const config = readConfig([...flags, '--role', roles.join(), '--webhook-schedule', '1s,1s,2s,2s,5s,5s'], {})
  const lines: { level: string; msg: string; fields?: object }[] = []
  const note = (level: string) => (msg: string, fields?: object) => void lines.push({ level, msg, fields })
  const logger: Logger = { debug: () => undefined, info: () => undefined, warn: note('warn'), error: note('error') }
  const checkpoints = new Checkpoints(tables, clock)
  const keyring = await openKeyring(keysPath)
  const processes = new ProcessRunner({ log, tables: checkpoints.tables, clock, logger })
  const own = { tables: checkpoints.tables, checkpoints, keyring, processes, logger }
  const life = { node: name, id: `${name}-${v7()}` }
  const leaseClock = new LeaseClock()
  const owners = await LeaseOwners.open({ tables, logger, life, clock: leaseClock })
  const caller = undiciCaller({ clock, allow: config.webhookAllow })
  const service = await openService({
    config,
    services: { log, history, files, clock, partitions: origin.partitions, ...own },
    origin,
    owners,
    life,
    caller,
    mailer: await openFileMailer({ path: join(folder, 'mail'), from: config.mailFrom }),
    rotateTokenKey: async () => undefined,
  })
  let isClosed = false
  return {
    url: service.url,
    control: service.control,
    lines,
    owner: life.id,
    /** Its leases stand still; all else goes on. */
    freeze: () => leaseClock.stop(),
    thaw: () => leaseClock.goOn(),
    close: async () => {
      if (isClosed) return
      isClosed = true
      leaseClock.goOn()
      await service.close()
      await owners.close()
      await caller.close()
    },
  }
}

export type Node = Awaited<ReturnType<typeof openNode>>
