import { devicePoint, ofKnots } from '../point.ts'
import type { Said } from '../stream.ts'
import { utcOf } from '../utc-time.ts'
import { degreesOf, numberOf } from '../values.ts'
import { stateOf } from './state.ts'

/** Sentences that wait for `V4`, and those that are echoed. */
const CONFIRMED = ['V1', 'NBR', 'LINK']
const ECHOED = ['V0', 'HTBT']

/** A sentence between `*` and `#`; undefined for one without content, which is not answered. */
export const readSentence = (text: string, now: number): Said | undefined => {
  const fields = text.split(',').map((field) => field.trim())
  const [, name, type] = fields
  if (name === undefined || !/^\d{5,20}$/.test(name) || type === undefined) return undefined
  const points = pointsIn(fields, now)
  const answer = answerTo(text, name, type, now)
  if (points.length > 0) return { kind: 'points', name, points, answer }
  // A message without a place still identifies its sender.
  return { kind: 'login', name, accepted: answer }
}

const answerTo = (text: string, name: string, type: string, now: number): Buffer | undefined => {
  if (ECHOED.includes(type)) return Buffer.from(`*${text}#`)
  return CONFIRMED.includes(type) ? Buffer.from(`*HQ,${name},V4,${type},${stamp(now)}#`) : undefined
}

const stamp = (now: number): string => new Date(now).toISOString().replace(/\D/g, '').slice(0, 14)

/** Fields stand in one order around the two hemispheres; the others before and after differ. */
const pointsIn = (fields: readonly string[], now: number) => {
  const south = fields.findIndex((field, i) => /^[NS]$/.test(field) && /^[EW]$/.test(fields[i + 2] ?? ''))
  if (south < 3) return []
  const lat = degreesIn(fields[south - 1]) * (fields[south] === 'S' ? -1 : 1)
  const lng = degreesIn(fields[south + 1]) * (fields[south + 2] === 'W' ? -1 : 1)
  const isFix = fields[south - 2] === 'A' || /^\d+$/.test(fields[south - 2])
  if (!isFix && (lat !== 0 || lng !== 0)) return []
  const dateAt = fields.findIndex((field, i) => i > south + 3 && /^\d{6}$/.test(field))
  const state = fields[dateAt + 1] ?? ''
  const recordedAt = timeOf(fields[dateAt], fields[south - 3], now)
  return [
    devicePoint(recordedAt, lat, lng, {
      speed: ofKnots(numberOf(fields[south + 3])),
      heading: numberOf(fields[south + 4]),
      attributes: dateAt > 0 && /^[\da-f]{8}$/i.test(state) ? stateOf(Number.parseInt(state, 16)) : undefined,
    }),
  ]
}

/** `ddmm.mmmm`, `ddmmmmmm`, or `-dd-mm.mmmm`; NaN for anything else. */
const degreesIn = (text: string): number => {
  const parts = /^-(\d+)-(\d+\.\d+)$/.exec(text) ?? /^(\d*?)(\d{1,2}\.\d+)$/.exec(text)
  if (parts !== null) return degreesOf(Number(parts[1]), Number(parts[2]))
  const whole = /^(\d+)(\d{6})$/.exec(text)
  return whole === null ? Number.NaN : degreesOf(Number(whole[1]), Number(whole[2]) / 10_000)
}

/** `ddmmyy` and `hhmmss` in UTC; a sentence without a time of day has the moment of its arrival. */
const timeOf = (date: string | undefined, time: string, now: number): number => {
  if (date === undefined || !/^\d{6}$/.test(time)) return now
  const [day, month, year] = pairsOf(date)
  const [hour, minute, second] = pairsOf(time)
  return utcOf(2000 + year, month, day, hour, minute, second)
}

const pairsOf = (text: string): number[] => [text.slice(0, 2), text.slice(2, 4), text.slice(4, 6)].map(Number)
