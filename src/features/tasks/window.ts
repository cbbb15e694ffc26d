import type { Bounds, Find, Range } from '../../engines/table-store.ts'
import { formatTime } from '../../kit/http/request-context.ts'

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

/** Conditions on windows that touch the time between the bounds: by days too, where the bounds are not too far apart. */
export const windowConditions = ({ from, to }: { from?: number; to?: number }): Pick<Find, 'where' | 'ranges'> => {
  const days = from === undefined || to === undefined ? undefined : daysBetween(from, to, ASKED_DAYS_MAX)
  // Windows that are not long touch each of their days.
  const within = (keptWithin: Bounds): Partial<Range> =>
    days === undefined ? {} : { keptWithin, unless: { field: 'days', value: LONG } }
  return {
    where: days === undefined ? {} : { days: [...days, LONG] },
    ranges: [
      ...(from === undefined
        ? []
        : [{ field: 'windowTo', from: formatTime(from), ...within({ from: formatTime(dayStart(from)) }) }]),
      ...(to === undefined
        ? []
        : [{ field: 'windowFrom', to: formatTime(to), ...within({ to: formatTime(dayStart(to) + DAY_MS - 1) }) }]),
    ],
  }
}

const dayStart = (ms: number): number => Math.floor(ms / DAY_MS) * DAY_MS

const daysBetween = (fromMs: number, toMs: number, daysMax: number): string[] | undefined => {
  const first = Math.floor(fromMs / DAY_MS)
  const last = Math.floor(toMs / DAY_MS)
  if (last - first >= daysMax) return undefined
  return Array.from({ length: last - first + 1 }, (_, i) => String(first + i))
}
