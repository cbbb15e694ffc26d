import type { Clock } from '../../kernel/clock.ts'
import type { Logger } from '../../kernel/logger.ts'

/** Logs how long it took to take these, and the last of each consumer. */
export const logTaken = async (
  taken: readonly { owned: { name: string }; turn: Promise<void> }[],
  { clock, logger }: { clock: Clock; logger: Logger },
): Promise<void> => {
  if (taken.length === 0) return
  const begunMs = clock.monotonic()
  const passedMs = (): number => Math.round(clock.monotonic() - begunMs)
  const msOf: { [consumer: string]: number } = {}
  // Turns that end later write later: what stays is the longest.
  await Promise.all(taken.map(({ owned, turn }) => turn.then(() => (msOf[consumerOf(owned.name)] = passedMs()))))
  logger.info('parts taken', { parts: taken.length, ms: passedMs(), msOf })
}

const consumerOf = (name: string): string => name.replace(/-\d+$/, '')
