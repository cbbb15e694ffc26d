import { devicePoint, type DevicePoint, ofKmh } from '../point.ts'
import type { Said } from '../stream.ts'
import { utcOf } from '../utc-time.ts'
import { degreesOf, numberOf } from '../values.ts'
import { besideIn, stateIn } from './beside.ts'

/** Id and type side by side, or each before a comma: then dates begin with the day, and speeds have any length. */
const HEAD = /^([\dA-Z]{11,15}?)([A-Z]{2}[\dA-F]{2})(.*)$/s
const HEAD_WITH_COMMAS = /^([\dA-Z]{10,20}),([A-Z]{2}[\dA-F]{2})(.*)$/s

/** Date, fix, `ddmm.mmmm` and `dddmm.mmmm`. */
const PLACE =
  /(\d{2})(\d{2})(\d{2}),?([AV]),? *(\d{0,2}?)(\d{2}\.\d+),?([NS]),? *(\d{0,3}?)(\d{2}\.\d+),?([EW]),?(.*)$/s
const MOVEMENT = /^([ \d.]{5})(\d{2})(\d{2})(\d{2}),?(.*)$/s
const MOVEMENT_WITH_COMMAS = /^([\d.]*),(\d{2})(\d{2})(\d{2}),?(.*)$/s

/** A message between the parentheses; undefined for text that is no message of a device, and is not answered. */
export const readMessage = (text: string): Said | undefined => {
  const withCommas = HEAD_WITH_COMMAS.exec(text)
  const [, name, type, body] = withCommas ?? HEAD.exec(text) ?? []
  if (name === undefined) return undefined
  const points = pointsIn(type, body, withCommas !== null)
  const answer = withCommas === null ? answerTo(name, type) : undefined
  if (points.length > 0) return { kind: 'points', name, points, answer }
  return { kind: 'login', name, accepted: answer }
}

/** A handshake and a login are answered; an answer to the others is not documented. */
const answerTo = (name: string, type: string): Buffer | undefined => {
  if (type === 'BP00') return Buffer.from(`(${name}AP01HSO)`)
  return type === 'BP05' ? Buffer.from(`(${name}AP05)`) : undefined
}

/** Without a fix the last known place is repeated: that is no point, unless it is 0,0, which is counted as refused. */
const pointsIn = (type: string, body: string, hasCommas: boolean): DevicePoint[] => {
  const place = PLACE.exec(body)
  if (place === null) return []
  const [, one, month, other, fix, latDegrees, latMinutes, south, lngDegrees, lngMinutes, west, rest] = place
  const lat = degreesOf(Number(latDegrees), Number(latMinutes)) * (south === 'S' ? -1 : 1)
  const lng = degreesOf(Number(lngDegrees), Number(lngMinutes)) * (west === 'W' ? -1 : 1)
  const isZero = lat === 0 && lng === 0
  if (fix === 'V' && !isZero) return []
  const [, speed, hour, minute, second, end = ''] = (hasCommas ? MOVEMENT_WITH_COMMAS : MOVEMENT).exec(rest) ?? []
  const date = hasCommas ? [other, month, one] : [one, month, other]
  const state = stateIn(end)
  return [
    devicePoint(timeOf([...date, hour, minute, second]), isZero ? 0 : lat, isZero ? 0 : lng, {
      speed: ofKmh(numberOf(speed)),
      heading: state.heading,
      attributes: { ...state.attributes, ...besideIn(type, body) },
    }),
  ]
}

/** Time of year, month, day, hour, minute, second as texts, in UTC; NaN where one is missing. */
const timeOf = (parts: readonly (string | undefined)[]): number => {
  const [year, month, day, hour, minute, second] = parts.map(Number)
  return utcOf(2000 + year, month, day, hour, minute, second)
}
