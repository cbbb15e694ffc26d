import { readFileSync } from 'node:fs'

/** The npm or npx that started this process. */
export interface NpmParent {
  /** True once npm, or the shell that it started, has ended. */
  hasEnded(): boolean
}

/**
 * npm passes signals to the shell that it started, not to the command in it, and none when it is killed: the service
 * would keep its port and its data folder. Undefined if npm did not start this process, or there is no /proc.
 */
export const npmParent = (): NpmParent | undefined => {
  const pid = process.ppid
  const parent = processOf(pid)
  if (parent === undefined) return undefined
  if (isNpm(parent)) return { hasEnded: () => process.ppid !== pid }
  const above = processOf(parent.parent)
  if (above === undefined || !isNpm(above)) return undefined
  return { hasEnded: () => process.ppid !== pid || processOf(pid)?.parent !== parent.parent }
}

interface Process {
  name: string
  parent: number
}

const isNpm = ({ name }: Process): boolean => /^np[mx]\b/.test(name)

/** From `/proc/<pid>/stat`: `pid (name) state parent …`, where the name may contain blanks and brackets. */
const processOf = (pid: number): Process | undefined => {
  let stat: string
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return undefined
  }
  const end = stat.lastIndexOf(')')
  return { name: stat.slice(stat.indexOf('(') + 1, end), parent: Number(stat.slice(end + 2).split(' ')[1]) }
}
