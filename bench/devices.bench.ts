import { connect, type Socket } from 'node:net'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Agent, request } from 'undici'
import { teltonika } from '../src/devices/teltonika/stream.ts'
import { teltonikaFrame, teltonikaLogin, teltonikaRecords } from '../test/support/device-frames.ts'
import { freeDatagramPort } from '../test/support/free-port.ts'
import { ask, signUp, startService, type Service } from '../test/support/service.ts'
import { option } from './load/fresh-service.ts'
import { cpuSecondsOf, memoryOf } from './load/process-figures.ts'
import { cpuMs } from './support/measure.ts'

/** Devices: Teltonika records decoded a CPU second, cost of connections, single points by an app's route or bulk. */
const CONNECTIONS = option('connections', 10_000)
const SECONDS = option('seconds', 30)
const EACH_MS = 10_000
const LOGINS_AT_ONCE = 200
const SENDERS = 16
const ROUNDS = 4
const ROUND_MS = 3_000

const pause = (ms: number): Promise<void> => new Promise((resume) => setTimeout(resume, ms))
const place = (recordedAt: number, i = 0) => ({ recordedAt, lat: 52 + i / 1e6, lng: 21 })

/** Elements as an FMB sends them: ids of 1, 2 and 4 bytes. */
const ELEMENTS = [[239, 240, 21, 200, 69, 1, 179, 113], [181, 182, 66, 24, 67], [241, 199, 16], []]
const FRAME_RECORDS = 20

/** The records of codec 8 without elements, with these put in. */
const withElements = (plain: Buffer): Buffer => {
  const block = Buffer.concat([
    Buffer.from([240, ELEMENTS.flat().length]),
    ...ELEMENTS.map((ids, i) =>
      Buffer.from([ids.length, ...ids.flatMap((id) => [id, ...Array.from({ length: 2 ** i }, () => 1)])]),
    ),
  ])
  const records = Array.from({ length: FRAME_RECORDS }, (_, i) => [plain.subarray(2 + i * 30, 26 + i * 30), block])
  return Buffer.concat([plain.subarray(0, 2), ...records.flat(), plain.subarray(-1)])
}

const decode = (): void => {
  const plain = teltonikaRecords(Array.from({ length: FRAME_RECORDS }, (_, i) => place(1_777_887_000_000 + i * 1000)))
  const perSecond = (frame: Buffer): number => {
    const stream = teltonika.open()
    const begun = process.cpuUsage()
    let records = 0
    while (cpuMs(begun) < 1_000)
      for (let i = 0; i < 50; i++)
        for (const said of stream.push(frame, 0)) if (said.kind === 'points') records += said.points.length
    return Math.round((records / cpuMs(begun)) * 1000)
  }
  for (const [name, records] of [
    ['without elements', plain],
    ['with 16 elements', withElements(plain)],
  ] as const) {
    const frame = teltonikaFrame(records)
    perSecond(frame)
    console.log(`Teltonika records decoded, ${name}: ${perSecond(frame)} in a CPU second`)
  }
}

const imeiOf = (i: number): string => `3563070${String(i).padStart(8, '0')}`

/** A device that has logged in. */
const loggedIn = (port: number, i: number): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(teltonikaLogin(imeiOf(i))))
    socket.once('error', reject)
    socket.once('data', (heard) => (heard[0] === 1 ? resolve(socket) : reject(new Error('refused'))))
  })

const connections = async (service: Service, port: number): Promise<void> => {
  const pid = service.process.pid as number
  // Their trackers exist before, so that the memory is that of the connections.
  const devices: Socket[] = []
  const connectAll = async (): Promise<void> => {
    for (let from = 0; from < CONNECTIONS; from += LOGINS_AT_ONCE)
      devices.push(
        ...(await Promise.all(
          Array.from({ length: Math.min(LOGINS_AT_ONCE, CONNECTIONS - from) }, (_, i) => loggedIn(port, from + i)),
        )),
      )
  }
  await connectAll()
  for (const socket of devices.splice(0)) socket.destroy()
  await pause(5_000)
  const before = memoryOf(pid).anonMb
  await connectAll()
  await pause(5_000)
  console.log(`${CONNECTIONS} idle connections: ${memoryOf(pid).anonMb - before} MB more than without`)
  const begun = cpuSecondsOf(pid).get('main') ?? 0
  let acknowledged = 0
  for (const socket of devices) socket.on('data', (heard) => (acknowledged += heard.readUInt32BE()))
  let sent = 0
  const end = performance.now() + SECONDS * 1000
  const stepMs = EACH_MS / (CONNECTIONS / 100)
  for (let at = 0; performance.now() < end; at = (at + 100) % CONNECTIONS) {
    for (const socket of devices.slice(at, at + 100))
      socket.write(teltonikaFrame(teltonikaRecords([place(Date.now())])))
    sent += Math.min(100, CONNECTIONS - at)
    await pause(stepMs)
  }
  await pause(2_000)
  const cpu = ((cpuSecondsOf(pid).get('main') ?? 0) - begun) / SECONDS
  console.log(
    `a record of each every ${EACH_MS / 1000} s: ${sent} sent, ${acknowledged} acknowledged, main thread ${Math.round(cpu * 100)} %`,
  )
  for (const socket of devices) socket.destroy()
}

/** Single points over two routes in turn. */
const singles = async (service: Service, key: string): Promise<void> => {
  const pid = service.process.pid as number
  const agent = new Agent({ connections: SENDERS })
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  let time = Math.floor(Date.now() / 1000 - 86_400) * 1000
  const next = (): number => (time += 1000)
  const bulk = (): [string, object] => [
    '/api/v3/location-history/bulk',
    { points: [{ recordedAt: next(), lat: 52.1, lng: 21.1 }] },
  ]
  const app = (): [string, object] => ['/in/owntracks', { _type: 'location', lat: 52.1, lon: 21.1, tst: next() / 1000 }]
  const round = async (make: () => [string, object]): Promise<{ perSecond: number; cpuUs: number }> => {
    const cpu = cpuSecondsOf(pid).get('main') ?? 0
    const begun = performance.now()
    let count = 0
    const sender = async (): Promise<void> => {
      while (performance.now() - begun < ROUND_MS) {
        const [path, body] = make()
        const answer = await request(service.url + path, {
          method: 'POST',
          headers,
          body: JSON.stringify(body),
          dispatcher: agent,
        })
        await answer.body.dump()
        if (answer.statusCode !== 200) throw new Error(`${path}: ${answer.statusCode}`)
        count++
      }
    }
    await Promise.all(Array.from({ length: SENDERS }, sender))
    const cpuUs = (((cpuSecondsOf(pid).get('main') ?? 0) - cpu) * 1e6) / count
    return { perSecond: count / ((performance.now() - begun) / 1000), cpuUs }
  }
  await round(bulk)
  await round(app)
  const ratios: number[] = []
  for (let i = 0; i < ROUNDS; i++) {
    const [one, other] = [await round(bulk), await round(app)]
    ratios.push(one.cpuUs / other.cpuUs)
    console.log(
      `single points: bulk ${Math.round(one.perSecond)}/s (${Math.round(one.cpuUs)} µs), OwnTracks ${Math.round(other.perSecond)}/s (${Math.round(other.cpuUs)} µs)`,
    )
  }
  console.log(
    `OwnTracks against bulk, points in the same CPU time: ${ratios.map((ratio) => ratio.toFixed(2)).join(', ')}`,
  )
  await agent.close()
}

decode()
const data = mkdtempSync(join(tmpdir(), 'waymark-devices-'))
let service = await startService(data)
try {
  const { token } = await signUp(service, 'Devices')
  const { key } = (await ask(service, 'POST', '/ingest-key', { token, body: { name: 'All', autoCreate: true } })).data
  const { deviceKey } = (await ask(service, 'POST', '/tracker', { token, body: { name: 'Phone' } })).data
  await service.stop()
  const port = await freeDatagramPort()
  service = await startService(data, [
    '--devices',
    `teltonika:${port}`,
    '--devices-key',
    key,
    '--rate-limit-token',
    '1000000',
  ])
  await singles(service, deviceKey)
  await connections(service, port)
} finally {
  await service.kill()
  rmSync(data, { recursive: true, force: true })
}
process.exit()
