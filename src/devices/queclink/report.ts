import { type Attributes, devicePoint, type DevicePoint, ofKmh, ofPercent } from '../point.ts'
import type { Said } from '../stream.ts'
import { utcOf } from '../utc-time.ts'
import { numberOf } from '../values.ts'
import { aroundPlace, besideIn } from './beside.ts'

const HEAD = /^\+(RESP|BUFF|ACK):GT([A-Z\d]{3})$/
/** IMEI or MEID; it stands after the version, or in its place. */
const NAME = /^(\d{15}|[\dA-F]{14})$/i
const COUNT = /^[\dA-F]{4}$/i
const VIN = /^(?=.*\d)[A-HJ-NPR-Z\d]{17}$/

/** A report before `$`. Undefined for text that is no report of a device, and is not answered. */
export const readReport = (text: string): Said | undefined => {
  const fields = text.split(',')
  const [, kind, type] = HEAD.exec(fields[0]) ?? []
  const name = fields.slice(1, 3).find((field) => NAME.test(field))
  if (kind === undefined || name === undefined) return undefined
  const answer = answerTo(fields, kind, type)
  const points = kind === 'ACK' ? [] : pointsIn(fields, type)
  if (points.length > 0) return { kind: 'points', name, points, answer }
  return { kind: 'login', name, accepted: answer }
}

/** A device waits for it where its SACK is on; others ignore it. */
const answerTo = (fields: readonly string[], kind: string, type: string): Buffer | undefined => {
  const count = fields.at(-1) ?? ''
  if (!COUNT.test(count)) return undefined
  const heartbeat = kind === 'ACK' && type === 'HBD' ? `GTHBD,${fields[1]},` : ''
  return Buffer.from(`+SACK:${heartbeat}${count}$`)
}

/** Accuracy, speed, course and altitude come before the place, the time of the fix after it. */
const isPlace = (fields: readonly string[], at: number): boolean =>
  /^-?\d{1,3}\.\d{6}$/.test(fields[at]) &&
  /^-?\d{1,2}\.\d{6}$/.test(fields[at + 1] ?? '') &&
  /^\d{14}$/.test(fields[at + 2] ?? '')

const FIRST_PLACE_AT = 7

/** A report may have several places, oldest first; its other values belong to the last one. */
const pointsIn = (fields: readonly string[], type: string): DevicePoint[] => {
  const places = fields.flatMap((_, at) => (at >= FIRST_PLACE_AT && isPlace(fields, at) ? [at] : []))
  const of = besideIn(fields, type)
  return places.flatMap((at, i) => {
    const isLast = i === places.length - 1
    const beside = isLast ? { ...of, ...aroundPlace(fields, type, at) } : {}
    return pointAt(fields, at, { event: type, vin: vinIn(fields), ...beside })
  })
}

/** An accuracy of 0 marks a repeated last known place: no point, unless it is 0,0, which is counted as refused. */
const pointAt = (fields: readonly string[], at: number, beside: Attributes & { battery?: number }): DevicePoint[] => {
  const [accuracy, speed, heading, altitude, lng, lat] = fields.slice(at - 4, at + 2).map(numberOf)
  if (lat === undefined || lng === undefined) return []
  if (accuracy === 0 && (lat !== 0 || lng !== 0)) return []
  const { battery, ...attributes } = beside
  const measured = { altitude, speed: ofKmh(speed), heading, battery: ofPercent(battery) }
  return [devicePoint(timeOf(fields[at + 2]), lat, lng, { ...measured, attributes: { hdop: accuracy, ...attributes } })]
}

const vinIn = (fields: readonly string[]): string | undefined => (VIN.test(fields[3] ?? '') ? fields[3] : undefined)

/** `yyyyMMddHHmmss` in UTC; NaN for an invalid time. */
const timeOf = (text: string): number => {
  const parts = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)$/.exec(text)?.slice(1) ?? []
  const [year, month, day, hour, minute, second] = parts.map(Number)
  return utcOf(year, month, day, hour, minute, second)
}
