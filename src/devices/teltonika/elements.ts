import type { Alarm, AttributeName } from '../attributes.ts'
import type { Attributes } from '../point.ts'

/** Reading of an IO element: as the attribute of that name, times the factor. */
interface Element {
  name: AttributeName
  factor?: number
  isSigned?: true
  isBoolean?: true
  /** Numbers that stand for a fault of the sensor. */
  faults?: readonly number[]
}

const flag = (name: AttributeName): Element => ({ name, isBoolean: true })
const scaled = (name: AttributeName, factor = 1): Element => ({ name, factor })
const signed = (name: AttributeName, factor = 1): Element => ({ name, factor, isSigned: true })

/** Not ready, read error, not connected, wrong id, not ready; without them it is -55 to 115 °C. */
const TEMPERATURE_FAULTS = [850, 2000, 3000, 4000, 5000]
const temperature = (name: AttributeName): Element => ({ ...signed(name, 0.1), faults: TEMPERATURE_FAULTS })

/** AVL ids of the FMB family (Teltonika wiki, "FMB AVL ID"); others come as `io<id>`. */
const NAMED: readonly (readonly [id: number, element: Element])[] = [
  [1, flag('input1')],
  [2, flag('input2')],
  [3, flag('input3')],
  [4, flag('input4')],
  [9, scaled('adc1', 0.001)],
  [10, scaled('adc2', 0.001)],
  [12, scaled('fuelUsed', 0.001)],
  [16, scaled('odometer')],
  [21, scaled('signal')],
  [31, scaled('engineLoad')],
  [32, signed('coolantTemperature')],
  [36, scaled('rpm')],
  [66, scaled('power', 0.001)],
  [67, scaled('batteryVoltage', 0.001)],
  [72, temperature('temperature1')],
  [73, temperature('temperature2')],
  [74, temperature('temperature3')],
  [75, temperature('temperature4')],
  [81, scaled('vehicleSpeed', 1 / 3.6)],
  [82, scaled('throttle')],
  [83, scaled('fuelUsed', 0.1)],
  [84, scaled('fuelVolume', 0.1)],
  [85, scaled('rpm')],
  [89, scaled('fuel')],
  [110, scaled('fuelRate', 0.1)],
  [115, signed('coolantTemperature', 0.1)],
  [179, flag('output1')],
  [180, flag('output2')],
  [181, scaled('pdop', 0.1)],
  [182, scaled('hdop', 0.1)],
  [199, scaled('tripDistance')],
  [239, flag('ignition')],
  [240, flag('motion')],
  [662, flag('door')],
]

/** By id: a lookup in a list costs less than in a map. */
const ELEMENTS: (Element | undefined)[] = Array.from({ length: 1024 })
for (const [id, element] of NAMED) ELEMENTS[id] = element
const NUMBERED = Array.from({ length: 1024 }, (_, id) => `io${id}`)
const nameOf = (id: number): string => NUMBERED[id] ?? `io${id}`

const ALARMS = new Map<number, (value: number) => Alarm | undefined>([
  [175, (value) => (value > 0 ? 'geofenceEnter' : 'geofenceExit')],
  [236, (value) => (value > 0 ? 'sos' : undefined)],
  [246, (value) => (value > 0 ? 'tow' : undefined)],
  [247, (value) => (value > 0 ? 'accident' : undefined)],
  [249, (value) => (value > 0 ? 'jamming' : undefined)],
  [251, (value) => (value > 0 ? 'idle' : undefined)],
  [252, (value) => (value > 0 ? 'powerCut' : undefined)],
  [253, (value) => ([undefined, 'hardAcceleration', 'hardBraking', 'hardCornering'] as const)[value]],
])

/** The device's battery in percent is a value of the point. */
export const BATTERY_ELEMENT = 113
const DRIVER_ELEMENT = 78
const VIN_ELEMENTS = [256, 325]
/** Signs of a value by its bytes. */
const SIGN_BITS: { readonly [bytes: number]: number } = { 1: 24, 2: 16, 4: 0 }

/** Adds a value of 1, 2 or 4 bytes. */
export const addElement = (attributes: Attributes, id: number, value: number, bytes: number): void => {
  const element = ELEMENTS[id]
  if (element !== undefined) {
    const { name, factor = 1, isSigned, isBoolean, faults } = element
    const read = isSigned === true ? (value << SIGN_BITS[bytes]) >> SIGN_BITS[bytes] : value
    if (faults?.includes(read)) return
    attributes[name] = isBoolean === true ? value > 0 : factor === 1 ? read : rounded(read * factor)
    return
  }
  const alarmOf = ALARMS.get(id)
  if (alarmOf === undefined) attributes[nameOf(id)] = value
  else attributes.alarm = alarmOf(value) ?? attributes.alarm
}

/** Adds a value of 8 bytes: more than a number holds. */
export const addLong = (attributes: Attributes, id: number, bytes: Buffer): void => {
  const value = bytes.readBigUInt64BE()
  if (id !== DRIVER_ELEMENT) attributes[`io${id}`] = value.toString()
  else if (value !== 0n) attributes.driverId = Buffer.from(bytes).reverse().toString('hex').toUpperCase()
}

export const addVariable = (attributes: Attributes, id: number, bytes: Buffer): void => {
  if (VIN_ELEMENTS.includes(id)) attributes.vin = bytes.toString('latin1').replace(/[^\x20-\x7e]/g, '')
  else attributes[`io${id}`] = bytes.toString('hex')
}

/** Factors of ten leave rounding errors in binary. */
const rounded = (value: number): number => Math.round(value * 1e4) / 1e4
