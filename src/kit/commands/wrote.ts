import type { Wrote } from '../http/route.ts'

/** What a request wrote to several streams, as one. */
export const allWrote = (...appends: readonly (Wrote | undefined)[]): Wrote | undefined => {
  const [last, ...before] = appends.filter((wrote) => wrote !== undefined).sort((a, b) => b.position - a.position)
  return last === undefined || before.length === 0 ? last : { ...last, before: [...(last.before ?? []), ...before] }
}
