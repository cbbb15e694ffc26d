import { type Attributes, devicePoint, type Heard, ofKnots } from '../point.ts'
import { type Form, readForm } from '../url-form.ts'
import { boolOf, type Json, numberOf, objectOf, requiredOf, scalarOf, textOf, timeOf } from '../values.ts'

/** The JSON of Traccar Client from 9 on; a heartbeat has no `coords` and is no point. A list is read as several. */
export const readTraccar = (body: unknown): Heard => {
  const root = objectOf(body) ?? {}
  const name = textOf(root.device_id) ?? (typeof root.device_id === 'number' ? String(root.device_id) : undefined)
  const locations = Array.isArray(root.location) ? root.location : [root.location]
  return { points: locations.flatMap((location) => pointOf(objectOf(location) ?? {})), name }
}

const pointOf = (location: Json) => {
  const coords = objectOf(location.coords)
  if (coords === undefined) return []
  const battery = objectOf(location.battery)
  return [
    devicePoint(timeOf(location.timestamp), requiredOf(coords.latitude), requiredOf(coords.longitude), {
      accuracy: numberOf(coords.accuracy),
      altitude: numberOf(coords.altitude),
      speed: numberOf(coords.speed),
      heading: numberOf(coords.heading),
      battery: numberOf(battery?.level),
      attributes: {
        motion: boolOf(location.is_moving),
        odometer: numberOf(location.odometer),
        event: textOf(location.event),
        activity: textOf(objectOf(location.activity)?.type),
        charging: boolOf(battery?.is_charging),
        mock: boolOf(location.mock),
        ...extrasOf(location.extras),
      },
    }),
  ]
}

/** Values that a person configured the app to send. */
const extrasOf = (extras: unknown): Attributes =>
  Object.fromEntries(Object.entries(objectOf(extras) ?? {}).map(([name, value]) => [name, scalarOf(value)]))

/** Traccar Client up to 8 and its imitators: speed in knots. */
export const readTraccarForm = (form: Form, now: number): Heard =>
  readForm(form, now, {
    accuracyOf: (one) => one.accuracy ?? one.acc ?? one.hacc,
    speedOf: ofKnots,
    dilutionOf: (one) => one.hdop,
  })
