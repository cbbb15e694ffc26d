import { Worker } from 'node:worker_threads'
import type { Clock } from '../../kernel/clock.ts'
import { Failure } from '../../kernel/errors.ts'
import type { Plan } from '../../planner/problem.ts'
import type { PlanAnswer, PlanWork } from './plan-worker.ts'

export interface ThreadOptions {
  clock: Clock
  /** Ends the thread without a plan. */
  signal: AbortSignal
  /** Ends the search: the best plan so far is returned. */
  stop: AbortSignal
  /** Share of the budget used, from 0 to 1. */
  progress(used: number): void
}

const MEMORY_MB = 512
/** Extra time for the first plan and the end of the thread, beyond the budget, on a busy machine. */
const GRACE_MS = 60_000
/** Time limit of a search by steps. */
const STEPS_DEADLINE_MS = 600_000

/** Plans in a thread. @throws Failure too_large if that takes too much memory or time; the reason of `signal` */
export const planInThread = (work: Omit<PlanWork, 'stop'>, options: ThreadOptions): Promise<Plan> =>
  new Promise((resolve, reject) => {
    const { clock, signal, stop } = options
    if (signal.aborted) return reject(signal.reason)
    const flag = new Int32Array(new SharedArrayBuffer(4))
    const worker = new Worker(new URL('./plan-worker.js', import.meta.url), {
      workerData: { ...work, stop: flag.buffer } satisfies PlanWork,
      transferList:
        work.roads === undefined
          ? []
          : [work.roads.distances.buffer as ArrayBuffer, work.roads.durations.buffer as ArrayBuffer],
      resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
    })
    const halt = (): void => void Atomics.store(flag, 0, 1)
    const end = (settle: () => void): void => {
      cancelDeadline()
      signal.removeEventListener('abort', abort)
      stop.removeEventListener('abort', halt)
      void worker.terminate()
      settle()
    }
    const abort = (): void => end(() => reject(signal.reason))
    const budgetMs = work.steps === undefined ? work.seconds * 1000 + GRACE_MS : STEPS_DEADLINE_MS
    const cancelDeadline = clock.after(budgetMs, () => end(() => reject(tooLarge('takes too long'))))
    signal.addEventListener('abort', abort)
    stop.addEventListener('abort', halt)
    if (stop.aborted) halt()
    worker.on('message', (answer: PlanAnswer) => {
      if ('plan' in answer) end(() => resolve(answer.plan))
      else options.progress(answer.progress)
    })
    worker.on('error', (error: Error & { code?: string }) =>
      end(() => reject(error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? tooLarge('takes too much memory') : error)),
    )
    worker.on('exit', () => end(() => reject(new Error('the thread that plans routes has ended'))))
  })

const tooLarge = (what: string): Failure =>
  new Failure('too_large', { message: `The planning ${what}; ask for fewer tasks or steps.` })
