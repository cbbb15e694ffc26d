import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import tap, { test, type Test } from 'tap'
import { crc16Ibm, crc16X25 } from '../../src/devices/crc.ts'
import { ask, signUp, startService, until, type Json, type Service } from '../support/service.ts'
import { queclinkReport, tk103Login } from '../support/device-frames.ts'
import { folderOf } from '../support/folder-of.ts'

const HEARD_LIMIT_MS = 60_000
const IMEI = '356307042441013'

const imeiLogin = (imei: string): Buffer => Buffer.concat([Buffer.from([0, imei.length]), Buffer.from(imei)])

/** Codec 8 records, a second apart. */
const recordsOf = (times: readonly number[]): Buffer => {
  const records = times.map((time, i) => {
    const record = Buffer.alloc(30)
    record.writeBigUInt64BE(BigInt(time))
    record.writeInt32BE(210_000_000 + i * 1000, 9)
    record.writeInt32BE(520_000_000, 13)
    record[21] = 7
    record.writeUInt16BE(36, 22)
    return record
  })
  return Buffer.concat([Buffer.from([8, times.length]), ...records, Buffer.from([times.length])])
}

const frameOf = (data: Buffer): Buffer => {
  const head = Buffer.alloc(8)
  head.writeUInt32BE(data.length, 4)
  const crc = Buffer.alloc(4)
  crc.writeUInt32BE(crc16Ibm(data))
  return Buffer.concat([head, data, crc])
}

/** Bytes that a device hears, in the order in which they come. */
class Device {
  readonly socket: Socket
  private heard = Buffer.alloc(0)
  isClosed = false

  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1')
    this.socket.on('data', (bytes) => {
      this.heard = Buffer.concat([this.heard, bytes])
    })
    this.socket.on('error', () => undefined)
    this.socket.on('close', () => {
      this.isClosed = true
    })
  }

  async hears(bytes: number): Promise<string> {
    await until(`${bytes} bytes or the end`, () => this.heard.length >= bytes || this.isClosed, HEARD_LIMIT_MS)
    const heard = this.heard.subarray(0, bytes).toString('hex')
    this.heard = this.heard.subarray(bytes)
    return heard
  }

  async ends(): Promise<void> {
    await until('the end of the connection', () => this.isClosed)
  }
}

const portOf = (service: Service, protocol: string): number => {
  const lines = service.lines.map((line) => JSON.parse(line) as Json)
  return lines.find(({ msg, protocol: one }) => msg === 'listening for devices' && one === protocol)?.port
}

const folder = folderOf(tap)
const before = await startService(folder)

/** An organization of a test's own, made in the first run, since a start with listeners is given its key. */
const customer = async (autoCreate: boolean) => {
  const { token } = await signUp(before)
  const { key } = (await ask(before, 'POST', '/ingest-key', { token, body: { name: 'Hardware', autoCreate } })).data
  return { token, key }
}

const [makesTrackers, knowsTrackers] = [await customer(true), await customer(false)]
await before.stop()

/** A service whose listeners take the ingest key that the first run made. */
const open = async (t: Test, { token, key }: { token: string; key: string }) => {
  const flags = ['--devices', 'teltonika:0,gt06:0,h02:0,queclink:0,tk103:0', '--devices-key', key]
  const service = await startService(folder, flags)
  t.teardown(() => service.kill())
  const trackerOf = async (externalId: string): Promise<Json> =>
    (await ask(service, 'GET', `/trackers?externalId=${externalId}`, { token })).data[0]
  const pointsOf = async (externalId: string): Promise<Json[]> => {
    const tracker = await trackerOf(externalId)
    if (tracker === undefined) return []
    return (await ask(service, 'GET', `/location-histories?trackerId=${tracker._id}&order=asc`, { token })).data
  }
  return { service, token, pointsOf, trackerOf }
}

test('hardware over TCP and UDP: points are acknowledged once durable, and repeats change nothing', {
  timeout: 300_000,
}, async (t) => {
  const { service, token, pointsOf, trackerOf } = await open(t, makesTrackers)
  const start = Math.floor(Date.now() / 1000) * 1000 - 100_000
  const times = [0, 1, 2].map((i) => start + i * 1000)

  await t.test('Teltonika', async (t) => {
    const device = new Device(portOf(service, 'teltonika'))
    device.socket.write(imeiLogin(IMEI))
    t.equal(await device.hears(1), '01')
    const frame = frameOf(recordsOf(times))
    device.socket.write(Buffer.concat([frame, frame]))
    t.equal(await device.hears(8), '0000000300000003', 'both frames of one write')
    await until('the points', async () => (await pointsOf(IMEI)).length === 3)
    t.match((await pointsOf(IMEI))[0], { lat: 52, lng: 21, speed: 10, attributes: { satellites: 7 } })
    frame[20] ^= 1
    device.socket.write(frame)
    t.equal(await device.hears(4), '00000000', 'a bad checksum: to be sent again')
    device.socket.write(frameOf(recordsOf([1_000])))
    t.equal(await device.hears(4), '00000001', 'too old is taken, and counts')
    t.match((await trackerOf(IMEI)).rejected, { count: 1, lastCode: 'too_old' })
    device.socket.write(imeiLogin('356307042449999'))
    t.equal(await device.hears(1), '01')
    device.socket.write(frameOf(recordsOf([start])))
    t.equal(await device.hears(4), '00000001')
    await until('the points of the other', async () => (await pointsOf('356307042449999')).length === 1)
    t.equal((await pointsOf(IMEI)).length, 3, 'who logs in anew speaks for itself')
    device.socket.destroy()
    const noise = new Device(portOf(service, 'teltonika'))
    noise.socket.write(Buffer.alloc(1024 * 1024, 0x5a))
    await noise.ends()
    const broken = new Device(portOf(service, 'teltonika'))
    const good = [imeiLogin('356307042448888'), frameOf(recordsOf([start]))]
    broken.socket.write(Buffer.concat([...good, Buffer.from('GET / HTTP/1.1')]))
    t.equal(await broken.hears(5), '0100000001', 'what was said before the noise of the same write is taken')
    await broken.ends()
  })

  await t.test('Teltonika over UDP', async (t) => {
    const socket = createSocket('udp4')
    t.teardown(() => socket.close())
    const imei = '352093086403655'
    const body = Buffer.concat([Buffer.from([0xca, 0xfe, 1, 5]), imeiLogin(imei), recordsOf(times)])
    const datagram = Buffer.concat([Buffer.from([body.length >> 8, body.length & 0xff]), body])
    const answered = once(socket, 'message')
    socket.send(datagram, portOf(service, 'teltonika'), '127.0.0.1')
    const [answer] = (await answered) as [Buffer]
    t.equal(answer.toString('hex'), '0005cafe010503')
    await until('the points', async () => (await pointsOf(imei)).length === 3)
  })

  await t.test('GT06', async (t) => {
    const framed = (checked: Buffer): Buffer => {
      const crc = crc16X25(checked)
      return Buffer.concat([Buffer.from('xx'), checked, Buffer.from([crc >> 8, crc & 0xff, 13, 10])])
    }
    const device = new Device(portOf(service, 'gt06'))
    device.socket.write(framed(Buffer.from('0d0101234567890123450001', 'hex')))
    t.equal(await device.hears(10), framed(Buffer.from('05010001', 'hex')).toString('hex'))
    const now = new Date(start)
    const time = [
      now.getUTCFullYear() - 2000,
      now.getUTCMonth() + 1,
      now.getUTCDate(),
      now.getUTCHours(),
      now.getUTCMinutes(),
      now.getUTCSeconds(),
    ]
    const place = Buffer.from('cf027ac7eb0c46584900148f01cc00287d001fb80003', 'hex')
    device.socket.write(framed(Buffer.concat([Buffer.from([0x1f, 0x12, ...time]), place])))
    t.equal(await device.hears(10), framed(Buffer.from('05120003', 'hex')).toString('hex'))
    await until('the point', async () => (await pointsOf('123456789012345')).length === 1)
    t.match((await pointsOf('123456789012345'))[0], { recordedAt: now.toISOString(), heading: 143 })
    device.socket.destroy()
  })

  await t.test('H02', async (t) => {
    const device = new Device(portOf(service, 'h02'))
    const [day, clock] = new Date(start).toISOString().split(/[T.]/)
    const date = day.slice(2).split('-').reverse().join('')
    device.socket.write(
      `*HQ,4970105243,V1,${clock.replaceAll(':', '')},A,2235.1777,N,11357.8913,E,010.00,235,${date},FFFFFBFF#`,
    )
    t.match(Buffer.from(await device.hears(36), 'hex').toString(), /^\*HQ,4970105243,V4,V1,\d{14}#$/)
    await until('the point', async () => (await pointsOf('4970105243')).length === 1)
    t.match((await pointsOf('4970105243'))[0], { speed: 5.14, heading: 235 })
    device.socket.destroy()
  })

  await t.test('Queclink', async (t) => {
    const imei = '868487004353181'
    const device = new Device(portOf(service, 'queclink'))
    const places = times.map((recordedAt) => ({ recordedAt, lat: 52, lng: 21 }))
    device.socket.write(places.map((place, i) => queclinkReport(imei, place, `00F${i}`)).join('\r\n'))
    t.equal(Buffer.from(await device.hears(33), 'hex').toString(), '+SACK:00F0$+SACK:00F1$+SACK:00F2$')
    await until('the points', async () => (await pointsOf(imei)).length === 3)
    t.match((await pointsOf(imei))[0], { altitude: 100, battery: 0.8 })
    device.socket.write(queclinkReport(imei, places[0], '00F3'))
    t.equal(Buffer.from(await device.hears(11), 'hex').toString(), '+SACK:00F3$', 'again')
    t.equal((await pointsOf(imei)).length, 3)
    device.socket.destroy()
  })

  await t.test('TK103', async (t) => {
    const id = '088048003342'
    const device = new Device(portOf(service, 'tk103'))
    device.socket.write(`(${id}BP00HSO)`)
    t.equal(Buffer.from(await device.hears(21), 'hex').toString(), `(${id}AP01HSO)`)
    device.socket.write(tk103Login(id, { recordedAt: start, lat: -33.5, lng: -58.25 }))
    t.equal(Buffer.from(await device.hears(18), 'hex').toString(), `(${id}AP05)`)
    await until('the point', async () => (await pointsOf(id)).length === 1)
    t.match((await pointsOf(id))[0], { lat: -33.5, lng: -58.25, attributes: { charging: true, ignition: false } })
    device.socket.destroy()
  })

  t.equal((await ask(service, 'GET', '/trackers', { token })).total, 8)
})

test('an unknown device is refused, told of once a minute, and taken once somebody has made its tracker', {
  timeout: 300_000,
}, async (t) => {
  const { service, token, pointsOf } = await open(t, knowsTrackers)
  for (let tries = 0; tries < 3; tries++) {
    const device = new Device(portOf(service, 'teltonika'))
    device.socket.write(imeiLogin(IMEI))
    t.equal(await device.hears(1), '00')
    await device.ends()
  }
  const told = () =>
    service.lines.map((line) => JSON.parse(line) as Json).filter(({ msg }) => msg === 'a device is not known')
  await until('it to be told', () => told().length > 0)
  t.match(told(), [{ protocol: 'teltonika', name: IMEI, code: 'unknown_tracker', advice: /externalId/ }])
  t.equal(told().length, 1)
  await ask(service, 'POST', '/tracker', { token, body: { name: 'Truck', externalId: IMEI } })
  const device = new Device(portOf(service, 'teltonika'))
  device.socket.write(imeiLogin(IMEI))
  t.equal(await device.hears(1), '01')
  device.socket.write(frameOf(recordsOf([Date.now() - 1000])))
  t.equal(await device.hears(4), '00000001')
  await until('the point', async () => (await pointsOf(IMEI)).length === 1)
  device.socket.destroy()
})
