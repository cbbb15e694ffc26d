import { copyFileSync, constants, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readCopyState } from '../../engines/carried-log.ts'
import { readHistoryCopy } from '../../engines/clickhouse-sql/copy-mark.ts'
import { lockDataFolder } from '../../engines/data-folder.ts'
import { close, closeDataFolder } from '../../engines/file-modes.ts'
import type { EventLog } from '../../engines/event-log.ts'
import type { FileStore } from '../../engines/file-store.ts'
import type { HistoryStore } from '../../engines/history-store.ts'
import type { TableStore } from '../../engines/table-store.ts'
import { systemClock } from '../../kernel/system-clock.ts'
import { idSource } from '../../kit/commands/ids.ts'
import { type LogOrigin, readLogOrigin } from '../../kit/consumers/log-origin.ts'
import { openKeyring } from '../../kit/keys/keyring-file.ts'
import {
  makeDataFolder,
  openFiles,
  openHistory,
  openLog,
  openOwnHistory,
  openOwnLog,
  openTables,
} from '../../open-engines.ts'
import { openedParts } from '../../operations/close-all.ts'
import { PROJECTIONS } from '../../product-parts.ts'
import { copyFiles } from './copy-files.ts'
import { copyHistory, endHistoryCopy, isEmptyHistory } from './copy-history.ts'
import { LogCopy } from './copy-log.ts'
import { type Installation, urlsOf } from './installation.ts'

export interface MigrateOptions {
  from: Installation & { folder: string }
  to: Installation
  keysPath: string
  onProgress(line: string): void
}

export interface MigrateReport {
  events: number
  historyRows: number
  files: number
}

/** Engines to fill; absent ones stay the source's. */
interface Target {
  log?: EventLog
  history?: HistoryStore
  files?: FileStore
  tables?: TableStore
}

const clock = systemClock

/**
 * Copies a stopped installation to other engines. Target engines neither named nor in its folder stay the source's.
 * After any interruption, the next run continues; the service does not start on an incomplete copy.
 * @throws Error with one sentence
 */
export const migrate = async (options: MigrateOptions): Promise<MigrateReport> => {
  const { opened, kept } = openedParts()
  try {
    return await copyAll(options, kept)
  } finally {
    for (const engine of opened) await engine.close()
  }
}

type Kept = ReturnType<typeof openedParts>['kept']

const copyAll = async ({ from, to, keysPath, onProgress }: MigrateOptions, kept: Kept): Promise<MigrateReport> => {
  const ids = idSource(clock.now())
  const newId = (): string => ids.next()
  const source = urlsOf(from.folder, from.urls)
  lock(from.folder, kept)
  const log = kept(await openLog(source, clock, newId))
  const { logId } = await originOf(log, keysPath)
  const head = await log.headPosition()
  const target = await openTarget(from, to, kept, newId)
  await assertOurs(target, logId)
  const onEvents = (events: number): void => onProgress(`log: ${events} events`)
  const copy = target.log && (await LogCopy.begin({ from: log, to: target.log, logId, newId, onProgress: onEvents }))
  if (copy?.hasEnded) throw new Error('this log was copied there before, and completely: start the service on it')
  await copy?.run()
  let historyRows = 0
  if (target.history !== undefined)
    historyRows = await copyHistory({
      from: kept(await openHistory(source)),
      to: target.history,
      clock,
      logId,
      onPart: ({ table, month }, rows) => onProgress(`history: ${table} of ${month}, ${rows} rows`),
    })
  const files = target.files === undefined ? 0 : await copyFiles(kept(await openFiles(source)), target.files)
  if (to.folder !== undefined && to.folder !== from.folder) copyKeys(keysPath, join(to.folder, 'keys.json'))
  if (copy !== undefined) onProgress('log: comparing')
  const digest = (await copy?.verify()) ?? {}
  if ((await log.headPosition()) !== head)
    throw new Error('something was written to the source meanwhile: stop every service on it and run this again')
  if (target.history !== undefined) await endHistoryCopy(target.history, logId)
  await copy?.end()
  return { events: Object.values(digest).reduce((sum, { events }) => sum + events, 0), historyRows, files }
}

const lock = (path: string, kept: Kept): void => {
  const folder = lockDataFolder(path)
  kept({ close: async () => folder.release() })
}

const originOf = async (log: EventLog, keysPath: string): Promise<LogOrigin> => {
  const origin = await readLogOrigin(log)
  if (origin === undefined) throw new Error('the source has no log: nothing was ever written there')
  if (!existsSync(keysPath)) throw new Error(`there is no keyring at ${keysPath}; name it with --keys`)
  if ((await openKeyring(keysPath)).fingerprint !== origin.keyringFingerprint)
    throw new Error(`${keysPath} is not the keyring that this log was made with; name the right one with --keys`)
  return origin
}

/** Engines to fill: those of the target that differ from the source's. */
const openTarget = async (from: Installation, to: Installation, kept: Kept, newId: () => string): Promise<Target> => {
  const isNew = to.folder !== undefined && to.folder !== from.folder
  if (isNew) {
    makeDataFolder(to.folder as string)
    lock(to.folder as string, kept)
    closeDataFolder(to.folder as string)
  }
  const urls = urlsOf(to.folder ?? from.folder ?? '', to.urls)
  return {
    ...((isNew || to.urls.log !== undefined) && { log: kept(await openOwnLog(urls, clock, newId)) }),
    ...((isNew || to.urls.history !== undefined) && { history: kept(await openOwnHistory(urls)) }),
    ...((isNew || to.urls.files !== undefined) && { files: kept(await openFiles(urls)) }),
    ...((isNew || to.urls.tables !== undefined) && { tables: kept(await openTables(urls, clock)) }),
  }
}

/** @throws Error if the target holds data before the first run of this copy. */
const assertOurs = async ({ log, tables, history, files }: Target, logId: string): Promise<void> => {
  const isBegun = log !== undefined && (await readCopyState(log)) !== undefined
  if (history !== undefined) {
    const copied = await readHistoryCopy(history)
    if (copied !== undefined && copied.logId !== logId)
      throw new Error('the history to be filled is a copy of another one; name an empty database')
    if (copied?.hasEnded === true && log === undefined)
      throw new Error('this history was copied there before, and completely: start the service on it')
    if (copied === undefined && !isBegun && !(await isEmptyHistory(history)))
      throw new Error('the history to be filled is not empty; name an empty database')
    if (copied !== undefined) return
  }
  if (isBegun) return
  for (const { name } of tables === undefined ? [] : PROJECTIONS)
    if ((await tables?.checkpoint(name)) !== undefined)
      throw new Error('the tables to be used are not empty; name empty ones, for Redis by another ?prefix=')
  if (files !== undefined && log !== undefined)
    for await (const { key } of files.list(''))
      throw new Error(`the place for files is not empty: it has ${key}; name an empty one`)
}

const copyKeys = (from: string, to: string): void => {
  if (!existsSync(to)) {
    copyFileSync(from, to, constants.COPYFILE_EXCL)
    close(to) // a copy keeps the file modes of its source
    return
  }
  if (readFileSync(from, 'utf8') !== readFileSync(to, 'utf8'))
    throw new Error(`${to} is another keyring than that of the source`)
}
