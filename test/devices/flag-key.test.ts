import { connect } from 'node:net'
import { test } from 'tap'
import { DeviceListeners } from '../../src/features/devices/device-listeners.ts'
import type { DevicePoints } from '../../src/features/devices/device-points.ts'
import { FlagKey } from '../../src/features/devices/flag-key.ts'
import { UnknownDevices } from '../../src/features/devices/unknown-devices.ts'
import type { Caller } from '../../src/kernel/caller.ts'
import { Failure } from '../../src/kernel/errors.ts'
import { teltonikaLogin } from '../support/device-frames.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { until } from '../support/service.ts'

const INGEST: Caller = { kind: 'ingestKey', organizationId: 'o', keyId: 'k', autoCreate: false }
const TRACKER: Caller = { kind: 'tracker', organizationId: 'o', trackerId: 't' }

const open = () => {
  const clock = new FakeClock()
  const warned: { problem?: string; advice?: string }[] = []
  const logger = {
    debug: () => undefined,
    info: () => undefined,
    error: () => undefined,
    warn: (_: string, members?: object) => void warned.push(members ?? {}),
  }
  const state = { answer: INGEST as Caller | Failure }
  const authenticate = async (): Promise<Caller> => {
    if (state.answer instanceof Failure) throw state.answer
    return state.answer
  }
  const key = new FlagKey({ flag: 'devices-key', key: 'secret', authenticate, clock, logger })
  return { clock, warned, logger, state, key }
}

test('a key that has ended is told of once a minute, without the key, until another one is taken', async (t) => {
  const { clock, warned, state, key } = open()
  t.equal(await key.caller(), INGEST)
  t.equal(key.problem, undefined)
  state.answer = new Failure('unauthenticated')
  for (let tries = 0; tries < 3; tries++) await t.rejects(key.caller(), { code: 'unauthenticated' })
  t.match(key.problem, /--devices-key is no key, or one that has ended/)
  t.match(warned, [{ problem: key.problem, advice: /ingest key/ }])
  t.equal(warned.length, 1)
  t.notMatch(JSON.stringify(warned), 'secret')
  clock.advance(60_000)
  state.answer = TRACKER
  await t.rejects(key.caller(), { code: 'unauthenticated' })
  t.match(warned[1], { problem: '--devices-key is the key of a tracker' })
  state.answer = INGEST
  await key.caller()
  t.equal(key.problem, undefined, 'it is served again')
  state.answer = new Failure('engine_down')
  await t.rejects(key.caller(), { code: 'engine_down' })
  t.equal(key.problem, undefined, 'an engine that is down says nothing of the key')
  t.equal(warned.length, 2)
})

test('listeners say why no device is served', async (t) => {
  const { clock, logger, state, key } = open()
  const listeners = await DeviceListeners.open([{ protocol: 'teltonika', port: 0 }], {
    ...{ host: '127.0.0.1', allowed: undefined, clock, logger, key },
    unknown: new UnknownDevices({ clock, logger }),
    points: {} as DevicePoints,
    admits: async () => undefined,
  })
  t.teardown(() => listeners.close())
  t.notOk('problem' in listeners.state()[0])
  state.answer = new Failure('unauthenticated')
  const device = connect(listeners.state()[0].port, '127.0.0.1')
  t.teardown(() => void device.destroy())
  device.write(teltonikaLogin('356307042441013'))
  await until('the problem', () => listeners.state()[0].problem !== undefined)
  t.match(listeners.state(), [{ problem: /--devices-key/ }])
})
