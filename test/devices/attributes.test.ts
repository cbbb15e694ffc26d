import { test } from 'tap'
import { type Attributes, devicePoint } from '../../src/devices/point.ts'

const BYTES_MAX = 1024

const keptOf = (attributes: Attributes) => devicePoint(0, 52, 21, { attributes }).attributes ?? {}
const bytesOf = (attributes: object): number => Buffer.byteLength(JSON.stringify(attributes))
const numbered = (count: number): Attributes =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`io${i}`, i]))

test('attributes fill the kilobyte that a point may have, and never more', async (t) => {
  const named = {
    ignition: true,
    power: 12.5,
    odometer: 123_456,
    driverId: '0102030405060708',
    vin: 'WVWZZZ1JZXW000001',
  }
  const some = { ...numbered(35), ...named }
  t.same(keptOf(some), some, `${bytesOf(some)} bytes`)
  const many = keptOf({ ...numbered(300), ...named })
  t.match(many, named, 'names of the table come before numbers')
  t.ok(bytesOf(many) <= BYTES_MAX && bytesOf(many) > BYTES_MAX - 16, `${bytesOf(many)} bytes`)
  const long = keptOf({ event: '😀'.repeat(100), region: '"'.repeat(200), network: '燃'.repeat(200), motion: true })
  t.ok(bytesOf(long) <= BYTES_MAX, `${bytesOf(long)} bytes`)
  t.equal(long.motion, true, 'what is too long keeps out no other')
})

test('a name that is too long is left out, in whatever letters it is written', async (t) => {
  t.same(keptOf({ ['燃'.repeat(350)]: 1, alarm: undefined, fuel: 5 }), { fuel: 5 })
  t.same(keptOf({ ['燃'.repeat(300)]: 1, alarm: undefined }), { ['燃'.repeat(300)]: 1 })
  t.equal(devicePoint(0, 52, 21, { attributes: { alarm: undefined } }).attributes, undefined)
})
