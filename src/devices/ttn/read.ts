import { pointsIn } from '../lora-payload.ts'
import { type Attributes, type Heard, NOTHING } from '../point.ts'
import { type Json, numberOf, objectOf, objectsOf, textOf } from '../values.ts'

/** An uplink of The Things Stack whose payload a formatter has decoded. */
export const readTtn = (body: unknown): Heard => {
  const root = objectOf(body) ?? {}
  const ids = objectOf(root.end_device_ids)
  const name = textOf(ids?.dev_eui) ?? textOf(ids?.device_id)
  const uplink = objectOf(root.uplink_message)
  const payload = objectOf(uplink?.decoded_payload)
  if (uplink === undefined || payload === undefined) return { ...NOTHING, name }
  return { points: pointsIn(payload, uplinkTime(root, uplink), radioOf(uplink.rx_metadata)), name }
}

/** Gateways send the time of reception; where none has a clock, the network does. */
const uplinkTime = (root: Json, uplink: Json): unknown => {
  const times = listOf(uplink.rx_metadata).map((gateway) => textOf(gateway.time))
  return times.find((time) => time !== undefined) ?? uplink.received_at ?? root.received_at
}

const radioOf = (gateways: unknown): Attributes => ({ rssi: numberOf(listOf(gateways)[0]?.rssi) })

const listOf = (value: unknown): Json[] => (Array.isArray(value) ? objectsOf(value) : [])
