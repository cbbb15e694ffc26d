import { ZonedTime } from '../../kernel/zoned-time.ts'

/** Times of a day, `HH:MM` or `HH:MM:SS`; `to` before or at `from` is on the next day. */
export interface DaySpan {
  from: string
  to: string
}

/** Seconds after the beginning of a planning. */
export interface Span {
  from: number
  to: number
}

const DAY_MS = 86_400_000

/** The first working hours that end after the beginning, cut off before it; without a span, they never end. */
export const hoursFrom = (span: DaySpan | undefined, startAtMs: number, timeZone: string): Span => {
  if (span === undefined) return { from: 0, to: Number.POSITIVE_INFINITY }
  const zone = new ZonedTime(timeZone)
  for (let day = -1; ; day++) {
    const { from, to } = onDay(span, startAtMs, day, zone)
    if (to > 0) return { from: Math.max(0, from), to }
  }
}

/** Breaks of every day that the hours touch; for hours without an end, those of a week. */
export const breaksIn = (breaks: readonly DaySpan[], hours: Span, startAtMs: number, timeZone: string): Span[] => {
  const zone = new ZonedTime(timeZone)
  const days = Number.isFinite(hours.to) ? Math.ceil(hours.to / 86_400) + 1 : 7
  return Array.from({ length: days + 2 }, (_value, i) => i - 1).flatMap((day) =>
    breaks
      .map((span) => onDay(span, startAtMs, day, zone))
      .filter(({ from, to }) => to > hours.from && from < hours.to),
  )
}

const onDay = ({ from, to }: DaySpan, startAtMs: number, day: number, zone: ZonedTime): Span => {
  const local = startAtMs + zone.offsetAt(startAtMs)
  const midnight = Math.floor(local / DAY_MS) * DAY_MS + day * DAY_MS
  const [begin, end] = [millisOf(from), millisOf(to)]
  return {
    from: (zone.momentOf(midnight + begin) - startAtMs) / 1000,
    to: (zone.momentOf(midnight + end + (end <= begin ? DAY_MS : 0)) - startAtMs) / 1000,
  }
}

const millisOf = (time: string): number => {
  const [hours, minutes, seconds = 0] = time.split(':').map(Number)
  return ((hours * 60 + minutes) * 60 + seconds) * 1000
}
