import { crc16Ibm, crc16X25 } from '../../src/devices/crc.ts'

/** What devices of the tests and benches say: a place, and a time in ms since the epoch. */
export interface FramePoint {
  recordedAt: number
  lat: number
  lng: number
}

const withLength = (imei: string): Buffer => Buffer.concat([Buffer.from([0, imei.length]), Buffer.from(imei)])

export const teltonikaLogin = withLength

/** Records of codec 8 without elements, from the codec to the second count. */
export const teltonikaRecords = (places: readonly FramePoint[]): Buffer => {
  const records = places.map(({ recordedAt, lat, lng }) => {
    const record = Buffer.alloc(30)
    record.writeBigUInt64BE(BigInt(recordedAt))
    record.writeInt32BE(Math.round(lng * 1e7), 9)
    record.writeInt32BE(Math.round(lat * 1e7), 13)
    record[21] = 7
    return record
  })
  return Buffer.concat([Buffer.from([8, places.length]), ...records, Buffer.from([places.length])])
}

export const teltonikaFrame = (data: Buffer): Buffer => {
  const head = Buffer.alloc(8)
  head.writeUInt32BE(data.length, 4)
  const crc = Buffer.alloc(4)
  crc.writeUInt32BE(crc16Ibm(data))
  return Buffer.concat([head, data, crc])
}

export const teltonikaDatagram = (imei: string, packet: number, places: readonly FramePoint[]): Buffer => {
  const body = Buffer.concat([Buffer.from([0, packet, 1, packet]), withLength(imei), teltonikaRecords(places)])
  return Buffer.concat([Buffer.from([body.length >> 8, body.length & 0xff]), body])
}

const gt06Framed = (checked: Buffer): Buffer => {
  const crc = crc16X25(checked)
  return Buffer.concat([Buffer.from('xx'), checked, Buffer.from([crc >> 8, crc & 0xff, 13, 10])])
}

export const gt06Login = (imei: string, serial: number): Buffer =>
  gt06Framed(Buffer.concat([Buffer.from([0x0d, 1]), Buffer.from(`0${imei}`, 'hex'), Buffer.from([0, serial])]))

const GT06_UNITS = 1_800_000

/** Type 12: time, place, flags (a fix; north; west), and a cell. */
export const gt06Position = ({ recordedAt, lat, lng }: FramePoint, serial: number): Buffer => {
  const message = Buffer.alloc(32)
  message.set([0x1f, 0x12])
  const [date, time] = new Date(recordedAt).toISOString().split('T')
  message.set([...date.slice(2).split('-'), ...time.slice(0, 8).split(':')].map(Number), 2)
  message[8] = 0xc7
  message.writeUInt32BE(Math.round(Math.abs(lat) * GT06_UNITS), 9)
  message.writeUInt32BE(Math.round(Math.abs(lng) * GT06_UNITS), 13)
  message.writeUInt16BE(0x1000 | (lat < 0 ? 0 : 0x400) | (lng < 0 ? 0x800 : 0), 18)
  message.writeUInt16BE(serial, 30)
  return gt06Framed(message)
}

/** `V1` with a fix. */
export const h02Sentence = (id: string, { recordedAt, lat, lng }: FramePoint): string => {
  const [date, time] = new Date(recordedAt).toISOString().split('T')
  const day = date.slice(2).split('-').reverse().join('')
  const clock = time.slice(0, 8).replaceAll(':', '')
  const place = `${minutesOf(lat, 2)},${lat < 0 ? 'S' : 'N'},${minutesOf(lng, 3)},${lng < 0 ? 'W' : 'E'}`
  return `*HQ,${id},V1,${clock},A,${place},000.00,000,${day},FFFFFBFF#`
}

const MINUTE_PARTS = 10_000

const minutesOf = (degrees: number, digits: number): string => {
  const parts = Math.round(Math.abs(degrees) * 60 * MINUTE_PARTS)
  const whole = Math.floor(parts / 60 / MINUTE_PARTS)
  const minutes = (parts - whole * 60 * MINUTE_PARTS) / MINUTE_PARTS
  return `${String(whole).padStart(digits, '0')}${minutes.toFixed(4).padStart(7, '0')}`
}

const stampOf = (recordedAt: number): string => new Date(recordedAt).toISOString().replace(/\D/g, '').slice(0, 14)

/** A fixed report; `count` is what its acknowledgement names. */
export const queclinkReport = (imei: string, { recordedAt, lat, lng }: FramePoint, count: string): string =>
  `+RESP:GTFRI,1A0800,${imei},,0,0,1,1,0.0,0,100.0,${lng.toFixed(6)},${lat.toFixed(6)},${stampOf(recordedAt)},0460,0000,18D8,6141,00,80,${stampOf(recordedAt)},${count}$`

/** `BP05` with a fix. */
export const tk103Login = (id: string, { recordedAt, lat, lng }: FramePoint): string => {
  const stamp = stampOf(recordedAt)
  const place = `${minutesOf(lat, 2)}${lat < 0 ? 'S' : 'N'}${minutesOf(lng, 3)}${lng < 0 ? 'W' : 'E'}`
  return `(${id}BP05000${id}${stamp.slice(2, 8)}A${place}000.0${stamp.slice(8)}000.0000000000L00000000)`
}

const kept = (degrees: number): number => Math.round(degrees * 1e7) / 1e7

/** A place as a GT06 can say it, kept to 1e-7 degree. */
export const asGt06 = (degrees: number): number => kept(Math.round(degrees * GT06_UNITS) / GT06_UNITS)
/** A place as a Queclink can say it. */
export const asQueclink = (degrees: number): number => Number(degrees.toFixed(6))
/** A place as H02 and TK103 can say it, kept to 1e-7 degree. */
export const asMinutes = (degrees: number): number =>
  kept((Math.sign(degrees) * Math.round(Math.abs(degrees) * 60 * MINUTE_PARTS)) / (60 * MINUTE_PARTS))
