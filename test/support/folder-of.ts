import { mkdtempSync, readdirSync, rmSync, statfsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'

const folders = new WeakMap<Test, string>()

/**
 * The folder of a test, the same at every call, deleted after its teardowns: `t.testdir()` before the first of them would be
 * deleted before, under what is still open, and a second `t.testdir()` empties the folder under what the first one holds.
 */
export const folderOf = (t: Test): string => {
  const known = folders.get(t)
  if (known !== undefined) return known
  t.teardown(() => undefined)
  const folder = isInMemory ? inMemory(t) : t.testdir()
  folders.set(t, folder)
  return folder
}

/** The file system in memory of Linux: the engines sync every commit, and tests waited for the disk as long as they worked. */
const MEMORY = '/dev/shm'
const PREFIX = 'waymark-test-'
/** Containers often have only 64 MiB there. */
const FREE_BYTES_MIN = 4 * 1024 ** 3

const hasRoom = (): boolean => {
  try {
    const { bavail, bsize } = statfsSync(MEMORY)
    return bavail * bsize >= FREE_BYTES_MIN
  } catch {
    return false
  }
}

/** Faults are those of a disk too, and their data is large. */
const isInMemory = !/\.faults\.test\.js$/.test(process.argv[1] ?? '') && process.env.TAP === '1' && hasRoom()

const inMemory = (t: Test): string => {
  const folder = mkdtempSync(join(MEMORY, `${PREFIX}${process.pid}-`))
  made.add(folder)
  // As `t.testdir()` does it.
  const { onEOF } = t
  t.onEOF = async () => {
    t.onEOF = onEOF
    await onEOF()
    made.delete(folder)
    rmSync(folder, { recursive: true, force: true })
  }
  return folder
}

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Another container with the same memory has process ids of its own: a test file does not take that long. */
const OLD_MS = 3_600_000

/** Removes what test files that were killed have left there. */
const sweep = (): void => {
  for (const name of readdirSync(MEMORY)) {
    if (!name.startsWith(PREFIX) || isAlive(Number(name.slice(PREFIX.length).split('-')[0]))) continue
    const folder = join(MEMORY, name)
    const changedAt = statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()
    if (Date.now() - changedAt > OLD_MS) rmSync(folder, { recursive: true, force: true })
  }
}

const made = new Set<string>()

if (isInMemory) {
  sweep()
  // A test that fails before its teardown leaves none behind either.
  process.once('exit', () => {
    for (const folder of made) rmSync(folder, { recursive: true, force: true })
  })
}
