import { type Attributes, devicePoint, type DevicePoint, ofKmh } from '../point.ts'
import { utcOf } from '../utc-time.ts'
import { stateIn } from './state.ts'

/** Messages that begin with time and position. */
const POSITIONED = new Set([
  0x10, 0x11, 0x12, 0x16, 0x1a, 0x1e, 0x22, 0x25, 0x26, 0x27, 0x2d, 0x31, 0x32, 0x37, 0x38, 0xa0, 0xa4,
])
const POSITION_BYTES = 18

const UNITS_IN_DEGREE = 1_800_000

export const hasPosition = (type: number, content: Buffer, isLong: boolean): boolean =>
  !isLong && POSITIONED.has(type) && content.length >= POSITION_BYTES

/** Without a fix the last known place is repeated: that is no point, unless it is 0,0, which is counted as refused. */
export const readPosition = (type: number, content: Buffer, zoneMs: number): DevicePoint[] => {
  const flags = content.readUInt16BE(16)
  const lat = (content.readUInt32BE(7) / UNITS_IN_DEGREE) * ((flags & 0x400) === 0 ? -1 : 1)
  const lng = (content.readUInt32BE(11) / UNITS_IN_DEGREE) * ((flags & 0x800) === 0 ? 1 : -1)
  const isZero = lat === 0 && lng === 0
  if ((flags & 0x1000) === 0 && !isZero) return []
  const attributes: Attributes = { satellites: content[6] & 0x0f, ...stateIn(type, content.subarray(POSITION_BYTES)) }
  if ((flags & 0x4000) !== 0) attributes.ignition = (flags & 0x8000) !== 0
  const measured = { speed: ofKmh(content[15]), heading: flags & 0x3ff, attributes }
  return [devicePoint(timeIn(content) - zoneMs, isZero ? 0 : lat, isZero ? 0 : lng, measured)]
}

/** Six bytes. */
const timeIn = ([year, month, day, hour, minute, second]: Buffer): number =>
  utcOf(2000 + year, month, day, hour, minute, second)
