import { type AttributeName, ATTRIBUTES } from './attributes.ts'

export type AttributeValue = string | number | boolean
/** Names of the table, and those numbered by a protocol or chosen by a person: they are kept unchanged. */
export type Attributes = { [name in AttributeName]?: AttributeValue } & { [name: string]: AttributeValue | undefined }

/** A point as sent by a device, in the units of the contract. The store refuses one without required members. */
export interface DevicePoint {
  /** ms since the epoch. */
  recordedAt: number
  lat: number
  lng: number
  accuracy?: number
  altitude?: number
  /** m/s */
  speed?: number
  heading?: number
  /** 0..1 */
  battery?: number
  attributes?: { [name: string]: AttributeValue }
}

/** Content of one message of a client. */
export interface Heard {
  points: DevicePoint[]
  /** The client's own name for itself, where it sends one. */
  name?: string
}

export const NOTHING: Heard = { points: [] }

/** Content by sender: what one of them said stays together, in its order. */
export const bySender = (heard: readonly Heard[]): Heard[] => {
  const found = new Map<string | undefined, Heard>()
  for (const { name, points } of heard) {
    const before = found.get(name)
    if (before === undefined) found.set(name, { points: [...points], name })
    else before.points.push(...points)
  }
  return [...found.values()]
}

const KNOT = 1852 / 3600
export const ofKnots = (knots: number | undefined): number | undefined => scaled(knots, KNOT)
export const ofKmh = (kmh: number | undefined): number | undefined => scaled(kmh, 1 / 3.6)
export const ofPercent = (percent: number | undefined): number | undefined => scaled(percent, 0.01)

const scaled = (value: number | undefined, factor: number): number | undefined =>
  value === undefined ? undefined : value * factor

/** Values beside the position; out of range they mean that the device does not know. */
export interface Measured {
  accuracy?: number
  altitude?: number
  speed?: number
  heading?: number
  battery?: number
  attributes?: Attributes
}

/** A point with the plausible ones of the values: a strange speed must not lose the position. */
export const devicePoint = (recordedAt: number, lat: number, lng: number, measured: Measured = {}): DevicePoint => {
  const point: DevicePoint = { recordedAt, lat, lng }
  const { accuracy, altitude, speed, heading, battery } = measured
  if (isWithin(accuracy, 0, METRES_MAX)) point.accuracy = accuracy
  if (isWithin(altitude, -METRES_MAX, METRES_MAX)) point.altitude = altitude
  if (isWithin(speed, 0, SPEED_MAX)) point.speed = speed
  if (isWithin(heading, 0, 360)) point.heading = heading
  if (isWithin(battery, 0, 1)) point.battery = battery
  const attributes = keptAttributes(measured.attributes)
  if (attributes !== undefined) point.attributes = attributes
  return point
}

const METRES_MAX = 1_000_000
const SPEED_MAX = 100_000
/** The store takes a kilobyte of JSON. */
const ATTRIBUTES_BYTES_MAX = 1024
const TEXT_MAX = 200
/** Most bytes of a number or boolean with quotes, colon and comma. */
const NUMBER_BYTES = 24
/** Colon and comma. */
const SEPARATOR_BYTES = 2

const isWithin = (value: number | undefined, least: number, most: number): value is number =>
  value !== undefined && value >= least && value <= most

/** As many as fit; mostly those given. */
const keptAttributes = (attributes: Attributes | undefined): DevicePoint['attributes'] => {
  if (attributes === undefined) return undefined
  return isKeptWhole(attributes) ? attributes : keptOnes(attributes)
}

/** Whether all are numbers and booleans that fit: copying them would cost as much as reading them. */
const isKeptWhole = (attributes: Attributes): attributes is { [name: string]: AttributeValue } => {
  let bytes = 2
  for (const name in attributes) {
    const value = attributes[name]
    if (typeof value !== 'boolean' && !(typeof value === 'number' && Number.isFinite(value))) return false
    bytes += name.length + NUMBER_BYTES
  }
  return bytes > 2 && bytes <= ATTRIBUTES_BYTES_MAX
}

/** Those of the table first: a device that numbers a hundred values still says who drives, and how far. */
const keptOnes = (attributes: Attributes): DevicePoint['attributes'] => {
  const kept: { [name: string]: AttributeValue } = {}
  let bytes = 2
  for (const isOfTable of [true, false])
    for (const name in attributes) {
      const value = Object.hasOwn(ATTRIBUTES, name) === isOfTable ? keptValue(attributes[name]) : undefined
      if (value === undefined) continue
      const moreBytes = jsonBytes(name) + jsonBytes(value) + SEPARATOR_BYTES
      if (bytes + moreBytes > ATTRIBUTES_BYTES_MAX) continue
      bytes += moreBytes
      kept[name] = value
    }
  return bytes === 2 ? undefined : kept
}

/** ASCII that JSON writes as it is. */
const PLAIN = /^[ !#-[\]-~]*$/

const jsonBytes = (value: AttributeValue): number => {
  if (typeof value !== 'string') return String(value).length
  return PLAIN.test(value) ? value.length + 2 : Buffer.byteLength(JSON.stringify(value))
}

const keptValue = (value: unknown): AttributeValue | undefined => {
  if (typeof value === 'boolean') return value
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined
  if (typeof value !== 'string' || value === '') return undefined
  // Half a pair of surrogates is no text.
  return Buffer.from(value.slice(0, TEXT_MAX)).toString()
}
