import type { Alarm } from '../attributes.ts'
import type { Attributes } from '../point.ts'
import { numberOf } from '../values.ts'

const ALARMS: { readonly [type: string]: Alarm | undefined } = {
  SOS: 'sos',
  SPD: 'overspeed',
  TOW: 'tow',
  IDL: 'idle',
  EPF: 'powerCut',
  MPF: 'powerCut',
  BPL: 'lowBattery',
  TMP: 'temperature',
  TEM: 'temperature',
  JDR: 'jamming',
  JDS: 'jamming',
}
const IGNITIONS: { readonly [type: string]: boolean | undefined } = { IGN: true, VGN: true, IGF: false, VGF: false }
/** Alarms of reports about harsh driving, by the last digit of their kind. */
const HARSH: readonly Alarm[] = ['hardBraking', 'hardAcceleration', 'hardCornering', 'hardBraking', 'hardAcceleration']

const KIND_AT = 5
const STATE_AT = 4

/** Attributes from the type of a report, and the two digits of its kind. */
export const besideIn = (fields: readonly string[], type: string): Attributes => {
  const kind = /^[\dA-F]{1,2}$/i.test(fields[KIND_AT] ?? '') ? Number.parseInt(fields[KIND_AT], 16) : undefined
  const attributes: Attributes = { alarm: ALARMS[type], ignition: IGNITIONS[type] }
  if (type === 'STT') return { ...attributes, ...movementOf(fields[STATE_AT] ?? '') }
  if (kind === undefined) return attributes
  const [first, last] = [kind >> 4, kind & 15]
  if (type === 'HBM') attributes.alarm = HARSH[last]
  if (type === 'NMR') attributes.motion = kind === 1
  if (type === 'IGL') attributes.ignition = last === 1
  if (type === 'DIS' && first >= 1 && first <= 4) attributes[`input${first}`] = last === 1
  return attributes
}

/** Before the place: accuracy, speed, course and altitude; these types have the battery before those. */
const MOVEMENT_FIELDS = 4
const WITH_BATTERY_BEFORE = ['CTN', 'STR']

const MAC = /^[\dA-F]{12}$/i
/** A network: its address, its strength, and three that are empty. */
const NETWORK_FIELDS = 5
const CELL_FIELDS = 4
const END_FIELDS = 2
/** State of the device, inputs, outputs: a byte each. */
const STATUS = /^(?:1[126A]|2[12]|4[12])[\dA-F]{4}$/i
const HOURS = /^(\d{5,7}):(\d\d):(\d\d)$/
const KILOMETRES = /^\d{1,7}\.\d+$/
const PERCENT = /^(?:100|\d{1,2})$/
/** Without a status: an odometer, and the battery last. Longer ends belong to models with other meanings there. */
const SHORT_FIELDS_MAX = 3
const MODE_FIELDS = 7

type Beside = Attributes & { battery?: number }

/** Values of the device around its last place, and their time; models have different fields there. */
export const aroundPlace = (fields: readonly string[], type: string, placeAt: number): Beside => {
  const tail = fields.slice(cellAt(fields, placeAt) + CELL_FIELDS, -END_FIELDS)
  if (WITH_BATTERY_BEFORE.includes(type)) return { battery: percentOf(fields[placeAt - MOVEMENT_FIELDS - 1]) }
  // Battery, mode, motion, temperature.
  if (tail.length === MODE_FIELDS && /^[01]$/.test(tail[4])) return { battery: percentOf(tail[3]) }
  const statusAt = tail.findIndex((field) => STATUS.test(field))
  if (statusAt >= 0) return { ...chargeAndDistance(tail.slice(0, statusAt)), ...statusOf(tail[statusAt]) }
  return tail.length <= SHORT_FIELDS_MAX ? chargeAndDistance(tail) : {}
}

/** After the time of the fix; wireless networks come before it, after their number. */
const cellAt = (fields: readonly string[], placeAt: number): number => {
  let at = placeAt + 3
  if (!MAC.test(fields[at + 1] ?? '')) return at
  for (at++; MAC.test(fields[at] ?? ''); ) at += NETWORK_FIELDS
  return at
}

/** The odometer is the first number with a decimal, the battery the last field. */
const chargeAndDistance = (fields: readonly string[]): Beside => {
  const kilometres = numberOf(fields.find((field) => KILOMETRES.test(field)))
  return {
    battery: fields.length > 1 ? percentOf(fields[fields.length - 1]) : undefined,
    odometer: kilometres === undefined ? undefined : Math.round(kilometres * 1000),
    engineHours: hoursIn(fields),
  }
}

const percentOf = (field: string | undefined): number | undefined =>
  PERCENT.test(field ?? '') ? Number(field) : undefined

const statusOf = (status: string): Attributes => {
  const [input, output] = [status.slice(2, 4), status.slice(4)].map((byte) => Number.parseInt(byte, 16))
  return {
    ...movementOf(status.slice(0, 2)),
    input1: (input & 2) !== 0,
    input2: (input & 4) !== 0,
    output1: (output & 1) !== 0,
    output2: (output & 2) !== 0,
  }
}

/** First digit: ignition off, on, or unknown (4); second: at rest (1) or not. */
const movementOf = (state: string): Attributes => {
  if (!/^(?:1[126A]|2[12]|4[12])$/i.test(state)) return {}
  return { ...(state[0] !== '4' && { ignition: state[0] === '2' }), motion: state[1] !== '1' }
}

const hoursIn = (fields: readonly string[]): number | undefined => {
  const parts = fields.map((field) => HOURS.exec(field)).find((found) => found !== null)
  if (parts === undefined || parts === null) return undefined
  const [hours, minutes, seconds] = parts.slice(1).map(Number)
  return Math.round((hours + minutes / 60 + seconds / 3600) * 1000) / 1000
}
