import { createReadStream, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { chmod, copyFile } from 'node:fs/promises'
import { dirname, join, normalize } from 'node:path'
import { createGunzip } from 'node:zlib'
import { assertSchema, openSchema } from '../../engines/clickhouse-sql/history-schema.ts'
import { nativeBlocks, rowsOfBlock } from '../../engines/clickhouse-sql/native-reader.ts'
import { lockDataFolder } from '../../engines/data-folder.ts'
import { closeDataFolder } from '../../engines/file-modes.ts'
import { makeFolder } from '../../engines/make-folder.ts'
import { syncPath } from '../../engines/sync-path.ts'
import { isObject } from '../../kernel/json.ts'
import { compileCheck } from '../../kit/http/validate.ts'
import { makeDataFolder, openHistory, RESTORING } from '../../open-engines.ts'
import { BACKUP_FORMAT, type BackupManifest, entryOf, MANIFEST } from '../../operations/backup.ts'
import { urlsOf } from './installation.ts'

/** Reads every file of a backup and compares it with its manifest. @throws Error that names the differing file */
export const verifyBackup = async (folder: string): Promise<BackupManifest> => {
  const path = join(folder, MANIFEST)
  if (!existsSync(path)) throw new Error(`${folder} has no ${MANIFEST}: it is no backup, or one that was cut off`)
  const manifest = manifestOf(readFileSync(path, 'utf8'))
  for (const entry of manifest.entries) {
    if (normalize(entry.path) !== entry.path || entry.path.startsWith('..') || entry.path.startsWith('/'))
      throw new Error(`${MANIFEST} names a path outside of the backup: ${entry.path}`)
    if (!existsSync(join(folder, entry.path))) throw new Error(`${entry.path} of the backup is missing`)
    const found = await entryOf(folder, entry.path)
    if (found.bytes !== entry.bytes || found.sha256 !== entry.sha256)
      throw new Error(`${entry.path} of the backup is not as it was written`)
  }
  return manifest
}

const TEXT = { type: 'string' }
const COUNT = { type: 'integer', minimum: 0 }
const membersOf = (properties: { [name: string]: object }) => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
})
const checkManifest = compileCheck(
  membersOf({
    format: COUNT,
    at: TEXT,
    logId: TEXT,
    schema: COUNT,
    retention: membersOf({ days: COUNT, runDays: COUNT }),
    parts: { type: 'array', items: membersOf({ table: TEXT, month: COUNT, path: TEXT, rows: COUNT }) },
    entries: { type: 'array', items: membersOf({ path: TEXT, bytes: COUNT, sha256: TEXT }) },
  }),
)

const manifestOf = (text: string): BackupManifest => {
  let manifest: BackupManifest
  try {
    manifest = JSON.parse(text) as BackupManifest
  } catch {
    throw new Error(`${MANIFEST} of the backup cannot be read`)
  }
  if (isObject(manifest) && manifest.format !== BACKUP_FORMAT)
    throw new Error(`the backup has format ${manifest.format}; this version of Waymark reads ${BACKUP_FORMAT}`)
  const [fault] = checkManifest(manifest)
  if (fault !== undefined)
    throw new Error(`${MANIFEST} of the backup is damaged: ${fault.path || 'it'} ${fault.message}`)
  const entries = new Set(manifest.entries.map(({ path }) => path))
  const lacking = manifest.parts.find(({ path }) => !entries.has(path))
  if (lacking !== undefined)
    throw new Error(`${MANIFEST} of the backup is damaged: it has no checksum of ${lacking.path}`)
  return manifest
}

/**
 * Creates a data folder from a backup. The folder must be empty; the service does not start on it until it is complete.
 * @throws Error with one sentence
 */
export const restore = async (folder: string, dataPath: string): Promise<BackupManifest> => {
  const manifest = await verifyBackup(folder)
  assertSchema(manifest.schema, 'the history of the backup', 'restore with')
  if (existsSync(dataPath) && readdirSync(dataPath).length > 0)
    throw new Error(`${dataPath} is not empty: a backup is restored into an empty folder only`)
  makeDataFolder(dataPath)
  const lock = lockDataFolder(dataPath)
  try {
    closeDataFolder(dataPath)
    const mark = join(dataPath, RESTORING)
    writeFileSync(mark, '', { flush: true })
    const isRow = new Set(manifest.parts.map(({ path }) => path))
    const folders = new Set<string>()
    for (const { path } of manifest.entries) {
      if (isRow.has(path)) continue
      const target = join(dataPath, path)
      folders.add(dirname(target))
      makeFolder(dirname(target), 0o700)
      await copyFile(join(folder, path), target)
      await chmod(target, 0o600)
      await syncPath(target)
    }
    for (const one of folders) await syncPath(one)
    await restoreHistory(folder, dataPath, manifest)
    rmSync(mark)
    await syncPath(dataPath)
  } finally {
    lock.release()
  }
  return manifest
}

const restoreHistory = async (folder: string, dataPath: string, manifest: BackupManifest): Promise<void> => {
  const { retention, parts } = manifest
  const history = await openHistory(urlsOf(dataPath, {}))
  try {
    await openSchema(history, retention)
    for (const part of parts) {
      const rows = createReadStream(join(folder, part.path)).pipe(createGunzip())
      let count = 0
      for await (const block of nativeBlocks(rows)) {
        const token = `restore:${part.path}:${count}`
        count += rowsOfBlock(block)
        await history.insert(part.table, block, token)
      }
      if (count !== part.rows) throw new Error(`${part.path} has ${count} rows and not ${part.rows}`)
    }
  } finally {
    await history.close()
  }
}
