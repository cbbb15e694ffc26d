import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  linkSync,
  openSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from './make-folder.ts'

/** A folder of data that this process alone may write to until it releases it or ends. */
export interface DataFolder {
  path: string
  release(): void
}

interface Owner {
  pid: number
  /** Start time of the process, in ticks since the boot: a process number may be reused. */
  startedAt: string
  bootId: string
  token: string
  /** Namespace of process numbers: two containers each have a number 1. */
  namespace?: string
}

const LOCK_FILE = 'owner.lock'

/**
 * Takes a folder for this process and creates it if missing. An owner that died, even by SIGKILL, does not block.
 *
 * @throws Error that names the folder and the process that has it.
 */
export const lockDataFolder = (path: string): DataFolder => {
  makeFolder(path)
  const lock = join(path, LOCK_FILE)
  const token = randomBytes(8).toString('hex')
  const mine = join(path, `${LOCK_FILE}.${token}`)
  const owner: Owner = {
    pid: process.pid,
    startedAt: startOf(process.pid) ?? '',
    bootId: bootId(),
    token,
    namespace: namespace(),
  }
  writeFileSync(mine, JSON.stringify(owner), { flag: 'wx' })
  const letGo = holdPipe(pipeOf(lock, token))
  try {
    take(path, lock, mine, token)
  } catch (error) {
    letGo()
    throw error
  } finally {
    rmSync(mine, { force: true })
  }
  return {
    path,
    release: () => {
      if (ownerOf(lock)?.token === token) rmSync(lock, { force: true })
      letGo()
    },
  }
}

/** A pipe that the owner holds open for as long as it lives, which shows across containers. */
const pipeOf = (lock: string, token: string): string => `${lock}.${token}.pipe`

/** Answers a function that releases it. Without a pipe, other containers cannot tell. */
const holdPipe = (pipe: string): (() => void) => {
  if (spawnSync('mkfifo', ['-m', '600', pipe], { stdio: 'ignore' }).status !== 0) return () => undefined
  let held: number | undefined = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK)
  return () => {
    if (held === undefined) return
    rmSync(pipe, { force: true })
    closeSync(held)
    held = undefined
  }
}

/** Whether any process holds it: a pipe that nobody reads cannot be opened for writing. */
const isHeld = (pipe: string): boolean => {
  try {
    closeSync(openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK))
    return true
  } catch (error) {
    if (['ENXIO', 'ENOENT'].includes((error as NodeJS.ErrnoException).code ?? '')) return false
    throw error
  }
}

/** The process that has a folder now, if any. */
export const ownerOfFolder = (path: string): number | undefined => {
  const lock = join(path, LOCK_FILE)
  const owner = ownerOf(lock)
  return owner !== undefined && isAlive(owner, lock) ? owner.pid : undefined
}

// Only one of many makes a hard link, and it shows the whole file at once.
const take = (path: string, lock: string, mine: string, token: string): void => {
  for (let attempt = 0; attempt < 10; attempt += 1) {
    try {
      linkSync(mine, lock)
      return
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
    const owner = ownerOf(lock)
    if (owner !== undefined && isAlive(owner, lock)) throw inUse(path, owner)
    removeDead(lock, owner, token)
  }
  throw new Error(`The data folder ${path} cannot be taken: several processes try to at once.`)
}

// Moved aside before it is removed: when another process took the folder in between, its lock is put back.
const removeDead = (lock: string, dead: Owner | undefined, token: string): void => {
  const aside = `${lock}.${token}.dead`
  try {
    renameSync(lock, aside)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
    throw error
  }
  try {
    if (ownerOf(aside)?.token !== dead?.token) linkSync(aside, lock)
    else if (dead !== undefined) rmSync(pipeOf(lock, dead.token), { force: true })
  } finally {
    rmSync(aside, { force: true })
  }
}

const inUse = (path: string, owner: Owner): Error =>
  new Error(
    `The data folder ${path} is in use by process ${owner.pid}${isElsewhere(owner) ? ' of another container' : ''}; one process at a time may open it.`,
  )

const ownerOf = (lock: string): Owner | undefined => {
  try {
    return JSON.parse(readFileSync(lock, 'utf8')) as Owner
  } catch (error) {
    // A file that a crash left empty has no living owner.
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Its process number means nothing here. */
const isElsewhere = ({ namespace: others }: Owner): boolean => others !== undefined && others !== namespace()

const isAlive = (owner: Owner, lock: string): boolean => {
  if (owner.bootId !== bootId()) return false
  if (isElsewhere(owner)) return isHeld(pipeOf(lock, owner.token))
  const startedAt = startOf(owner.pid)
  if (startedAt !== undefined) return startedAt === owner.startedAt
  if (process.platform === 'linux') return false
  try {
    process.kill(owner.pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Field 22 of `/proc/<pid>/stat`; undefined where there is no such process, or no `/proc`. */
const startOf = (pid: number): string | undefined => {
  const stat = readIfThere(`/proc/${pid}/stat`)
  // The name of the program, in parentheses, may itself hold spaces and parentheses.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
  // A zombie is dead, although its parent has not collected it yet.
  return fields === undefined || fields[0] === 'Z' ? undefined : fields[19]
}

/** Undefined where there is no `/proc`. */
const namespace = (): string | undefined => {
  try {
    return readlinkSync('/proc/self/ns/pid')
  } catch {
    return undefined
  }
}

const bootId = (): string => readIfThere('/proc/sys/kernel/random/boot_id')?.trim() ?? ''

const readIfThere = (file: string): string | undefined => {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ESRCH' || code === 'ENOTDIR') return undefined
    throw error
  }
}
