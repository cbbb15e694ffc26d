import { test } from 'tap'
import { crc16X25 } from '../../src/devices/crc.ts'
import { gt06 } from '../../src/devices/gt06/stream.ts'
import type { Said } from '../../src/devices/stream.ts'
import { teltonika } from '../../src/devices/teltonika/stream.ts'
import { gt06Login, teltonikaFrame, teltonikaLogin } from '../support/device-frames.ts'

const NOW = Date.parse('2026-05-04T09:30:00Z')
const IMEI = '356307042441013'

const attributesIn = (said: readonly Said[]) =>
  said.flatMap((one) => (one.kind === 'points' ? one.points : []))[0]?.attributes

/** Attributes of a record of codec 8 with four elements of four bytes, of the ids 72 to 75. */
const temperaturesOf = (...values: number[]) => {
  const record = Buffer.alloc(24)
  record.writeBigUInt64BE(BigInt(NOW))
  record.writeInt32BE(210_000_000, 9)
  record.writeInt32BE(520_000_000, 13)
  record[21] = 7
  const elements = values.map((value, i) => {
    const element = Buffer.from([72 + i, 0, 0, 0, 0])
    element.writeInt32BE(value, 1)
    return element
  })
  const io = Buffer.concat([Buffer.from([0, values.length, 0, 0, values.length]), ...elements, Buffer.from([0])])
  const data = Buffer.concat([Buffer.from([8, 1]), record, io, Buffer.from([1])])
  const said = teltonika.open().push(Buffer.concat([teltonikaLogin(IMEI), teltonikaFrame(data)]), NOW)
  return attributesIn(said)
}

test('Teltonika: a temperature sensor that fails says no temperature', async (t) => {
  t.match(temperaturesOf(-550, 1150, 0, 849), {
    temperature1: -55,
    temperature2: 115,
    temperature3: 0,
    temperature4: 84.9,
  })
  t.same(
    temperaturesOf(850, 2000, 3000, 4000),
    { priority: 0, satellites: 7 },
    'not ready, unread, absent, another one',
  )
  t.same(temperaturesOf(5000, -100), { priority: 0, satellites: 7, temperature2: -10 })
})

const PLACE = '1a0504091e00c9027ac8180c465860001400'
const CELL = '01cc00287d001f71'
const CELL_WIDE = '81cc0000287d001f71'
/** Area and cell of 4G are longer. */
const CELL_4G = '01cc010000287d0000000002ea5e01'
const CELL_4G_WIDE = '81cc00010000287d0000000002ea5e01'

const attributesOf = (type: number, rest: string) => {
  const body = Buffer.from(PLACE + rest, 'hex')
  const checked = Buffer.concat([Buffer.from([body.length + 5, type]), body, Buffer.from([0, 12])])
  const crc = crc16X25(checked)
  const frame = Buffer.concat([Buffer.from('xx'), checked, Buffer.from([crc >> 8, crc & 0xff, 13, 10])])
  return attributesIn(gt06.open().push(Buffer.concat([gt06Login(IMEI, 1), frame]), NOW))
}

/** Type 26: a cell, then state, voltage, signal, alarm and language. */
const alarmOf = (code: number): unknown => {
  const said = Buffer.from([0x40, 4, 4, code, 2]).toString('hex')
  return attributesOf(0x26, `09${CELL}${said}`)?.alarm
}

/** "Alert and language" of Concox's protocol for the JM-VL03, V1.1.2. */
const ALARMS: readonly [code: number, alarm: string | undefined][] = [
  [0x00, undefined],
  [0x01, 'sos'],
  [0x02, 'powerCut'],
  [0x03, 'vibration'],
  [0x04, 'geofenceEnter'],
  [0x05, 'geofenceExit'],
  [0x06, 'overspeed'],
  [0x0c, 'powerOn'],
  [0x0e, 'lowBattery'],
  [0x0f, 'lowBattery'],
  [0x10, undefined],
  [0x11, 'powerOff'],
  [0x13, 'tampering'],
  [0x14, 'door'],
  [0x15, 'powerOff'],
  [0x18, 'removing'],
  [0x19, 'lowBattery'],
  [0x23, 'fall'],
  [0x29, 'hardAcceleration'],
  [0x2a, 'hardCornering'],
  [0x2b, 'hardCornering'],
  [0x2c, 'accident'],
  [0x30, 'hardBraking'],
  [0x32, 'unplugged'],
]

test('GT06: the alarms of the manufacturer, harsh driving and unplugging among them', async (t) => {
  for (const [code, alarm] of ALARMS) t.equal(alarmOf(code), alarm, `alarm ${code.toString(16)}`)
})

test('GT06: what stands behind the cell, which is longer for 4G and for networks of two bytes', async (t) => {
  for (const [type, cell] of [
    [0x22, CELL],
    [0x22, CELL_WIDE],
    [0x2d, CELL],
    [0x37, CELL],
    [0xa0, CELL_4G],
    [0xa0, CELL_4G_WIDE],
  ] as const) {
    const what = `${type.toString(16)} ${cell}`
    t.match(attributesOf(type, `${cell}010000`), { ignition: true }, what)
    t.match(attributesOf(type, `${cell}000100`), { ignition: false }, what)
    t.equal(attributesOf(type, cell)?.ignition, undefined, `${what}: not said`)
  }
  for (const [type, cell] of [
    [0x16, `09${CELL}`],
    [0x26, `0a${CELL_WIDE}`],
    [0x27, `09${CELL}`],
    [0xa4, `10${CELL_4G}`],
    [0xa4, `11${CELL_4G_WIDE}`],
  ] as const) {
    const what = `${type.toString(16)} ${cell}`
    const expected = { ignition: true, charging: true, signal: 3, alarm: 'sos' }
    t.match(attributesOf(type, `${cell}4605030100ff`), expected, what)
    t.match(attributesOf(type, `${cell}2005030000ff`), { ignition: false, charging: false, alarm: 'sos' }, what)
    t.equal(attributesOf(type, cell)?.alarm, undefined, `${what}: not said`)
  }
})
