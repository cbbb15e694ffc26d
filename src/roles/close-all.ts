import type { Logger } from '../kernel/logger.ts'

/** Closes one after the other; one that fails does not keep the others open. */
export const closeAll = async (parts: Iterable<{ close(): Promise<void> | void }>, logger: Logger): Promise<void> => {
  for (const part of parts) {
    try {
      await part.close()
    } catch (error) {
      logger.error('a part of the service did not close', { error: String(error) })
    }
  }
}
