/** Native calls of a worker that are under way, and whether the process is about to end; both threads see it. */
export type NativeCalls = Int32Array<SharedArrayBuffer>

const UNDER_WAY = 0
const IS_ENDING = 1
/** Longest wait of an exit for them: on a busy machine, queries that have just begun took over 5 s. */
const EXIT_MS = 15_000

const ofWorkers = new Set<NativeCalls>()

const waitForCalls = (): void => {
  const untilMs = performance.now() + EXIT_MS
  for (const calls of ofWorkers) {
    Atomics.store(calls, IS_ENDING, 1)
    Atomics.notify(calls, IS_ENDING)
  }
  for (const calls of ofWorkers) {
    for (;;) {
      const [count, leftMs] = [Atomics.load(calls, UNDER_WAY), untilMs - performance.now()]
      if (count === 0 || leftMs <= 0) break
      Atomics.wait(calls, UNDER_WAY, count, leftMs)
    }
  }
}

/**
 * For a starting worker: until it is forgotten, `process.exit` waits until it has begun, and for its calls. Node aborts
 * where one returns later.
 */
export const countCalls = (): NativeCalls => {
  if (ofWorkers.size === 0) process.on('exit', waitForCalls)
  const calls = new Int32Array(new SharedArrayBuffer(8))
  Atomics.store(calls, UNDER_WAY, 1)
  ofWorkers.add(calls)
  return calls
}

export const forgetCalls = (calls: NativeCalls): void => {
  ofWorkers.delete(calls)
  if (ofWorkers.size === 0) process.off('exit', waitForCalls)
}

/** Resolves in the worker once the process is about to end. */
export const ending = async (calls: NativeCalls): Promise<void> => {
  await Atomics.waitAsync(calls, IS_ENDING, 0).value
}

/** Runs a native call in the worker. @throws Error while the process ends: then none is begun. */
export const counted = async <Answer>(calls: NativeCalls, call: () => Promise<Answer>): Promise<Answer> =>
  heldOpen(calls, async () => {
    if (Atomics.load(calls, IS_ENDING) !== 0) throw new Error('the process is about to end')
    return call()
  })

/** `process.exit` waits for the end of this, too: the engine crashes where it meets a stream that was not closed. */
export const heldOpen = async <Answer>(calls: NativeCalls, run: () => Promise<Answer>): Promise<Answer> => {
  Atomics.add(calls, UNDER_WAY, 1)
  try {
    return await run()
  } finally {
    endCall(calls)
  }
}

/** Ends a call, or the worker's beginning. */
export const endCall = (calls: NativeCalls): void => {
  Atomics.sub(calls, UNDER_WAY, 1)
  Atomics.notify(calls, UNDER_WAY)
}
