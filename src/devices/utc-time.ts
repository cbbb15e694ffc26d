/** Whether the calendar has such a day: `Date` would take the 30th of February for the 2nd of March. */
export const isDay = (year: number, month: number, day: number): boolean =>
  month >= 1 && month <= 12 && new Date(Date.UTC(year, month - 1, day)).getUTCDate() === day

/** ms since the epoch of a date and a time of day in UTC; NaN, which the store refuses, for one that does not exist. */
export const utcOf = (
  year: number,
  month: number,
  day: number,
  hour: number,
  minute: number,
  second: number,
): number => {
  const isTime = isDay(year, month, day) && hour <= 23 && minute <= 59 && second <= 59
  return isTime ? Date.UTC(year, month - 1, day, hour, minute, second) : Number.NaN
}
