// Days of a time zone, without a library: the browser converts the hours.

const DAY_MS = 86_400_000

const formats = new Map<string, Intl.DateTimeFormat>()

const partsAt = (at: number, timeZone: string): number[] => {
  let format = formats.get(timeZone)
  if (format === undefined) {
    format = new Intl.DateTimeFormat('en-u-ca-gregory-nu-latn', {
      timeZone,
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
      hourCycle: 'h23',
    })
    formats.set(timeZone, format)
  }
  const parts = new Map(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]))
  return ['year', 'month', 'day', 'hour', 'minute', 'second'].map((type) => parts.get(type as 'year')!)
}

const offsetAt = (at: number, timeZone: string): number => {
  const [year, month, day, hour, minute, second] = partsAt(at, timeZone) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ]
  return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(at / 1000) * 1000
}

/** The date there, such as `2026-11-23`. */
export const dayAt = (at: number, timeZone: string): string => {
  const [year, month, day] = partsAt(at, timeZone) as [number, number, number]
  return `${String(year).padStart(4, '0')}-${String(month).padStart(2, '0')}-${String(day).padStart(2, '0')}`
}

/** Start of a date there, in ms. If midnight does not exist, the first moment after it. */
export const startOfDay = (day: string, timeZone: string): number => {
  const local = Date.parse(`${day}T00:00:00Z`)
  const first = local - offsetAt(local, timeZone)
  const second = local - offsetAt(first, timeZone)
  const found = Math.min(first, second)
  return dayAt(found, timeZone) === day ? found : Math.max(first, second)
}

/** Whether there is such a date. */
export const isDay = (text: string): boolean =>
  /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(`${text}T00:00:00Z`)) && dayAfter(text, 0) === text

export const dayAfter = (day: string, days = 1): string =>
  new Date(Date.parse(`${day}T00:00:00Z`) + days * DAY_MS).toISOString().slice(0, 10)
