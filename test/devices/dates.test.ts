import { test } from 'tap'
import { crc16X25 } from '../../src/devices/crc.ts'
import { gt06 } from '../../src/devices/gt06/stream.ts'
import { h02 } from '../../src/devices/h02/stream.ts'
import { queclink } from '../../src/devices/queclink/stream.ts'
import type { StreamProtocol } from '../../src/devices/stream.ts'
import { tk103 } from '../../src/devices/tk103/stream.ts'
import { timeOf } from '../../src/devices/values.ts'
import { gt06Login } from '../support/device-frames.ts'

const NOW = Date.parse('2026-05-04T09:30:00Z')
const IMEI = '123456789012345'

const timeIn = (protocol: StreamProtocol, ...messages: (Buffer | string)[]): number | undefined => {
  const said = protocol.open().push(Buffer.concat(messages.map((one) => Buffer.from(one))), NOW)
  return said.flatMap((one) => (one.kind === 'points' ? one.points : []))[0]?.recordedAt
}

/** A day as six digits `yymmdd`, at 04:05:06 UTC. */
const CLOCK = '040506'
const backwards = (day: string): string => day.slice(4) + day.slice(2, 4) + day.slice(0, 2)

const gt06Message = (day: string): Buffer => {
  const time = `${day}${CLOCK}`.match(/../g)?.map(Number) ?? []
  const place = Buffer.from('cf027ac7eb0c46584900148f01cc00287d001fb80003', 'hex')
  const checked = Buffer.concat([Buffer.from([0x1f, 0x12, ...time]), place])
  const crc = crc16X25(checked)
  return Buffer.concat([Buffer.from('xx'), checked, Buffer.from([crc >> 8, crc & 0xff, 13, 10])])
}

const READERS: { [what: string]: (day: string) => number | undefined } = {
  gt06: (day) => timeIn(gt06, gt06Login(IMEI, 1), gt06Message(day)),
  'h02 in text': (day) =>
    timeIn(h02, `*HQ,4970105243,V1,${CLOCK},A,2235.1777,N,11357.8913,E,000.27,235,${backwards(day)},FFFFFBFF#`),
  'h02 in binary': (day) =>
    timeIn(
      h02,
      Buffer.from(
        `244970105243${CLOCK}${backwards(day)}2235177706113578913e000235fffffbff00000000000000`,
        'hex',
      ).subarray(0, 32),
    ),
  queclink: (day) =>
    timeIn(
      queclink,
      `+RESP:GTFRI,1A0800,${IMEI},,0,0,1,1,0.0,0,100.0,21.000000,52.000000,20${day}${CLOCK},0460,0000,18D8,6141,00,80,20260504093000,00F1$`,
    ),
  tk103: (day) =>
    timeIn(tk103, `(088048003342BP05000088048003342${day}A2232.9806N11404.9355E000.1${CLOCK}323.87000000L0)`),
  'a written time': (day) => timeOf(`20${day.replace(/(..)(..)(..)/, '$1-$2-$3')} 04:05:06`),
  'a written time with an offset': (day) => timeOf(`20${day.replace(/(..)(..)(..)/, '$1-$2-$3')}T06:05:06+0200`),
}

for (const [what, read] of Object.entries(READERS))
  test(`${what}: a day that the calendar does not have is refused, and not taken for one of the next month`, async (t) => {
    for (const day of ['260228', '280229', '000229', '260430', '261231', '270101'])
      t.equal(read(day), Date.parse(`20${day.replace(/(..)(..)(..)/, '$1-$2-$3')}T04:05:06Z`), day)
    for (const day of ['260229', '280230', '260431', '261131', '260001', '261301', '260100', '260132'])
      t.ok(Number.isNaN(read(day)), `no day ${day}`)
  })
