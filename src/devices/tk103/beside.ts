import type { Alarm } from '../attributes.ts'
import type { Attributes } from '../point.ts'
import { numberOf } from '../values.ts'

/** Course, then eight digits of state (power, ignition, three times inputs and outputs, fuel), `L` and the odometer in metres. */
const STATE = /^([ \d.]{6}|\d{2}),?([01])([01])([\dA-F])([\dA-F])[\dA-F][\dA-F]{3}L([\dA-F]+)/i
const COURSE = /^ *(\d+(?:\.\d+)?)/
const TEMPERATURE = /([+-]\d{3}\.\d)$/

/** Values after the time of day. */
export const stateIn = (text: string): { heading: number | undefined; attributes: Attributes } => {
  const temperature1 = numberOf(TEMPERATURE.exec(text)?.[1])
  const state = STATE.exec(text)
  if (state === null) return { heading: numberOf(COURSE.exec(text)?.[1]), attributes: {} }
  const [, course, power, ignition, io, doors, odometer] = state
  const inputs = Number.parseInt(io, 16)
  return {
    heading: numberOf(course),
    attributes: {
      charging: power === '0',
      ignition: ignition === '1',
      input2: (inputs & 1) !== 0,
      output2: (inputs & 4) !== 0,
      door: (Number.parseInt(doors, 16) & 8) !== 0,
      odometer: Number.parseInt(odometer, 16),
      temperature1,
      alarm: (inputs & 2) === 0 ? undefined : 'sos',
    },
  }
}

const BY_DIGIT: { readonly [type: string]: readonly (Alarm | undefined)[] } = {
  BO01: [undefined, 'accident', 'sos', 'vibration', undefined, 'overspeed', 'geofenceExit'],
  BQ81: ['lowBattery', 'overspeed', 'idle', 'hardAcceleration', 'hardBraking', 'temperature'],
}
const BY_TYPE: { readonly [type: string]: Attributes | undefined } = {
  ZC11: { alarm: 'movement' },
  ZC12: { alarm: 'lowBattery' },
  ZC13: { alarm: 'powerCut' },
  ZC15: { ignition: true },
  ZC16: { ignition: false },
  ZC17: { alarm: 'removing' },
  ZC25: { alarm: 'sos' },
  ZC26: { alarm: 'tampering' },
  ZC27: { alarm: 'lowPower' },
  ZC29: { ignition: true },
}
/** The same under other names. */
const ALIASES: { readonly [type: string]: string | undefined } = {
  DW31: 'ZC11',
  DW32: 'ZC12',
  DW33: 'ZC13',
  DW35: 'ZC15',
  DW36: 'ZC16',
  DW37: 'ZC17',
  DW3E: 'ZC25',
  DW3F: 'ZC26',
  DW40: 'ZC27',
  DW42: 'ZC29',
}

/** Attributes from the type of a message, with the first digit of its body. */
export const besideIn = (type: string, body: string): Attributes => {
  const alarm = BY_DIGIT[type]?.[Number(/^(?:,ALARM,)?(\d)/.exec(body)?.[1])]
  return { event: type, ...(alarm && { alarm }), ...BY_TYPE[ALIASES[type] ?? type] }
}
