import type { Clock } from '../../kernel/clock.ts'
import type { Logger } from '../../kernel/logger.ts'
import type { Owned } from './owners.ts'

/** A part that a process joins in running. */
export interface Joined {
  owned: Owned
  state: 'idle' | 'taken' | 'leaving'
  isEnding: boolean
  /** Ends the attempts to take it. */
  abort: AbortController
  /** Taking and leaving run one after the other. */
  turn: Promise<void>
}

export const joinedOf = (owned: Owned): Joined => ({
  owned,
  state: 'idle',
  isEnding: false,
  abort: new AbortController(),
  turn: Promise.resolve(),
})

/** Parts that use the processor for long when they are taken or left, and the others. */
export const bySpeed = (all: readonly Joined[]): { quick: Joined[]; slow: Joined[] } => {
  const isSlow = ({ owned }: Joined): boolean => owned.isSlow === true
  return { quick: all.filter((joined) => !isSlow(joined)), slow: all.filter(isSlow) }
}

/** Parts whose results people watch, and the others. */
export const byUrgency = (all: readonly Joined[]): { urgent: Joined[]; others: Joined[] } => {
  const isUrgent = ({ owned }: Joined): boolean => owned.shown !== undefined
  return { urgent: all.filter(isUrgent), others: all.filter((joined) => !isUrgent(joined)) }
}

/** Resolves when all of these are taken, and what waited for them is stored. */
export const allShown = (taken: readonly Joined[]): Promise<unknown> =>
  Promise.all(taken.map(({ owned, turn }) => turn.then(() => owned.shown?.())))

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
