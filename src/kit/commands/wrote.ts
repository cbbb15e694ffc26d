import type { Wrote } from '../http/route.ts'

/** The writes of a request to several streams, as one. */
export const allWrote = (...appends: readonly (Wrote | undefined)[]): Wrote | undefined => {
  const [last, ...before] = appends.filter((wrote) => wrote !== undefined).sort((a, b) => b.position - a.position)
  return last === undefined || before.length === 0 ? last : { ...last, before: [...(last.before ?? []), ...before] }
}
