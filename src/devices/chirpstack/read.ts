import { pointsIn } from '../lora-payload.ts'
import { type Heard, NOTHING, devicePoint } from '../point.ts'
import { numberOf, objectOf, requiredOf, textOf, timeOf } from '../values.ts'

/** An event of ChirpStack v4: uplinks whose payload a codec has decoded, and places that the network computed. */
export const readChirpStack = (body: unknown, event: string | undefined): Heard => {
  const root = objectOf(body) ?? {}
  const name = textOf(objectOf(root.deviceInfo)?.devEui)
  if (event === 'location') return { points: locationOf(objectOf(root.location), root.time), name }
  const payload = objectOf(root.object)
  if (payload === undefined || (event !== undefined && event !== 'up')) return { ...NOTHING, name }
  const [gateway] = Array.isArray(root.rxInfo) ? root.rxInfo : []
  const radio = objectOf(gateway)
  const sentAt = root.time ?? radio?.gwTime ?? radio?.nsTime
  return { points: pointsIn(payload, sentAt, { rssi: numberOf(radio?.rssi) }), name }
}

const locationOf = (location: { [member: string]: unknown } | undefined, time: unknown): Heard['points'] =>
  location === undefined
    ? []
    : [
        devicePoint(timeOf(time), requiredOf(location.latitude ?? 0), requiredOf(location.longitude ?? 0), {
          accuracy: numberOf(location.accuracy),
          altitude: numberOf(location.altitude),
          attributes: { event: 'location' },
        }),
      ]
