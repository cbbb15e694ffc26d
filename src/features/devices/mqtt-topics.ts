import { nameInTopic, readOwnTracks } from '../../devices/owntracks/read.ts'
import type { DevicePoint } from '../../devices/point.ts'
import { jsonOf } from '../../devices/values.ts'
import { readOwnPoints } from '../../devices/waymark/read.ts'

/** Positions and crossings of OwnTracks; the service's own form, in which names may have slashes. */
export const MQTT_FILTERS = ['owntracks/+/+', 'owntracks/+/+/event', 'waymark/#'] as const

/** A message read by its topic: brokers can restrict senders to their own names, so the topic outweighs the payload. */
export type Published =
  | { form: 'owntracks'; name: string; points: DevicePoint[] }
  | { form: 'waymark'; name: string; points: object[] }

const OWN_TOPIC = /^waymark\/(.+)\/points$/

/** Name in a topic, else the topic itself. */
export const senderOf = (topic: string): string => OWN_TOPIC.exec(topic)?.[1] ?? nameInTopic(topic) ?? topic

/** Undefined for a topic without points. `secret` decrypts messages of OwnTracks. */
export const readMessage = (topic: string, payload: Uint8Array, secret: string | undefined): Published | undefined => {
  if (payload.byteLength === 0) return undefined // a retained message was cleared
  const own = OWN_TOPIC.exec(topic)?.[1]
  if (own !== undefined) return { form: 'waymark', name: own, points: readOwnPoints(payload) }
  const name = nameInTopic(topic)
  if (name === undefined) return undefined
  const { points } = readOwnTracks(jsonOf(payload) ?? { _type: 'location' }, { secret })
  return { form: 'owntracks', name, points }
}
