import { setTimeout as pause } from 'node:timers/promises'

const LIMIT_MS = 240_000

const isDown = (error: unknown): boolean => {
  const { code, status } = error as { code?: unknown; status?: unknown }
  return code === 'engine_down' || status === 503
}

/** Repeats what is refused because an engine is down: right after a failover, a kill or a cut a single attempt may be. */
export const whenUp = async <Result>(run: () => Promise<Result>): Promise<Result> => {
  for (const end = Date.now() + LIMIT_MS; ; ) {
    try {
      return await run()
    } catch (error) {
      if (!isDown(error) || Date.now() > end) throw error
    }
    await pause(20)
  }
}
