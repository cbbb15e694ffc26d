import type { Clock } from '../kernel/clock.ts'
import { npmParent } from './npm-parent.ts'

const PARENT_CHECK_MS = 500
/** Under npm, Ctrl+C reaches the service twice: from the terminal, and passed on by npm. */
const SAME_KEY_PRESS_MS = 300

export interface StopSignal {
  isAsked(): boolean
  /** Resolves with the request to stop: a signal, or the end of the npm that started it. */
  asked: Promise<string>
}

/** Listens for requests to stop the service. A second one ends it at once. */
export const stopSignal = (): StopSignal => {
  let askedAt: number | undefined
  const asked = new Promise<string>((done) => {
    const npm = npmParent()
    const stop = (reason: string): void => {
      if (askedAt === undefined) {
        askedAt = performance.now()
        clearInterval(watch)
        done(reason)
      } else if (npm === undefined || performance.now() - askedAt > SAME_KEY_PRESS_MS) process.exit(1)
    }
    const watch = setInterval(() => {
      if (npm?.hasEnded()) stop('npm ended')
    }, PARENT_CHECK_MS).unref()
    process.on('SIGTERM', stop).on('SIGINT', stop)
  })
  return { isAsked: () => askedAt !== undefined, asked }
}

/** Whether it ended within `limitMs`. */
export const endsInTime = (
  ending: Promise<unknown>,
  clock: Pick<Clock, 'after'>,
  limitMs: number | undefined,
): Promise<boolean> =>
  new Promise((resolve, reject) => {
    const cancel = limitMs === undefined ? () => undefined : clock.after(limitMs, () => resolve(false))
    ending.then(() => resolve(true), reject).finally(cancel)
  })
