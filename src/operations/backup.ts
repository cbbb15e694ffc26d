import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream, existsSync, readdirSync } from 'node:fs'
import { copyFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { type HistoryPart, historyParts, partBlocks, retentionOf } from '../engines/clickhouse-sql/history-parts.ts'
import { rowsOfBlock } from '../engines/clickhouse-sql/native-reader.ts'
import type { Retention } from '../engines/clickhouse-sql/history-tables.ts'
import { schemaOf } from '../engines/clickhouse-sql/history-schema.ts'
import { close } from '../engines/file-modes.ts'
import type { EventLog } from '../engines/event-log.ts'
import type { FileStore } from '../engines/file-store.ts'
import type { HistoryStore } from '../engines/history-store.ts'
import { makeFolder } from '../engines/make-folder.ts'
import type { TableStore } from '../engines/table-store.ts'
import type { Clock } from '../kernel/clock.ts'
import { syncPath } from '../engines/sync-path.ts'

export const BACKUP_FORMAT = 1
export const MANIFEST = 'manifest.json'

export interface BackupEntry {
  /** Relative to the folder of the backup. */
  path: string
  bytes: number
  sha256: string
}

/** One table and month of the history. */
export interface BackupPart extends HistoryPart {
  path: string
  rows: number
}

/** Written last: a folder without it is no complete backup. */
export interface BackupManifest {
  format: number
  /** Time at which it began. */
  at: string
  logId: string
  schema: number
  retention: Retention
  parts: BackupPart[]
  entries: BackupEntry[]
}

export interface BackupServices {
  log: Pick<EventLog, 'copyTo'>
  tables: Pick<TableStore, 'copyTo'>
  history: HistoryStore
  files: FileStore
  clock: Clock
  keysPath: string
  logId: string
}

/**
 * Copies an embedded installation while it runs. Nothing may be truncated meanwhile. Tables come first, the log last:
 * so no checkpoint and no row of the history refers to anything missing in the copy of the log.
 * @throws Error for a folder that is not empty and for engines that are servers
 */
export const backUp = async (services: BackupServices, folder: string): Promise<BackupManifest> => {
  const { log, tables, history, files, clock, keysPath, logId } = services
  if (log.copyTo === undefined || tables.copyTo === undefined)
    throw new Error('log or tables are servers, which have backups of their own; see docs/backup.md')
  if (existsSync(folder) && readdirSync(folder).length > 0) throw new Error(`${folder} is not empty`)
  for (const name of ['log', 'tables', 'history', 'files']) makeFolder(join(folder, name), 0o700)
  close(folder) // it may have existed, empty
  const at = new Date(clock.now()).toISOString()
  await tables.copyTo(join(folder, 'tables'))
  const retention = await retentionOf(history)
  if (retention === undefined) throw new Error('the history has no tables yet')
  const parts: BackupPart[] = []
  for (const part of await historyParts(history)) parts.push(await storePart(history, folder, part))
  await log.copyTo(join(folder, 'log'))
  const paths = ['tables/data.mdb', 'log/data.mdb', ...parts.map(({ path }) => path)]
  for await (const { key } of files.list('')) if (await storeFile(files, key, folder)) paths.push(`files/${key}`)
  await copyFile(keysPath, join(folder, 'keys.json'))
  close(join(folder, 'keys.json')) // a copy keeps the file modes of its source
  paths.push('keys.json')
  const entries: BackupEntry[] = []
  for (const path of paths) entries.push(await entryOf(folder, path))
  const schema = await schemaOf(history)
  const manifest: BackupManifest = { format: BACKUP_FORMAT, at, logId, schema, retention, parts, entries }
  await writeFile(join(folder, `${MANIFEST}.part`), JSON.stringify(manifest, null, 1), { mode: 0o600, flush: true })
  await rename(join(folder, `${MANIFEST}.part`), join(folder, MANIFEST))
  await syncPath(folder)
  return manifest
}

/** Summary of a backup's content. */
export const reportOf = ({ at, logId, parts, entries }: BackupManifest) => ({
  at,
  logId,
  files: entries.length,
  bytes: entries.reduce((sum, { bytes }) => sum + bytes, 0),
  historyRows: parts.reduce((sum, { rows }) => sum + rows, 0),
})

const storePart = async (history: HistoryStore, folder: string, part: HistoryPart): Promise<BackupPart> => {
  const path = `history/${part.table}-${part.month}.native.gz`
  let rows = 0
  const counted = async function* () {
    for await (const block of partBlocks(history, part)) {
      rows += rowsOfBlock(block)
      yield block
    }
  }
  const file = createWriteStream(join(folder, path), { mode: 0o600 })
  await pipeline(Readable.from(counted(), { objectMode: false }), createGzip({ level: 1 }), file)
  return { ...part, path, rows }
}

const storeFile = async (files: FileStore, key: string, folder: string): Promise<boolean> => {
  const found = await files.get(key)
  if (found === undefined) return false // deleted meanwhile
  const path = join(folder, 'files', key)
  makeFolder(dirname(path), 0o700)
  await pipeline(Readable.from(found.stream, { objectMode: false }), createWriteStream(path, { mode: 0o600 }))
  return true
}

/** Size and hash of a backup's file on disk. */
export const entryOf = async (folder: string, path: string): Promise<BackupEntry> => {
  const file = join(folder, path)
  await syncPath(file)
  const hash = createHash('sha256')
  let bytes = 0
  for await (const piece of createReadStream(file) as AsyncIterable<Buffer>) {
    hash.update(piece)
    bytes += piece.length
  }
  return { path, bytes, sha256: hash.digest('hex') }
}
