import { readdirSync, readFileSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'

/** Threads that merge parts and clean up: nobody waits for them. */
const BACKGROUND = /^(MergeMutate|BgSchPool|BgStrmSchPool|Common|Fetch|Move)/
const NICE = 10

/**
 * Lets the engine's background threads yield to all awaited work: with few cores, merges would take the processor from
 * the event loop for tens of milliseconds at a time. The engine has no setting for it. Only Linux has priorities of
 * threads; elsewhere nothing happens. A process started with a lower one keeps it.
 */
export const lowerBackgroundThreads = (): void => {
  if (process.platform !== 'linux') return
  for (const thread of readdirSync('/proc/self/task')) {
    try {
      const isBackground = BACKGROUND.test(readFileSync(`/proc/self/task/${thread}/comm`, 'utf8'))
      if (isBackground && getPriority(Number(thread)) < NICE) setPriority(Number(thread), NICE)
    } catch (error) {
      if (!hasEnded(error)) throw error
    }
  }
}

const hasEnded = (error: unknown): boolean =>
  /^(ENOENT|ESRCH)$/.test(
    (error as { code?: string; info?: { code: string } }).info?.code ?? (error as { code?: string }).code ?? '',
  )
