import { devicePoint, type Heard, NOTHING, ofKmh, ofPercent } from '../point.ts'
import { type Json, numberOf, objectOf, requiredOf, textOf, timeOf } from '../values.ts'
import { hardwareIn } from './hardware.ts'
import { openSecretBox } from './secret-box.ts'

export interface OwnTracksOptions {
  /** Key of encrypted messages. */
  secret?: string
  /** Name of the sender where the message has no topic. */
  name?: string
}

/** One message of OwnTracks: a location, a crossing of one of its own regions, or something without a point. */
export const readOwnTracks = (body: unknown, { secret, name }: OwnTracksOptions = {}): Heard => {
  const message = opened(objectOf(body) ?? {}, secret)
  const heard = { ...NOTHING, name: nameOf(message) ?? name ?? textOf(message.tid) }
  if (message._type === 'location') return { ...heard, points: [locationOf(message)] }
  if (message._type === 'transition' && message.lat !== undefined) return { ...heard, points: [transitionOf(message)] }
  return heard
}

/** `owntracks/<user>/<device>`, without the rest. */
export const nameInTopic = (topic: string): string | undefined => /^\/?(owntracks\/[^/]+\/[^/]+)/.exec(topic)?.[1]

const nameOf = ({ topic }: Json): string | undefined => {
  const text = textOf(topic)
  return text === undefined ? undefined : (nameInTopic(text) ?? text)
}

/** A message that cannot be opened is kept as a point that the store refuses, so that it counts. */
const opened = (message: Json, secret: string | undefined): Json => {
  if (message._type !== 'encrypted') return message
  const inside = secret === undefined ? undefined : openSecretBox(textOf(message.data) ?? '', secret)
  return { topic: message.topic, ...(objectOf(inside) ?? { _type: 'location' }) }
}

const CONNECTIONS: { readonly [letter: string]: string } = { w: 'wifi', m: 'mobile', o: 'offline' }

const locationOf = (message: Json) =>
  devicePoint(timeOf(message.tst), requiredOf(message.lat), requiredOf(message.lon), {
    accuracy: numberOf(message.acc),
    altitude: numberOf(message.alt),
    speed: ofKmh(known(numberOf(message.vel))),
    heading: numberOf(message.cog),
    battery: ofPercent(known(numberOf(message.batt))),
    attributes: {
      event: textOf(message.t),
      charging: chargingOf(numberOf(message.bs)),
      connection: CONNECTIONS[String(message.conn)],
      network: textOf(message.SSID),
      region: regionsOf(message.inregions),
      trackerLabel: textOf(message.tid),
      ...hardwareIn(message),
    },
  })

/** The app's own regions are no geofences of this service: an attribute of the place where it saw the crossing. */
const transitionOf = (message: Json) =>
  devicePoint(timeOf(message.tst), requiredOf(message.lat), requiredOf(message.lon), {
    accuracy: numberOf(message.acc),
    attributes: {
      event: textOf(message.event) === 'leave' ? 'regionLeave' : 'regionEnter',
      region: textOf(message.desc),
      trackerLabel: textOf(message.tid),
    },
  })

const known = (value: number | undefined): number | undefined => (value === undefined || value < 0 ? undefined : value)

/** 1 unplugged, 2 charging, 3 full. */
const chargingOf = (state: number | undefined): boolean | undefined =>
  state === undefined || state < 1 ? undefined : state > 1

const regionsOf = (regions: unknown): string | undefined =>
  Array.isArray(regions) ? regions.filter(textOf).join(',') : undefined
