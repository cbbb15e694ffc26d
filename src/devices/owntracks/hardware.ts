import type { Alarm } from '../attributes.ts'
import type { Attributes } from '../point.ts'
import { boolOf, type Json, numberOf, textOf } from '../values.ts'

const SECONDS_IN_HOUR = 3600
const METRES_IN_KM = 1000

/** What trackers of hardware say beside a location of OwnTracks; phones have none of it. */
export const hardwareIn = (message: Json): Attributes => ({
  ignition: boolOf(message.ign) ?? turnedIn(message, 'i', 'I'),
  powerCut: turnedIn(message, 'e', 'E'),
  alarm: alarmOf(message),
  motion: boolOf(message.motion),
  odometer: scaled(message.odometer, METRES_IN_KM),
  engineHours: scaled(message.hmc, 1 / SECONDS_IN_HOUR),
  rpm: numberOf(message.rpm),
  fuel: numberOf(message.flvl),
  power: numberOf(message.uext),
  batteryVoltage: numberOf(message.ubatt),
  vin: textOf(message.vin),
  input1: boolOf(message.din1),
  input2: boolOf(message.din2),
  output1: boolOf(message.dout1),
  output2: boolOf(message.dout2),
})

const scaled = (value: unknown, factor: number): number | undefined => {
  const number = numberOf(value)
  return number === undefined ? undefined : number * factor
}

/** Whether the reason of the message is that something was turned on, or off. */
const turnedIn = ({ t }: Json, on: string, off: string): boolean | undefined =>
  t === on || t === off ? t === on : undefined

const ALARMS: { readonly [reason: string]: Alarm } = {
  '!': 'tow',
  '1': 'powerOn',
  '9': 'lowBattery',
  e: 'powerCut',
  s: 'overspeed',
}
/** By the kind of harsh driving, which repeats every three numbers. */
const HARSH: readonly Alarm[] = ['hardBraking', 'hardAcceleration', 'hardCornering']

const alarmOf = ({ t, rty }: Json): Alarm | undefined => {
  const reason = String(t)
  if (reason === 'h') return HARSH[(numberOf(rty) ?? Number.NaN) % HARSH.length]
  return Object.hasOwn(ALARMS, reason) ? ALARMS[reason] : undefined
}
