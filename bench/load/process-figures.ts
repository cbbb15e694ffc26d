import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** Memory of a process in MB: all of it, anonymous memory, and the mapped files. */
export const memoryOf = (pid: number): { rssMb: number; anonMb: number; fileMb: number } => {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const mb = (name: string): number => Math.round(Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]) / 1024)
  return { rssMb: mb('VmRSS'), anonMb: mb('RssAnon'), fileMb: mb('RssFile') }
}

/** Time for which the main thread of a process has been ready to run without a core, in ms. */
export const waitedMsOf = (pid: number): number =>
  Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6

/** Ticks a second in which the kernel counts processor time. */
const TICKS = 100

/** Processor time of a process by the name of its threads, s; its main thread is `main`. */
export const cpuSecondsOf = (pid: number): Map<string, number> => {
  const seconds = new Map<string, number>()
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    try {
      const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8')
      const name = stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')')).replace(/[\d/:-]+/g, '#')
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      const key = thread === String(pid) ? 'main' : name
      seconds.set(key, (seconds.get(key) ?? 0) + (Number(fields[11]) + Number(fields[12])) / TICKS)
    } catch (error) {
      if (!isGone(error)) throw error
    }
  }
  return seconds
}

/** Processor time of all threads of a process, s. */
export const allCpuSecondsOf = (pid: number): number =>
  [...cpuSecondsOf(pid).values()].reduce((sum, seconds) => sum + seconds, 0)

const isGone = (error: unknown): boolean => ['ENOENT', 'ESRCH'].includes((error as { code?: string }).code ?? '')

/** Number of threads of a process by name; numbers in names are left out. */
export const threadsOf = (pid: number): Map<string, number> =>
  countBy(readdirSync(`/proc/${pid}/task`), (thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/comm`, 'utf8')
      .trim()
      .replace(/[\d/:-]+/g, '#'),
  )

/** Number of open handles of a process by kind: sockets, pipes, files by their folder of the data. */
export const handlesOf = (pid: number): Map<string, number> =>
  countBy(readdirSync(`/proc/${pid}/fd`), (handle) => kindOf(readlinkSync(`/proc/${pid}/fd/${handle}`)))

const kindOf = (target: string): string => {
  if (!target.startsWith('/')) return target.replace(/:.*$/, '')
  if (target.startsWith('/proc/')) return '/proc'
  return /\/(log|tables|history|history-scratch)\//.exec(target)?.[1] ?? 'other files'
}

const countBy = (items: readonly string[], nameOf: (item: string) => string): Map<string, number> => {
  const counts = new Map<string, number>()
  for (const item of items) {
    try {
      const name = nameOf(item)
      counts.set(name, (counts.get(name) ?? 0) + 1)
    } catch (error) {
      if (!isGone(error)) throw error
    }
  }
  return counts
}
