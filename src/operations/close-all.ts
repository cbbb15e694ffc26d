import type { Logger } from '../kernel/logger.ts'

interface Part {
  close(): Promise<void> | void
}

/** Opened parts, the last one first. */
export const openedParts = () => {
  const opened: Part[] = []
  const kept = <Kept extends Part>(part: Kept): Kept => {
    opened.unshift(part)
    return part
  }
  return { opened, kept }
}

/** Closes one after the other; a failure does not leave the others open. */
export const closeAll = async (parts: Iterable<Part>, logger: Logger): Promise<void> => {
  for (const part of parts) {
    try {
      await part.close()
    } catch (error) {
      logger.error('a part of the service did not close', { error: String(error) })
    }
  }
}
