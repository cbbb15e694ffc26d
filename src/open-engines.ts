import { join, resolve } from 'node:path'
import type { Config } from './config.ts'
import { shownUrl } from './engine-urls.ts'
import { CarriedLog, readCopyState } from './engines/carried-log.ts'
import { readHistoryCopy } from './engines/clickhouse-sql/copy-mark.ts'
import type { EventLog } from './engines/event-log.ts'
import { openFileFolder } from './engines/file-folder/file-folder.ts'
import { openFileMailer } from './engines/file-mailer/file-mailer.ts'
import type { FileStore } from './engines/file-store.ts'
import type { HistoryStore } from './engines/history-store.ts'
import { openLmdbEventLog } from './engines/lmdb-log/lmdb-log.ts'
import { openLmdbTableStore } from './engines/lmdb-tables/lmdb-tables.ts'
import type { Mailer } from './engines/mailer.ts'
import { makeFolder } from './engines/make-folder.ts'
import type { TableStore } from './engines/table-store.ts'
import type { TravelTimes } from './engines/travel-times.ts'
import type { Clock } from './kernel/clock.ts'
import { Failure } from './kernel/errors.ts'

/** Marks a data folder while a backup is restored into it. */
export const RESTORING = 'restoring'

/** Creates a missing data folder, for its owner alone. @throws Error with one sentence */
export const makeDataFolder = (path: string): void => makeFolderOf('data', path, resolve(path))

const makeFolderOf = (flag: string, said: string, path: string): void => {
  try {
    makeFolder(path, 0o700)
  } catch (error) {
    throw new Error(`--${flag} ${said} cannot be made a folder: ${(error as Error).message}`)
  }
}

type Urls = Pick<Config, 'dataPath' | 'logUrl' | 'tablesUrl' | 'historyUrl' | 'filesUrl'>

/**
 * Each is opened by its URL. Large drivers, and the chosen engines, are loaded on demand.
 * @throws Error with one sentence, without the password in the URL
 */
export const openLog = async (urls: Urls, clock: Clock, newId: () => string): Promise<EventLog> => {
  const log = await openOwnLog(urls, clock, newId)
  try {
    const copy = await readCopyState(log)
    if (copy !== undefined && copy.endedAt === undefined)
      throw new Error(
        '--log is an unfinished copy of another log: run waymark migrate again, it goes on where it stopped',
      )
    return copy === undefined ? log : new CarriedLog(log, copy)
  } catch (error) {
    await log.close()
    throw error
  }
}

/** The log of its engine, without the wrapper of a copied log. */
export const openOwnLog = ({ logUrl, dataPath }: Urls, clock: Clock, newId: () => string): Promise<EventLog> =>
  logUrl === 'lmdb:'
    ? openLmdbEventLog({ path: join(dataPath, 'log'), clock })
    : named('log', logUrl, async () => {
        const { openEventstoredbLog } = await import('./engines/eventstoredb-log/eventstoredb-log.ts')
        return openEventstoredbLog({ url: logUrl, newId, now: () => clock.now() })
      })

export const openTables = ({ tablesUrl, dataPath }: Urls, clock: Clock): Promise<TableStore> =>
  tablesUrl === 'lmdb:'
    ? openLmdbTableStore({ path: join(dataPath, 'tables'), clock })
    : named('tables', tablesUrl, async () => {
        const { openRedisTables } = await import('./engines/redis-tables/redis-tables.ts')
        return openRedisTables({ url: tablesUrl })
      })

/** @throws Error also for one into which another history is being copied. */
export const openHistory = async (urls: Urls): Promise<HistoryStore> => {
  const history = await openOwnHistory(urls)
  try {
    if ((await readHistoryCopy(history))?.hasEnded === false)
      throw new Error(
        '--history is an unfinished copy of another history: run waymark migrate again, it goes on where it stopped',
      )
    return history
  } catch (error) {
    await history.close()
    throw error
  }
}

/** The history of its engine, whole or not. */
export const openOwnHistory = async ({ historyUrl, dataPath }: Urls): Promise<HistoryStore> => {
  if (historyUrl !== 'chdb:')
    return named('history', historyUrl, async () => {
      const { openClickhouseHistory } = await import('./engines/clickhouse-history/clickhouse-history.ts')
      return openClickhouseHistory({ url: historyUrl })
    })
  const { openChdbHistoryStore } = await import('./engines/chdb/chdb-history.ts')
  return openChdbHistoryStore({ path: join(dataPath, 'history'), scratchPath: join(dataPath, 'history-scratch') })
}

/** @param options `isGuest` beside a process that may have the folder open */
export const openFiles = async (
  { filesUrl }: Pick<Urls, 'filesUrl'>,
  options?: { isGuest: boolean },
): Promise<FileStore> => {
  if (!filesUrl.startsWith('file:'))
    return named('files', filesUrl, async () => {
      const { openS3Files } = await import('./engines/s3-files/s3-files.ts')
      return openS3Files({ url: filesUrl })
    })
  makeFolderOf('files', filesUrl, folderOf(filesUrl))
  return openFileFolder(folderOf(filesUrl), options)
}

export const openMailer = async (
  { smtpUrl, mailFrom }: Pick<Config, 'smtpUrl' | 'mailFrom'>,
  clock: Clock,
): Promise<Mailer> => {
  if (smtpUrl.startsWith('file:')) {
    makeFolderOf('smtp', smtpUrl, folderOf(smtpUrl))
    return openFileMailer({ path: folderOf(smtpUrl), from: mailFrom })
  }
  const { openSmtpMailer } = await import('./engines/smtp-mailer/smtp-mailer.ts')
  return openSmtpMailer({ url: smtpUrl, from: mailFrom, clock })
}

export const openTravelTimes = async (osrmUrl: string, clock: Clock): Promise<TravelTimes> => {
  const { openOsrmTable } = await import('./engines/osrm-table/osrm-table.ts')
  return openOsrmTable({ url: osrmUrl, clock })
}

/** Folder of `file:<folder>` and `file:///<folder>`. */
export const folderOf = (url: string): string => resolve(url.slice('file:'.length).replace(/^\/\/(?=\/)/, ''))

/** @throws Error naming the flag of an engine that fails or is unusable, without the password in its URL. */
const named = async <Engine>(flag: string, url: string, open: () => Promise<Engine>): Promise<Engine> => {
  try {
    return await open()
  } catch (error) {
    const { message } = error as Error
    if (!(error instanceof Failure) && message.startsWith('--')) throw error
    const what = error instanceof Failure ? `does not answer: ${reasonOf(error)}` : `cannot be used: ${message}`
    throw new Error(`--${flag} ${shownUrl(url)} ${what}`, { cause: error })
  }
}

/** In one line: OpenSSL ends its errors with a new line, and gRPC with notes that are often empty. */
const reasonOf = (error: Error): string =>
  error.cause instanceof Error
    ? reasonOf(error.cause)
    : error.message.replace(/\s+/g, ' ').replace(/[ .:]*( Resolution note: ?)?$/, '')
