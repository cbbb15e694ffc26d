import { type Attributes, bySender, devicePoint, type Heard, ofKnots } from '../point.ts'
import { type Form, readForm } from '../url-form.ts'
import { boolOf, type Json, nameOf, numberOf, objectOf, requiredOf, scalarOf, textOf, timeOf } from '../values.ts'

/**
 * The JSON of Traccar Client and of what is made from it: from 9 on one `location`, or a list of them; members of the
 * form, which `readFlat` reads; a list of either. A heartbeat has no place and is no point.
 */
export const readTraccar = (body: unknown, readFlat: (form: Form) => Heard): Heard[] =>
  bySender(
    (Array.isArray(body) ? body : [body]).map((one) => {
      const root = objectOf(one) ?? {}
      return typeof root.location === 'object' ? readNested(root) : readFlat(root)
    }),
  )

const readNested = (root: Json): Heard => {
  const locations = Array.isArray(root.location) ? root.location : [root.location]
  return {
    points: locations.flatMap((location) => pointOf(root, objectOf(location) ?? {})),
    name: nameOf(root.device_id),
  }
}

/** Some clients write the place beside the time, and battery and activity beside the location. */
const pointOf = (root: Json, location: Json) => {
  const coords = objectOf(location.coords) ?? (location.latitude === undefined ? undefined : location)
  if (coords === undefined) return []
  const battery = objectOf(location.battery ?? root.battery)
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
        activity: textOf(objectOf(location.activity ?? root.activity)?.type),
        charging: boolOf(battery?.is_charging),
        mock: boolOf(location.mock),
        alarm: textOf(location.alarm),
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
