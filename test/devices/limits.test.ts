import { once } from 'node:events'
import { BlockList, connect, type Socket } from 'node:net'
import { test, type Test } from 'tap'
import { DeviceListeners } from '../../src/features/devices/device-listeners.ts'
import { type ListenerLimits, LISTENER_LIMITS } from '../../src/features/devices/tcp-listener.ts'
import { UnknownDevices } from '../../src/features/devices/unknown-devices.ts'
import type { DevicePoints } from '../../src/features/devices/device-points.ts'
import type { IngestKeyCaller } from '../../src/kernel/caller.ts'
import { Failure } from '../../src/kernel/errors.ts'
import { teltonikaFrame, teltonikaLogin, teltonikaRecords } from '../support/device-frames.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { until } from '../support/service.ts'

const IMEI = '356307042441013'
const CALLER: IngestKeyCaller = { kind: 'ingestKey', organizationId: 'o', keyId: 'k', autoCreate: false }

const open = async (t: Test, limits: Partial<ListenerLimits>, allowed?: BlockList) => {
  const clock = new FakeClock()
  const logged: { msg: string; [member: string]: unknown }[] = []
  const log = (msg: string, members?: object): void => void logged.push({ msg, ...members })
  const logger = { debug: log, info: log, warn: log, error: log }
  const unknown = new UnknownDevices({ clock, logger })
  const state = { admits: undefined as string | undefined, failure: undefined as Failure | undefined, taken: 0 }
  const take = async (): Promise<void> => {
    if (state.failure !== undefined) throw state.failure
    state.taken++
  }
  const listeners = await DeviceListeners.open([{ protocol: 'teltonika', port: 0 }], {
    ...{ host: '127.0.0.1', allowed, limits, clock, logger, unknown },
    points: { take } as unknown as DevicePoints,
    key: { caller: async () => CALLER, problem: undefined },
    admits: async () => state.admits,
  })
  t.teardown(() => listeners.close())
  const [{ port }] = listeners.state()
  const device = async () => {
    const socket = connect(port, '127.0.0.1')
    t.teardown(() => void socket.destroy())
    socket.on('error', () => undefined)
    await once(socket, 'connect')
    return socket
  }
  const connections = () => listeners.state()[0].connections
  return { clock, logged, listeners, device, connections, state }
}

const closed = (socket: Socket): Promise<void> => until('the end', () => socket.closed)

test('a listener takes so many connections, of one address so many, and room that is left is taken again', async (t) => {
  for (const limits of [{ connectionsMax: 2 }, { connectionsPerAddressMax: 2 }]) {
    const { device, connections } = await open(t, limits)
    const first = await device()
    await device()
    await until('both', () => connections() === 2)
    const third = await device()
    third.resume()
    await closed(third)
    t.equal(connections(), 2)
    first.destroy()
    await until('room', () => connections() === 1)
    await device()
    await until('the next', () => connections() === 2)
  }
})

test('a connection that does not say who it is in time is closed, one that did stays', async (t) => {
  const { clock, device, connections } = await open(t, {})
  const silent = await device()
  const known = await device()
  await until('both', () => connections() === 2)
  known.write(teltonikaLogin(IMEI))
  t.equal(((await once(known, 'data')) as [Buffer])[0].toString('hex'), '01')
  silent.write(Buffer.from([0xff])) // a ping says nothing of who it is
  clock.advance(LISTENER_LIMITS.loginMs)
  silent.resume()
  await closed(silent)
  await until('one', () => connections() === 1)
  t.notOk(known.closed)
})

test('addresses that are not allowed are not served', async (t) => {
  const allowed = new BlockList()
  allowed.addSubnet('10.0.0.0', 8, 'ipv4')
  const refused = await open(t, {}, allowed)
  const stranger = await refused.device()
  stranger.resume()
  await closed(stranger)
  t.equal(refused.connections(), 0)
  allowed.addSubnet('127.0.0.0', 8, 'ipv4')
  const { device, connections } = await open(t, {}, allowed)
  await device()
  await until('it is served', () => connections() === 1)
})

test('bytes without an end close the connection', async (t) => {
  const { device, connections } = await open(t, {})
  const hostile = await device()
  hostile.resume()
  hostile.write(Buffer.from('00000000ffffffff', 'hex')) // a frame of 4 GB
  await closed(hostile)
  await until('nobody', () => connections() === 0)
})

test('an unknown device is told of once a minute, with what to do, and listed', async (t) => {
  const { clock, logged, device, listeners, state } = await open(t, { refusedMs: 0 })
  state.admits = 'unknown_tracker'
  const tries = async (): Promise<void> => {
    const socket = await device()
    socket.write(teltonikaLogin(IMEI))
    const [answer] = (await once(socket, 'data')) as [Buffer]
    t.equal(answer.toString('hex'), '00')
    clock.advance(0)
    await closed(socket.resume())
  }
  const told = () => logged.filter(({ msg }) => msg === 'a device is not known')
  await tries()
  await tries()
  t.match(told(), [{ protocol: 'teltonika', name: IMEI, code: 'unknown_tracker', advice: /externalId.*autoCreate/ }])
  t.equal(told().length, 1)
  clock.advance(60_000)
  await tries()
  t.equal(told().length, 2)
  t.same(listeners.state()[0].unknown, [`teltonika ${IMEI}`])
  clock.advance(3_600_001)
  t.same(listeners.state()[0].unknown, [])
})

test('while nothing can be stored a device hears nothing and is let go after a pause', async (t) => {
  const { clock, device, state } = await open(t, {})
  const places = [{ recordedAt: 1_000, lat: 52, lng: 21 }]
  const bus = await device()
  bus.write(teltonikaLogin(IMEI))
  await once(bus, 'data')
  const heard: Buffer[] = []
  bus.on('data', (bytes) => heard.push(bytes))
  for (const code of ['overloaded', 'engine_down', 'rate_limited'] as const) {
    state.failure = new Failure(code)
    const other = await device()
    other.write(Buffer.concat([teltonikaLogin(IMEI), teltonikaFrame(teltonikaRecords(places))]))
    const answers: Buffer[] = []
    other.on('data', (bytes) => answers.push(bytes))
    await until('the pause', () => clock.isAwaited(LISTENER_LIMITS.refusedMs))
    clock.advance(LISTENER_LIMITS.refusedMs)
    await closed(other)
    t.equal(Buffer.concat(answers).toString('hex'), '01', `${code}: no count comes back`)
  }
  state.failure = undefined
  bus.write(teltonikaFrame(teltonikaRecords(places)))
  await until('the count', () => heard.length > 0)
  t.equal(heard[0].toString('hex'), '00000001')
  t.equal(state.taken, 1)
})

test('frames that come together wait for one append, and each gets its answer', async (t) => {
  const { device, state } = await open(t, {})
  const frames = Array.from({ length: 50 }, (_, i) =>
    teltonikaFrame(teltonikaRecords([{ recordedAt: 1_000 + i, lat: 52, lng: 21 }])),
  )
  const bus = await device()
  let heard = ''
  bus.on('data', (bytes) => {
    heard += bytes.toString('hex')
  })
  bus.write(Buffer.concat([teltonikaLogin(IMEI), ...frames]))
  const answers = `01${'00000001'.repeat(50)}`
  await until('every answer', () => heard.length >= answers.length)
  t.equal(heard, answers)
  t.ok(state.taken < 10, `stored in ${state.taken} steps: the network may cut what was sent`)
})
