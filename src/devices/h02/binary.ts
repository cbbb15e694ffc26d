import { devicePoint, ofKnots } from '../point.ts'
import type { Said } from '../stream.ts'
import { utcOf } from '../utc-time.ts'
import { degreesOf } from '../values.ts'
import { stateOf } from './state.ts'

/**
 * A binary message: digits of four bits. Id 10, `hhmmss`, `ddmmyy`, latitude `ddmmmmmm`, the battery, longitude `dddmmmmmm`,
 * flags, speed `kkk` in knots, course `ddd`, then the state.
 */
export const readBinary = (bytes: Buffer): Said | undefined => {
  const digits = bytes.toString('hex', 1, STATE_AT)
  const name = digits.slice(0, 10)
  if (!/^\d{22}/.test(digits)) return undefined
  const flags = Number.parseInt(digits[41], 16)
  const lat = degreesIn(digits.slice(22, 30), 2) * ((flags & 4) === 0 ? -1 : 1)
  const lng = degreesIn(digits.slice(32, 41), 3) * ((flags & 8) === 0 ? -1 : 1)
  if ((flags & 2) === 0 && (lat !== 0 || lng !== 0)) return { kind: 'login', name }
  const point = devicePoint(timeIn(digits), lat, lng, {
    speed: ofKnots(Number(digits.slice(42, 45))),
    heading: Number(digits.slice(45, 48)),
    battery: batteryOf(Number.parseInt(digits.slice(30, 32), 16)),
    attributes: stateOf(bytes.readUInt32BE(STATE_AT)),
  })
  return { kind: 'points', name, points: [point] }
}

const STATE_AT = 25

const degreesIn = (digits: string, degrees: number): number =>
  degreesOf(Number(digits.slice(0, degrees)), Number(digits.slice(degrees)) / 10 ** (digits.length - degrees - 2))

const timeIn = (digits: string): number => {
  const [hour, minute, second, day, month, year] = [10, 12, 14, 16, 18, 20].map((at) =>
    Number(digits.slice(at, at + 2)),
  )
  return utcOf(2000 + year, month, day, hour, minute, second)
}

/** Steps up to 6, percent above; 0 is unknown. */
const batteryOf = (value: number): number | undefined => {
  if (value === 0) return undefined
  if (value <= 3) return (value - 1) / 10
  if (value <= 6) return (value - 1) / 5
  return value <= 100 ? value / 100 : undefined
}
