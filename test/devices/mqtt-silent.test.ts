import { createServer, type Socket } from 'node:net'
import { test, type Test } from 'tap'
import type { DevicePoints } from '../../src/features/devices/device-points.ts'
import { MqttBridge } from '../../src/features/devices/mqtt-bridge.ts'
import { UNDER_WAY_MAX } from '../../src/features/devices/mqtt-inbox.ts'
import { UnknownDevices } from '../../src/features/devices/unknown-devices.ts'
import type { IngestKeyCaller } from '../../src/kernel/caller.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { until } from '../support/service.ts'

const CALLER: IngestKeyCaller = { kind: 'ingestKey', organizationId: 'o', keyId: 'k', autoCreate: false }
const CONNACK = Buffer.from([0x20, 2, 0, 0])

const open = async (t: Test, hearOther: (data: Buffer, socket: Socket) => void, points: Partial<DevicePoints> = {}) => {
  const sockets: Socket[] = []
  const hear = (packet: Buffer, socket: Socket): void => {
    if (packet[0] >> 4 === 1) socket.write(CONNACK)
    else hearOther(packet, socket)
  }
  const broker = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => undefined)
    socket.on('data', (data) => {
      // Several packets may come at once, each shorter than 128 bytes.
      for (let at = 0; at < data.length; at += 2 + data[at + 1]) hear(data.subarray(at), socket)
    })
  })
  await new Promise<void>((done) => broker.listen(0, '127.0.0.1', done))
  const { port } = broker.address() as { port: number }
  const clock = new FakeClock()
  const log = (): void => undefined
  const logger = { debug: log, info: log, warn: log, error: log }
  const bridge = new MqttBridge({
    url: `mqtt://127.0.0.1:${port}`,
    clientId: 'waymark-of-a-test',
    points: points as DevicePoints,
    key: { caller: async () => CALLER, problem: undefined },
    secret: undefined,
    unknown: new UnknownDevices({ clock, logger }),
    clock,
    logger,
    count: log,
  })
  t.teardown(async () => {
    const closed = bridge.close()
    for (const socket of sockets) socket.destroy()
    broker.close()
    clock.advance(10_000)
    await closed
  })
  return { bridge, clock, sockets }
}

test('a broker that takes a connection and answers no subscription is named, and asked anew', async (t) => {
  const { bridge, clock, sockets } = await open(t, () => undefined)
  await until('the question', () => bridge.state().isConnected && clock.isAwaited(10_000))
  t.equal(bridge.state().problem, undefined)
  clock.advance(10_000)
  await until('a second connection', () => sockets.length === 2)
  t.match(bridge.state().problem, /^it does not answer the subscription to /)
  t.ok(sockets[0].closed || sockets[0].readableEnded)
})

test('a broker whose answer comes behind messages that cannot be stored yet is waited for', async (t) => {
  const body = JSON.stringify({ recordedAt: 0, lat: 52, lng: 21 })
  let subscriptions = 0
  let store = (): void => undefined
  const stored = new Promise<void>((resolve) => {
    store = resolve
  })
  const hear = (data: Buffer, socket: Socket): void => {
    if (data[0] >> 4 !== 8) return
    if (++subscriptions === 1)
      for (let id = 1; id <= UNDER_WAY_MAX; id++) socket.write(publish('waymark/van/points', id, body))
    socket.write(Buffer.from([0x90, 3, data[2], data[3], 1]))
  }
  const { bridge, clock, sockets } = await open(t, hear, { takeOwn: () => stored })
  await until('the messages', () => bridge.state().waiting === UNDER_WAY_MAX && clock.isAwaited(10_000))
  clock.advance(10_000)
  await until('more patience', () => clock.isAwaited(10_000))
  t.match(bridge.state(), { isConnected: true, problem: undefined })
  store()
  await until('all subscriptions', () => subscriptions === 3)
  t.equal(sockets.length, 1, 'on the first connection')
})

/** A message of QoS 1, shorter than 128 bytes. */
const publish = (topic: string, id: number, body: string): Buffer => {
  const rest = Buffer.concat([
    Buffer.from([0, topic.length]),
    Buffer.from(topic),
    Buffer.from([id >> 8, id]),
    Buffer.from(body),
  ])
  return Buffer.concat([Buffer.from([0x32, rest.length]), rest])
}
