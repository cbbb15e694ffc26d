import { connect } from 'node:net'
import { request } from 'undici'
import { test } from 'tap'
import { crc16Ibm } from '../../src/devices/crc.ts'
import { freePort } from '../support/free-port.ts'
import { ask, signUp, startService, until, type Json } from '../support/service.ts'
import { folderOf } from '../support/folder-of.ts'

const POINTS = 300
const KILLS = 4
const AGAIN_MS = 20

/** A client's own queue: what it deletes on which answer, and how it comes back. It ends when it has nothing left. */
type Model = (isGivenUp: () => boolean) => Promise<void>

const pause = (): Promise<void> => new Promise((resume) => setTimeout(resume, AGAIN_MS))

/** One message at a time, deleted on any 2xx; everything else is tried again (OwnTracks for Android, Traccar Client). */
const oneByOne =
  (url: string, bodies: object[]): Model =>
  async (isGivenUp) => {
    while (bodies.length > 0 && !isGivenUp()) {
      const status = await post(url, bodies[0]).then(
        ({ statusCode }) => statusCode,
        () => 0,
      )
      if (status >= 200 && status < 300) bodies.shift()
      else await pause()
    }
  }

/** A batch, deleted as a whole on 200 and `{"result":"ok"}` alone (Overland). */
const inBatches =
  (url: string, features: object[]): Model =>
  async (isGivenUp) => {
    while (features.length > 0 && !isGivenUp()) {
      const batch = features.slice(0, 50)
      const text = await post(url, { locations: batch }).then(
        ({ body }) => body.text(),
        () => '',
      )
      if (text === '{"result":"ok"}') features.splice(0, batch.length)
      else await pause()
    }
  }

/** Frames over TCP, deleted when their number of records comes back; else the device connects anew (Teltonika). */
const inFrames =
  (port: number, imei: string, times: number[]): Model =>
  async (isGivenUp) => {
    while (times.length > 0 && !isGivenUp()) {
      await new Promise<void>((closed) => {
        const socket = connect(port, '127.0.0.1')
        let isIn = false
        let sent = 0
        const sendNext = (): void => {
          sent = Math.min(20, times.length)
          if (sent === 0 || isGivenUp()) socket.destroy()
          else socket.write(frameOf(times.slice(0, sent)))
        }
        socket.on('connect', () => socket.write(Buffer.concat([Buffer.from([0, imei.length]), Buffer.from(imei)])))
        socket.on('data', (heard) => {
          if (!isIn && heard[0] !== 1) return void socket.destroy()
          if (isIn && heard.readUInt32BE() === sent) times.splice(0, sent)
          isIn = true
          sendNext()
        })
        socket.on('error', () => undefined)
        socket.on('close', () => closed())
      })
      await pause()
    }
  }

const post = (url: string, body: object) =>
  request(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })

const frameOf = (times: readonly number[]): Buffer => {
  const records = times.map((time) => {
    const record = Buffer.alloc(30)
    record.writeBigUInt64BE(BigInt(time))
    record.writeInt32BE(210_000_000, 9)
    record.writeInt32BE(520_000_000, 13)
    record[21] = 7
    return record
  })
  const data = Buffer.concat([Buffer.from([8, times.length]), ...records, Buffer.from([times.length])])
  const head = Buffer.alloc(8)
  head.writeUInt32BE(data.length, 4)
  const crc = Buffer.alloc(4)
  crc.writeUInt32BE(crc16Ibm(data))
  return Buffer.concat([head, data, crc])
}

test('queues of clients through kills of the service: each ends empty, with every point stored once', {
  timeout: 900_000,
}, async (t) => {
  const folder = folderOf(t)
  const port = await freePort()
  // The same after each kill, for TCP and UDP: `freePort` keeps the UDP port of what it gives.
  const devicePort = 8_000 + (port % 3_000)
  let service = await startService(folder, [], port)
  t.teardown(() => service.kill())
  const { token } = await signUp(service)
  const { key } = (await ask(service, 'POST', '/ingest-key', { token, body: { name: 'All', autoCreate: true } })).data
  await service.stop()
  const flags = ['--devices', `teltonika:${devicePort}`, '--devices-key', key]
  service = await startService(folder, flags, port)

  const start = Math.floor(Date.now() / 1000) * 1000 - POINTS * 1000
  const times = Array.from({ length: POINTS }, (_, i) => start + i * 1000)
  const location = (time: number) => ({
    _type: 'location',
    topic: 'owntracks/jane/phone',
    lat: 52,
    lon: 21,
    tst: time / 1000,
  })
  const feature = (time: number) => ({
    type: 'Feature',
    geometry: { type: 'Point', coordinates: [21, 52] },
    properties: { timestamp: new Date(time).toISOString(), device_id: 'iphone' },
  })
  let isOver = false
  t.teardown(() => {
    isOver = true
  })
  const queues = [
    oneByOne(`${service.url}/in/owntracks/${key}`, times.map(location)),
    inBatches(`${service.url}/in/overland/${key}`, times.map(feature)),
    inFrames(devicePort, '356307042441013', [...times]),
  ].map((queue) => queue(() => isOver))
  for (let kill = 0; kill < KILLS; kill++) {
    await new Promise((resume) => setTimeout(resume, 300)) // the queues are at work: when exactly does not matter
    await service.kill()
    service = await startService(folder, flags, port)
  }
  await Promise.all(queues)
  for (const name of ['owntracks/jane/phone', 'iphone', '356307042441013']) {
    const find = async (): Promise<Json> =>
      (await ask(service, 'GET', `/trackers?externalId=${encodeURIComponent(name)}`, { token })).data[0]
    const points = async (): Promise<Json[]> =>
      (await ask(service, 'GET', `/location-histories?trackerId=${(await find())._id}&limit=1000`, { token })).data
    await until(`all of ${name}`, async () => (await points()).length >= POINTS, 60_000)
    const stored = (await points()).map(({ recordedAt }) => recordedAt)
    t.equal(stored.length, POINTS, `${name}: nothing twice`)
    t.equal(new Set(stored).size, POINTS, `${name}: nothing lost`)
  }
})
