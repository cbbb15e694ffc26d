import { createServer, type Socket } from 'node:net'
import { test } from 'tap'
import type { DevicePoints } from '../../src/features/devices/device-points.ts'
import { MqttBridge } from '../../src/features/devices/mqtt-bridge.ts'
import { UnknownDevices } from '../../src/features/devices/unknown-devices.ts'
import type { IngestKeyCaller } from '../../src/kernel/caller.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { until } from '../support/service.ts'

const CALLER: IngestKeyCaller = { kind: 'ingestKey', organizationId: 'o', keyId: 'k', autoCreate: false }
const CONNACK = Buffer.from([0x20, 2, 0, 0])

test('a broker that takes a connection and answers no subscription is named, and asked anew', async (t) => {
  const sockets: Socket[] = []
  const broker = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => undefined)
    socket.on('data', ([first]) => first >> 4 === 1 && socket.write(CONNACK))
  })
  await new Promise<void>((done) => broker.listen(0, '127.0.0.1', done))
  const { port } = broker.address() as { port: number }
  const clock = new FakeClock()
  const log = (): void => undefined
  const logger = { debug: log, info: log, warn: log, error: log }
  const bridge = new MqttBridge({
    url: `mqtt://127.0.0.1:${port}`,
    clientId: 'waymark-of-a-test',
    points: {} as DevicePoints,
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
  await until('the question', () => bridge.state().isConnected && clock.isAwaited(10_000))
  t.equal(bridge.state().problem, undefined)
  clock.advance(10_000)
  await until('a second connection', () => sockets.length === 2)
  t.match(bridge.state().problem, /^it does not answer the subscription to /)
  t.ok(sockets[0].closed || sockets[0].readableEnded)
})
