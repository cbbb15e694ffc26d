/*
 * Automations cause events that trigger automations. To end every such chain, the metadata of an automation's effects
 * records how many automations came before and how many runs may follow at most: chains that branch end too, and both
 * limits outlive a restart.
 */

/** Remaining budget of a chain of automations after an event. */
export interface Chain {
  /** Automations that led to the event, one after the other. */
  depth: number
  /** Runs that the event may cause, directly and through the effects of those runs. */
  runs: number
}

/** Most automations in a row, each triggered by the one before. */
export const CHAIN_DEPTH_MAX = 10
/** Most runs that may follow from the effects of one event's runs. */
const CHAIN_RUNS_MAX = 1_000

/**
 * Divides an event's budget among its runs: `admitted` of `wanted` may begin, and the effects of each may cause `runs`
 * more.
 * @param chain absent for an event that no automation caused: all of its runs begin
 */
export const shareOf = (chain: Chain | undefined, wanted: number): { admitted: number; runs: number } => {
  if (chain === undefined) return { admitted: wanted, runs: Math.floor(CHAIN_RUNS_MAX / Math.max(1, wanted)) }
  const admitted = chain.depth >= CHAIN_DEPTH_MAX ? 0 : Math.min(wanted, chain.runs)
  return { admitted, runs: admitted === 0 ? 0 : Math.floor((chain.runs - admitted) / admitted) }
}

/** Chain after the effects of a run. @param share of the run, as stored in its trigger */
export const chainAfter = (share: Chain | undefined): Chain => ({
  depth: (share?.depth ?? 0) + 1,
  runs: share?.runs ?? CHAIN_RUNS_MAX,
})
