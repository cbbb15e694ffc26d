import type { Alarm } from '../attributes.ts'
import type { Attributes } from '../point.ts'

/** Length, cell, then the state; the second ones are of 4G. */
const WITH_STATE = new Set([0x16, 0x26, 0x27, 0xa4])
/** Cell, then whether the ignition is on. */
const WITH_IGNITION = new Set([0x22, 0x2d, 0x37, 0xa0])
const OF_4G = new Set([0xa0, 0xa4])

/** Area and cell, behind country and network. */
const CELL_BYTES = 5
const CELL_BYTES_4G = 12
/** State, voltage, signal, alarm. */
const STATE_BYTES = 4

/** What a message says behind its position, `rest`. */
export const stateIn = (type: number, rest: Buffer): Attributes => {
  const isOf4g = OF_4G.has(type)
  if (WITH_IGNITION.has(type)) {
    const at = networkBytes(rest, 0) + (isOf4g ? CELL_BYTES_4G : CELL_BYTES)
    return rest.length > at ? { ignition: rest[at] === 1 } : {}
  }
  if (!WITH_STATE.has(type)) return {}
  const at = 1 + networkBytes(rest, 1) + (isOf4g ? CELL_BYTES_4G : CELL_BYTES)
  if (rest.length < at + STATE_BYTES) return {}
  const [state, , signal, alarm] = rest.subarray(at)
  return {
    ignition: (state & 2) !== 0,
    charging: (state & 4) !== 0,
    signal: Math.min(signal, 5),
    alarm: ALARMS[alarm] ?? ALARM_BITS[(state >> 3) & 7],
  }
}

/** The first bit of the country says that the network has two bytes. */
const networkBytes = (rest: Buffer, at: number): number => ((rest[at] & 0x80) === 0 ? 3 : 4)

const ALARM_BITS: readonly (Alarm | undefined)[] = [undefined, 'vibration', 'powerCut', 'lowBattery', 'sos']

const ALARMS: { readonly [code: number]: Alarm | undefined } = {
  1: 'sos',
  2: 'powerCut',
  3: 'vibration',
  4: 'geofenceEnter',
  5: 'geofenceExit',
  6: 'overspeed',
  9: 'vibration',
  12: 'powerOn',
  14: 'lowBattery',
  15: 'lowBattery',
  17: 'powerOff',
  19: 'tampering',
  20: 'door',
  21: 'powerOff',
  24: 'removing',
  25: 'lowBattery',
  35: 'fall',
  38: 'hardAcceleration',
  39: 'hardBraking',
  41: 'hardAcceleration',
  42: 'hardCornering',
  43: 'hardCornering',
  44: 'accident',
  48: 'hardBraking',
  50: 'unplugged',
}
