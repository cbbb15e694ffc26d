import { type Attributes, devicePoint, type Heard } from './point.ts'
import { boolOf, type Json, numberOf, objectsOf, requiredOf, textOf, timeOf } from './values.ts'

const SENSORS: { readonly [member: string]: string } = {
  temperature: 'temperature1',
  humidity: 'humidity',
  sats: 'satellites',
  satellites: 'satellites',
  hdop: 'hdop',
  odometer: 'odometer',
}

/** The position in a decoded payload: members of its own, or objects as Cayenne LPP makes them (`gps_1`). */
export const pointsIn = (payload: Json, sentAt: unknown, beside: Attributes): Heard['points'] => {
  const place = placeIn(payload)
  if (place === undefined) return []
  const said = { ...payload, ...place }
  const battery = numberOf(said.battery ?? said.batt ?? said.battery_level)
  return [
    devicePoint(timeOf(said.time ?? said.timestamp ?? sentAt), requiredOf(latOf(said)), requiredOf(lngOf(said)), {
      accuracy: numberOf(said.accuracy),
      altitude: numberOf(said.altitude ?? said.alt),
      speed: numberOf(said.speed),
      heading: numberOf(said.heading ?? said.course ?? said.bearing),
      battery: battery === undefined || battery <= 1 ? battery : battery / 100,
      attributes: { ...sensorsIn(payload), ...beside },
    }),
  ]
}

const latOf = (said: Json): unknown => said.latitude ?? said.lat
const lngOf = (said: Json): unknown => said.longitude ?? said.lng ?? said.lon

/** Formatters leave zeros out: one of both is enough. */
const placeIn = (payload: Json): Json | undefined => {
  const nested = Object.entries(payload).filter(([name]) => /^(gps|gnss|location|position)/i.test(name))
  const places = [payload, ...objectsOf(nested.map(([, value]) => value))]
  const place = places.find((one) => latOf(one) !== undefined || lngOf(one) !== undefined)
  return place && { ...place, latitude: latOf(place) ?? 0, longitude: lngOf(place) ?? 0 }
}

const sensorsIn = (payload: Json): Attributes => {
  const attributes: Attributes = { motion: boolOf(payload.motion ?? payload.moving), alarm: alarmOf(payload) }
  for (const [member, value] of Object.entries(payload)) {
    const [, kind, number] = /^([a-z]+?)(?:_(\d+))?$/i.exec(member) ?? []
    const sensor = kind?.toLowerCase() ?? ''
    if (!Object.hasOwn(SENSORS, sensor)) continue
    const name = SENSORS[sensor]
    const own = name === 'temperature1' && number !== undefined ? `temperature${Number(number) + 1}` : name
    attributes[own] ??= numberOf(value)
  }
  return attributes
}

const alarmOf = (payload: Json): string | undefined =>
  boolOf(payload.alarm ?? payload.sos) === true ? 'sos' : textOf(payload.alarm)
