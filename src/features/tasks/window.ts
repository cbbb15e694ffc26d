const DAY_MS = 86_400_000
/** Longer windows, in days, are found under the name `LONG`. */
const DAYS_MAX = 31
const LONG = 'long'
/** Queries over more days use the bounds alone. */
const ASKED_DAYS_MAX = 92

/** The days (UTC) of a window, by which queries over some days are narrowed down. */
export const daysOf = (from: string, to: string): string[] => {
  const days = daysBetween(Date.parse(from), Date.parse(to), DAYS_MAX)
  return days ?? [LONG]
}

/** Names of days that a window between the bounds may have; undefined if they are too wide or missing. */
export const daysAsked = (fromMs: number | undefined, toMs: number | undefined): string[] | undefined => {
  if (fromMs === undefined || toMs === undefined) return undefined
  const days = daysBetween(fromMs, toMs, ASKED_DAYS_MAX)
  return days && [...days, LONG]
}

const daysBetween = (fromMs: number, toMs: number, daysMax: number): string[] | undefined => {
  const first = Math.floor(fromMs / DAY_MS)
  const last = Math.floor(toMs / DAY_MS)
  if (last - first >= daysMax) return undefined
  return Array.from({ length: last - first + 1 }, (_, i) => String(first + i))
}
