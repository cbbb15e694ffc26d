import { randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, open, opendir, rename, rm, stat, unlink, type FileHandle } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import { Failure } from '../../kernel/errors.ts'
import { assertKey, fileTooLarge, type FileStore, type ListedFile } from '../file-store.ts'
import { makeFolder } from '../make-folder.ts'
import { syncPath } from '../sync-path.ts'

/** Folder of files being written. No key begins with a dot, so no stored file lies there. */
const INCOMING = '.incoming'
const FILES_OPEN_MAX = 16

/**
 * Files in a folder of this machine: written to the side, synced, renamed, and the folder synced. Unfinished files of
 * an earlier process are deleted when the folder is next opened; one process at a time may have it open. Another one
 * may look in with `isGuest`, which deletes nothing.
 */
export const openFileFolder = async (path: string, { isGuest = false } = {}): Promise<FileStore> => {
  const incoming = join(path, INCOMING)
  await guarded(async () => {
    if (!isGuest) await rm(incoming, { recursive: true, force: true })
    makeFolder(incoming, 0o700)
  })
  const pathOf = (key: string): string => {
    assertKey(key)
    return join(path, ...key.split('/'))
  }
  return {
    put: async (key, source, bytesMax) => {
      const target = pathOf(key)
      const beside = join(incoming, randomUUID())
      try {
        const bytes = await writeSynced(beside, source, bytesMax)
        await guarded(async () => {
          await makeFolders(path, dirname(target))
          await rename(beside, target)
          await syncPath(dirname(target))
        })
        return bytes
      } catch (error) {
        await rm(beside, { force: true }).catch(() => undefined) // swept at the next start
        throw error
      }
    },
    get: async (key, range) => {
      const target = pathOf(key)
      const found = await guarded(() => unlessAbsent(stat(target)))
      if (found === undefined || !found.isFile()) return undefined
      const { size: bytes } = found
      if (range !== undefined && range.from >= bytes) return { bytes, stream: NOTHING }
      const part = range === undefined ? {} : { start: range.from, end: Math.min(range.to, bytes - 1) }
      return { bytes, stream: readPieces(target, part) }
    },
    delete: async (key) => {
      const target = pathOf(key)
      await guarded(async () => {
        const isGone = (await unlessAbsent(unlink(target).then(() => true))) === true
        if (isGone) await syncPath(dirname(target))
      })
    },
    list: (prefix) => filesBelow(path, prefix),
    ping: () => guarded(async () => void (await stat(incoming))),
    close: async () => undefined,
  }
}

const NOTHING: AsyncIterable<Uint8Array> = {
  [Symbol.asyncIterator]: () => ({ next: async () => ({ done: true, value: undefined }) }),
}

const writeSynced = async (path: string, source: AsyncIterable<Uint8Array>, bytesMax: number): Promise<number> => {
  const file = await guarded(() => open(path, 'wx', 0o600))
  let bytes = 0
  try {
    for await (const piece of source) {
      bytes += piece.byteLength
      if (bytes > bytesMax) throw fileTooLarge(bytesMax)
      await guarded(() => writeAll(file, piece))
    }
    await guarded(() => file.sync())
  } finally {
    await file.close()
  }
  return bytes
}

const writeAll = async (file: FileHandle, piece: Uint8Array): Promise<void> => {
  for (let at = 0; at < piece.byteLength; ) at += (await file.write(piece, at)).bytesWritten
}

/** Each new folder is synced into the one above it. */
const makeFolders = async (root: string, folder: string): Promise<void> => {
  const first = await mkdir(folder, { recursive: true, mode: 0o700 })
  for (let made = folder; first !== undefined && made.length > root.length; made = dirname(made))
    await syncPath(dirname(made))
}

async function* readPieces(path: string, part: { start?: number; end?: number }): AsyncGenerator<Uint8Array> {
  const stream = createReadStream(path, part)
  try {
    yield* stream
  } catch (error) {
    throw failureOf(error)
  } finally {
    stream.destroy()
  }
}

async function* filesBelow(root: string, prefix: string): AsyncGenerator<ListedFile> {
  // Whole folder names in the prefix spare a walk elsewhere; the rest of it is compared.
  const folders = prefix.split('/').slice(0, -1)
  const waiting = [join(root, ...folders)]
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    const entries = await guarded(() => unlessAbsent(opendir(folder as string, { bufferSize: FILES_OPEN_MAX })))
    if (entries === undefined) continue
    for await (const entry of entries) {
      const path = join(folder, entry.name)
      const key = relative(root, path).split(sep).join('/')
      if (entry.isDirectory() && entry.name !== INCOMING) waiting.push(path)
      if (!entry.isFile() || !key.startsWith(prefix)) continue
      const found = await guarded(() => unlessAbsent(stat(path)))
      if (found !== undefined) yield { key, bytes: found.size, putAt: found.mtimeMs }
    }
  }
}

const unlessAbsent = async <Result>(work: Promise<Result>): Promise<Result | undefined> => {
  try {
    return await work
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return undefined
    throw error
  }
}

const guarded = async <Result>(work: () => Promise<Result>): Promise<Result> => {
  try {
    return await work()
  } catch (error) {
    throw failureOf(error)
  }
}

const failureOf = (error: unknown): unknown => {
  if (error instanceof Failure) return error
  const message = codeOf(error) === 'ENOSPC' ? 'The disk for files is full; try again later.' : undefined
  return new Failure('engine_down', { message, cause: error, retryAfterSeconds: 5 })
}

const codeOf = (error: unknown): unknown => (error as { code?: unknown }).code
