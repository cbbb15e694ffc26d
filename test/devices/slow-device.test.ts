import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test } from 'tap'
import type { StreamProtocol } from '../../src/devices/stream.ts'
import type { DevicePoints } from '../../src/features/devices/device-points.ts'
import { LISTENER_LIMITS, TcpListener } from '../../src/features/devices/tcp-listener.ts'
import { UnknownDevices } from '../../src/features/devices/unknown-devices.ts'
import type { IngestKeyCaller } from '../../src/kernel/caller.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { until } from '../support/service.ts'

const ANSWER_BYTES = 1024 * 1024
/** More than the network between the two holds. */
const MESSAGES = 24

const QUIET = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

test('a device that reads no answers is not heard until it does: they do not pile up in memory', async (t) => {
  let heard = 0
  let mostWaiting = 0
  const served = (): Socket | undefined => [...(listener as unknown as { sockets: Set<Socket> }).sockets][0]
  const isHeldUp = (): boolean => served()?.writableNeedDrain === true
  /** A large answer to each byte. */
  const stream: StreamProtocol = {
    open: () => ({
      push: (chunk, _now, said = []) => {
        heard += chunk.byteLength
        mostWaiting = Math.max(mostWaiting, served()?.writableLength ?? 0)
        for (let i = 0; i < chunk.byteLength; i++) said.push({ kind: 'answer', answer: Buffer.alloc(ANSWER_BYTES) })
        return said
      },
    }),
  }
  const clock = new FakeClock()
  const listener = await TcpListener.open({
    ...{ protocol: 'test', host: '127.0.0.1', port: 0, stream, clock, logger: QUIET, limits: LISTENER_LIMITS },
    allowed: undefined,
    unknown: new UnknownDevices({ clock, logger: QUIET }),
    points: {} as DevicePoints,
    caller: async (): Promise<IngestKeyCaller> => Promise.reject(new Error('nobody asks')),
    admits: async () => undefined,
  })
  t.teardown(() => listener.close())
  const device = connect(listener.port, '127.0.0.1')
  t.teardown(() => void device.destroy())
  await once(device, 'connect')
  for (let sent = 1; sent <= MESSAGES; sent++) {
    device.write(Buffer.from([sent]))
    await until('it to be heard, or held up', () => heard >= sent || isHeldUp())
  }
  let bytes = 0
  device.on('data', (chunk) => {
    bytes += chunk.byteLength
  })
  await until('all answers', () => bytes >= MESSAGES * ANSWER_BYTES)
  t.equal(heard, MESSAGES)
  t.ok(mostWaiting < ANSWER_BYTES, `${mostWaiting} bytes waited while more was heard`)
})
