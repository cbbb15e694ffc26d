import type { Alarm } from '../attributes.ts'
import { type Attributes, devicePoint, type DevicePoint, ofKmh } from '../point.ts'
import { utcOf } from '../utc-time.ts'

/** Messages that begin with time and position. */
const POSITIONED = new Set([
  0x10, 0x11, 0x12, 0x16, 0x1a, 0x1e, 0x22, 0x25, 0x26, 0x27, 0x2d, 0x31, 0x32, 0x37, 0x38, 0xa0, 0xa4,
])
const POSITION_BYTES = 18

/** Position, then a cell of nine bytes, then the state. */
const WITH_STATE = new Set([0x16, 0x26, 0x27])
const STATE_AT = POSITION_BYTES + 9
/** Position, then a cell of eight bytes, then whether the ignition is on. */
const WITH_IGNITION = 0x22
const IGNITION_AT = POSITION_BYTES + 8

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
  const attributes: Attributes = { satellites: content[6] & 0x0f, ...stateIn(type, content) }
  if ((flags & 0x4000) !== 0) attributes.ignition = (flags & 0x8000) !== 0
  const measured = { speed: ofKmh(content[15]), heading: flags & 0x3ff, attributes }
  return [devicePoint(timeIn(content) - zoneMs, isZero ? 0 : lat, isZero ? 0 : lng, measured)]
}

/** Six bytes. */
const timeIn = ([year, month, day, hour, minute, second]: Buffer): number =>
  utcOf(2000 + year, month, day, hour, minute, second)

const stateIn = (type: number, content: Buffer): Attributes => {
  if (type === WITH_IGNITION) return content.length > IGNITION_AT ? { ignition: content[IGNITION_AT] === 1 } : {}
  if (!WITH_STATE.has(type) || content.length < STATE_AT + 4) return {}
  const state = content[STATE_AT]
  return {
    ignition: (state & 2) !== 0,
    charging: (state & 4) !== 0,
    signal: Math.min(content[STATE_AT + 2], 5),
    alarm: ALARMS[content[STATE_AT + 3]] ?? ALARM_BITS[(state >> 3) & 7],
  }
}

const ALARM_BITS: readonly (Alarm | undefined)[] = [undefined, 'vibration', 'powerCut', 'lowBattery', 'sos']

const ALARMS: { readonly [code: number]: Alarm | undefined } = {
  1: 'sos',
  2: 'powerCut',
  3: 'vibration',
  4: 'geofenceEnter',
  5: 'geofenceExit',
  6: 'overspeed',
  9: 'vibration',
  14: 'lowBattery',
  15: 'lowBattery',
  17: 'powerOff',
  19: 'tampering',
  20: 'door',
  24: 'removing',
  25: 'lowBattery',
  35: 'fall',
  38: 'hardAcceleration',
  39: 'hardBraking',
  44: 'accident',
}
