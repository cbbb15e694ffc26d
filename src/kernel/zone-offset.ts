const formats = new Map<string, Intl.DateTimeFormat>()
/** A format takes some kilobytes; there are some 600 names of zones. */
const FORMATS_MAX = 500

/** ms by which a zone's clocks are ahead of UTC at a moment, in ms since the epoch. @throws RangeError for no zone */
export const zoneOffsetAt = (atMs: number, timeZone: string): number => {
  const parts: { [type: string]: string } = {}
  for (const { type, value } of formatOf(timeZone).formatToParts(atMs)) parts[type] = value
  const year = parts.era === 'BC' ? 1 - Number(parts.year) : Number(parts.year)
  const local = new Date(0)
  local.setUTCFullYear(year, Number(parts.month) - 1, Number(parts.day))
  local.setUTCHours(Number(parts.hour), Number(parts.minute), Number(parts.second))
  return local.getTime() - Math.floor(atMs / 1_000) * 1_000
}

const formatOf = (timeZone: string): Intl.DateTimeFormat => {
  const known = formats.get(timeZone)
  if (known !== undefined) return known
  if (formats.size >= FORMATS_MAX) formats.clear()
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    hourCycle: 'h23',
    era: 'short',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  })
  formats.set(timeZone, format)
  return format
}
