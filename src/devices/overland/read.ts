import { bySender, devicePoint, type DevicePoint, type Heard, NOTHING } from '../point.ts'
import { boolOf, nameOf, numberOf, objectOf, requiredOf, textOf, timeOf } from '../values.ts'

/**
 * `{locations: [GeoJSON Feature]}` of Overland and Colota, by device: one that was renamed still sends what it noted
 * under its old name. `current`, which comes beside a long queue, comes again in its turn: taken at once it would make
 * everything before it late.
 */
export const readOverland = (body: unknown): Heard[] => {
  const locations = objectOf(body)?.locations
  if (!Array.isArray(locations)) return [NOTHING]
  const names = locations.map((feature) => nameOf(objectOf(objectOf(feature)?.properties)?.device_id))
  const known = names.find((name) => name !== undefined)
  return bySender(locations.map((feature, i) => ({ points: pointOf(feature), name: names[i] ?? known })))
}

/** A visit or a tracking event without a place is no point. */
const pointOf = (feature: unknown): DevicePoint[] => {
  const { geometry, properties } = objectOf(feature) ?? {}
  const said = objectOf(properties) ?? {}
  const coordinates = objectOf(geometry)?.coordinates
  if (!Array.isArray(coordinates) && textOf(said.type) !== undefined) return []
  const [lng, lat] = Array.isArray(coordinates) ? coordinates : []
  const state = textOf(said.battery_state)
  return [
    devicePoint(timeOf(said.timestamp), requiredOf(lat), requiredOf(lng), {
      accuracy: numberOf(said.horizontal_accuracy),
      altitude: numberOf(said.altitude),
      speed: numberOf(said.speed),
      heading: numberOf(said.course),
      battery: numberOf(said.battery_level),
      attributes: {
        activity: Array.isArray(said.motion) ? said.motion.filter(textOf).join(',') : undefined,
        charging: state === undefined || state === 'unknown' ? boolOf(undefined) : state !== 'unplugged',
        network: textOf(said.wifi),
        event: textOf(said.action) ?? textOf(said.type),
      },
    }),
  ]
}
