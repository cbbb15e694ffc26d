/*
 * Automations lead to events that automations hear of. So that no chain of them goes on for ever, the metadata of what
 * an automation does says how many automations came before, and to how many runs it may lead at most: also a chain that
 * branches ends, and both outlive a restart.
 */

/** What is left of a chain of automations after an event. */
export interface Chain {
  /** Automations that led to the event, one after the other. */
  depth: number
  /** Runs that the event may lead to, directly and through what they do. */
  runs: number
}

/** Most automations in a row, each set off by the one before. */
export const CHAIN_DEPTH_MAX = 10
/** Runs that may follow from what the runs of one event do. */
const CHAIN_RUNS_MAX = 1_000

/**
 * Shares what an event may lead to out among its runs: `admitted` of `wanted` may begin, and what each of them does may
 * lead to `runs` more.
 * @param chain absent for an event that no automation led to: all of its runs begin
 */
export const shareOf = (chain: Chain | undefined, wanted: number): { admitted: number; runs: number } => {
  if (chain === undefined) return { admitted: wanted, runs: Math.floor(CHAIN_RUNS_MAX / Math.max(1, wanted)) }
  const admitted = chain.depth >= CHAIN_DEPTH_MAX ? 0 : Math.min(wanted, chain.runs)
  return { admitted, runs: admitted === 0 ? 0 : Math.floor((chain.runs - admitted) / admitted) }
}

/** What follows from what a run does. @param share of the run, as its trigger has it */
export const chainAfter = (share: Chain | undefined): Chain => ({
  depth: (share?.depth ?? 0) + 1,
  runs: share?.runs ?? CHAIN_RUNS_MAX,
})
