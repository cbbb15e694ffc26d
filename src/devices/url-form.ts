import type { AttributeName } from './attributes.ts'
import { type Attributes, devicePoint, type Heard, NOTHING, ofPercent } from './point.ts'
import { boolOf, nameOf, numberOf, requiredOf, textOf, timeOf } from './values.ts'

export type Form = { readonly [name: string]: unknown }

/** Meaning of names that clients of the same form use differently. */
export interface Dialect {
  accuracyOf(form: Form): unknown
  speedOf(speed: number | undefined): number | undefined
  dilutionOf(form: Form): unknown
}

/** Without a time it has the moment of the request, which is passed in. */
export const readForm = (given: Form, now: number, dialect: Dialect): Heard => {
  const form = Object.fromEntries(Object.entries(given).map(([name, value]) => [name.toLowerCase(), first(value)]))
  const name = nameOf(form.id) ?? nameOf(form.deviceid) ?? nameOf(form.device_id)
  const [lat, lng] = placeOf(form)
  const isPlace = lat !== undefined || lng !== undefined
  // A heartbeat, or a last known place that is marked as no fix.
  if (!isPlace || (boolOf(form.valid) === false && !isZero(lat, lng))) return { ...NOTHING, name }
  const time = form.timestamp ?? form.time ?? form.ts
  const point = devicePoint(time === undefined ? now : timeOf(withPlus(time)), requiredOf(lat), requiredOf(lng), {
    accuracy: numberOf(dialect.accuracyOf(form)),
    altitude: numberOf(form.altitude ?? form.alt),
    speed: dialect.speedOf(known(numberOf(form.speed ?? form.spd))),
    heading: numberOf(form.bearing ?? form.heading ?? form.course ?? form.dir),
    battery: batteryOf(form),
    attributes: { ...namedIn(form), hdop: numberOf(dialect.dilutionOf(form)) },
  })
  return { points: [point], name }
}

/** A `+` that nobody wrote as `%2B` is a space in a query: only an offset to the east begins with one. */
const withPlus = (time: unknown): unknown => textOf(time)?.replace(/ (\d{2}:?\d{2})$/, '+$1') ?? time

const first = (value: unknown): unknown => (Array.isArray(value) ? value[0] : value)

const known = (value: number | undefined): number | undefined => (value === undefined || value < 0 ? undefined : value)

const isZero = (lat: unknown, lng: unknown): boolean => numberOf(lat) === 0 && numberOf(lng) === 0

const placeOf = (form: Form): unknown[] => {
  const together = textOf(form.location)?.split(',')
  return [form.lat ?? form.latitude ?? together?.[0], form.lon ?? form.lng ?? form.longitude ?? together?.[1]]
}

const batteryOf = ({ batt, battery }: Form): number | undefined => ofPercent(numberOf(batt ?? battery))

const NUMBERS: { readonly [parameter: string]: AttributeName } = {
  fuel: 'fuel',
  odometer: 'odometer',
  rpm: 'rpm',
  sat: 'satellites',
  satellites: 'satellites',
  power: 'power',
  steps: 'steps',
}
const BOOLEANS: { readonly [parameter: string]: AttributeName } = {
  charge: 'charging',
  charging: 'charging',
  ignition: 'ignition',
  motion: 'motion',
  mock: 'mock',
}
const TEXTS: { readonly [parameter: string]: AttributeName } = {
  activity: 'activity',
  act: 'activity',
  alarm: 'alarm',
  driverid: 'driverId',
  driveruniqueid: 'driverId',
  event: 'event',
}

const namedIn = (form: Form): Attributes => {
  const attributes: Attributes = {}
  for (const [parameter, value] of Object.entries(form)) {
    if (Object.hasOwn(NUMBERS, parameter)) attributes[NUMBERS[parameter]] ??= numberOf(value)
    else if (Object.hasOwn(BOOLEANS, parameter)) attributes[BOOLEANS[parameter]] ??= boolOf(value)
    else if (Object.hasOwn(TEXTS, parameter)) attributes[TEXTS[parameter]] ??= textOf(value)
  }
  return attributes
}
