import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test, type Test } from 'tap'
import { teltonika } from '../../src/devices/teltonika/stream.ts'
import type { DevicePoints } from '../../src/features/devices/device-points.ts'
import { LISTENER_LIMITS, TcpListener } from '../../src/features/devices/tcp-listener.ts'
import { UnknownDevices } from '../../src/features/devices/unknown-devices.ts'
import type { IngestKeyCaller } from '../../src/kernel/caller.ts'
import { teltonikaFrame, teltonikaLogin, teltonikaRecords } from '../support/device-frames.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { until } from '../support/service.ts'

const IMEI = '356307042441013'
const CALLER: IngestKeyCaller = { kind: 'ingestKey', organizationId: 'o', keyId: 'k', autoCreate: false }
const QUIET = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
const SAID = Buffer.concat([
  teltonikaLogin(IMEI),
  teltonikaFrame(teltonikaRecords([{ recordedAt: 1_000, lat: 52, lng: 21 }])),
])

/** A listener that asks `gate` before it knows a device. */
const open = async (t: Test, gate: () => Promise<void>) => {
  const clock = new FakeClock()
  const state = { asked: 0, taken: 0 }
  const listener = await TcpListener.open({
    ...{ protocol: 'teltonika', host: '127.0.0.1', port: 0, stream: teltonika, clock, logger: QUIET },
    ...{ limits: LISTENER_LIMITS, allowed: undefined, unknown: new UnknownDevices({ clock, logger: QUIET }) },
    points: { take: async () => void state.taken++ } as unknown as DevicePoints,
    caller: async () => CALLER,
    admits: async () => {
      state.asked++
      await gate()
      return undefined
    },
  })
  t.teardown(() => listener.close())
  const device = async (): Promise<Socket> => {
    const socket = connect({ port: listener.port, host: '127.0.0.1', allowHalfOpen: true })
    t.teardown(() => void socket.destroy())
    socket.on('error', () => undefined)
    await once(socket, 'connect')
    return socket
  }
  return { listener, state, device }
}

test('a device that closes its side behind what it says is answered, then the other side is closed', async (t) => {
  let isOpen = false
  const { listener, state, device } = await open(t, () => until('the gate', () => isOpen))
  const socket = await device()
  let heard = ''
  socket.on('data', (bytes) => {
    heard += bytes.toString('hex')
  })
  socket.end(SAID)
  await until('it to be asked for', () => state.asked === 1)
  isOpen = true
  await once(socket, 'end')
  t.equal(heard, '0100000001')
  t.equal(state.taken, 1)
  await until('nobody', () => listener.connections === 0)
})

test('what was heard of a device that has gone is stored', async (t) => {
  let isOpen = false
  const { listener, state, device } = await open(t, () => until('the gate', () => isOpen))
  const socket = await device()
  socket.write(SAID)
  await until('it to be asked for', () => state.asked === 1)
  socket.resetAndDestroy()
  await until('nobody', () => listener.connections === 0)
  isOpen = true
  await until('its point', () => state.taken === 1)
})
