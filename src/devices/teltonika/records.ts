import { type Attributes, devicePoint, type DevicePoint } from '../point.ts'
import { NotThisProtocol } from '../stream.ts'
import { addElement, addLong, addVariable, BATTERY_ELEMENT } from './elements.ts'

export const CODEC_8 = 0x08
export const CODEC_8_EXTENDED = 0x8e
export const CODEC_16 = 0x10

const RECORD_HEAD_BYTES = 24
const FIXED_WIDTHS = [1, 2, 4]

/**
 * The records from the codec byte to the second count. A record made without satellites repeats the last known place:
 * it is no point, unless it is 0,0, which is counted as refused. @throws NotThisProtocol, RangeError
 */
export const readRecords = (data: Buffer): { count: number; points: DevicePoint[] } => {
  const codec = data[0]
  const count = data[1]
  const reader: Reader = { data, at: 2, isExtended: codec === CODEC_8_EXTENDED, isWide: codec !== CODEC_8 }
  const points: DevicePoint[] = []
  for (let i = 0; i < count; i++) readRecord(reader, codec, points)
  if (reader.at !== data.length - 1 || data[reader.at] !== count)
    throw new NotThisProtocol('the records do not end where they should')
  return { count, points }
}

interface Reader {
  data: Buffer
  at: number
  /** Counts of two bytes, and elements of any length. */
  isExtended: boolean
  /** Ids of two bytes. */
  isWide: boolean
}

const readRecord = (reader: Reader, codec: number, points: DevicePoint[]): void => {
  const { data, at } = reader
  const recordedAt = data.readUInt32BE(at) * 2 ** 32 + data.readUInt32BE(at + 4)
  const lng = data.readInt32BE(at + 9) / 1e7
  const lat = data.readInt32BE(at + 13) / 1e7
  const satellites = data[at + 21]
  const attributes: Attributes = { priority: data[at + 8], satellites }
  const altitude = data.readInt16BE(at + 17)
  const heading = data.readUInt16BE(at + 19)
  const speed = data.readUInt16BE(at + 22) / 3.6
  reader.at = at + RECORD_HEAD_BYTES
  const event = readId(reader)
  if (event > 0) attributes.event = event
  if (codec === CODEC_16) reader.at++
  readCount(reader)
  const battery = readElements(reader, attributes)
  if (satellites === 0 && (lat !== 0 || lng !== 0)) return
  points.push(devicePoint(recordedAt, lat, lng, { altitude, heading, speed, battery, attributes }))
}

/** Adds every element; answers the charge of the battery. */
const readElements = (reader: Reader, attributes: Attributes): number | undefined => {
  const { data } = reader
  let battery: number | undefined
  for (const width of FIXED_WIDTHS) {
    for (let left = readCount(reader); left > 0; left--) {
      const id = readId(reader)
      const value = data.readUIntBE(reader.at, width)
      reader.at += width
      if (id === BATTERY_ELEMENT) battery = value / 100
      else addElement(attributes, id, value, width)
    }
  }
  for (let left = readCount(reader); left > 0; left--) addLong(attributes, readId(reader), take(reader, 8))
  if (!reader.isExtended) return battery
  for (let left = readCount(reader); left > 0; left--) {
    const id = readId(reader)
    addVariable(attributes, id, take(reader, readCount(reader)))
  }
  return battery
}

const readCount = (reader: Reader): number => readNumber(reader, reader.isExtended)
const readId = (reader: Reader): number => readNumber(reader, reader.isWide)

const readNumber = (reader: Reader, isTwoBytes: boolean): number => {
  const { data, at } = reader
  reader.at += isTwoBytes ? 2 : 1
  return isTwoBytes ? data.readUInt16BE(at) : data.readUInt8(at)
}

const take = (reader: Reader, bytes: number): Buffer => {
  const from = reader.at
  reader.at += bytes
  if (reader.at > reader.data.length) throw new NotThisProtocol('an element is longer than its message')
  return reader.data.subarray(from, reader.at)
}
