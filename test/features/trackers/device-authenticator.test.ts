import { test } from 'tap'
import { Failure } from '../../../src/kernel/errors.ts'
import { DeviceAuthenticator } from '../../../src/features/trackers/device-authenticator.ts'
import { makeDeviceKey } from '../../../src/features/trackers/device-key.ts'
import { DEVICE_KEYS, GATEWAY_KEYS, type DeviceKeyRow } from '../../../src/features/trackers/views.ts'
import { idFrom } from '../../../src/kit/commands/ids.ts'
import { openKeyring } from '../../../src/kit/keys/keyring-file.ts'

test('a key that the log takes away or changes while its row is read opens nothing', async (t) => {
  const keyring = await openKeyring(`${t.testdir()}/keys.json`)
  const id = idFrom('tracker', 1)
  const rowOf = (keyHash: string): DeviceKeyRow => ({ kind: 'tracker', organizationId: idFrom('o'), keyHash })
  const { key, keyHash } = makeDeviceKey(keyring, id, 'first')
  const next = makeDeviceKey(keyring, id, 'second')
  for (const meanwhile of [null, rowOf(next.keyHash)]) {
    const get = async (table: string): Promise<never> => {
      authenticator.note('tracker', id, meanwhile, 1)
      return (table === DEVICE_KEYS.name ? rowOf(keyHash) : undefined) as never
    }
    const authenticator = new DeviceAuthenticator({ get, checkpoint: async () => undefined }, keyring)
    await t.rejects(authenticator.authenticate(key), new Failure('unauthenticated'), 'while it is read')
    await t.rejects(authenticator.authenticate(key), new Failure('unauthenticated'), 'afterwards')
  }
})

test('a tracker and an ingest key of two organizations that have one id open with their own secrets', async (t) => {
  const keyring = await openKeyring(`${t.testdir()}/keys.json`)
  const id = idFrom('tracker', 1)
  const [organizationId, other] = [idFrom('one'), idFrom('other')]
  const [device, gateway] = [makeDeviceKey(keyring, id, 'device'), makeDeviceKey(keyring, id, 'gateway')]
  const rows: { [table: string]: DeviceKeyRow } = {
    [DEVICE_KEYS.name]: { kind: 'tracker', organizationId, keyHash: device.keyHash },
    [GATEWAY_KEYS.name]: { kind: 'ingestKey', organizationId: other, keyHash: gateway.keyHash },
  }
  const get = async (table: string): Promise<never> => rows[table] as never
  const open = () => new DeviceAuthenticator({ get, checkpoint: async () => undefined }, keyring)
  const tracker = { kind: 'tracker', organizationId, trackerId: id }
  const ingestKey = { kind: 'ingestKey', organizationId: other, keyId: id, autoCreate: false }
  const noted = open()
  noted.note('tracker', id, rows[DEVICE_KEYS.name], 1)
  noted.note('ingestKey', id, rows[GATEWAY_KEYS.name], 2)
  for (const authenticator of [open(), noted])
    for (let times = 0; times < 2; times++) {
      t.same(await authenticator.authenticate(device.key), tracker)
      t.same(await authenticator.authenticate(gateway.key), ingestKey)
    }
  noted.note('ingestKey', id, null, 3)
  await t.rejects(noted.authenticate(gateway.key), new Failure('unauthenticated'))
  t.same(await noted.authenticate(device.key), tracker, 'the end of one is not that of the other')
})

test('a key that another process made opens here before this process hears of it', async (t) => {
  const keyring = await openKeyring(`${t.testdir()}/keys.json`)
  const id = idFrom('tracker', 1)
  const organizationId = idFrom('o')
  const rowOf = (keyHash: string): DeviceKeyRow => ({ kind: 'tracker', organizationId, keyHash })
  const [old, next] = ['old', 'next'].map((secret) => makeDeviceKey(keyring, id, secret))
  for (const heard of [null, rowOf(old.keyHash)]) {
    let stored = 4
    const get = async (table: string): Promise<never> =>
      (table === DEVICE_KEYS.name ? rowOf(next.keyHash) : undefined) as never
    const authenticator = new DeviceAuthenticator({ get, checkpoint: async () => ({ all: stored }) }, keyring)
    authenticator.note('tracker', id, heard, 5)
    await t.rejects(authenticator.authenticate(next.key), new Failure('unauthenticated'), 'the table is behind')
    stored = 5
    t.match(await authenticator.authenticate(next.key), { trackerId: id }, 'the table is ahead')
  }
  let row = rowOf(old.keyHash)
  const get = async (table: string): Promise<never> => (table === DEVICE_KEYS.name ? row : undefined) as never
  const authenticator = new DeviceAuthenticator({ get, checkpoint: async () => undefined }, keyring)
  await authenticator.authenticate(old.key)
  row = rowOf(next.keyHash)
  t.match(await authenticator.authenticate(next.key), { trackerId: id }, 'beside the one that it read')
})
