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
      authenticator.note('tracker', id, meanwhile)
      return (table === DEVICE_KEYS.name ? rowOf(keyHash) : undefined) as never
    }
    const authenticator = new DeviceAuthenticator({ get }, keyring)
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
  const open = () => new DeviceAuthenticator({ get: async (table) => rows[table] as never }, keyring)
  const tracker = { kind: 'tracker', organizationId, trackerId: id }
  const ingestKey = { kind: 'ingestKey', organizationId: other, keyId: id, autoCreate: false }
  const noted = open()
  noted.note('tracker', id, rows[DEVICE_KEYS.name])
  noted.note('ingestKey', id, rows[GATEWAY_KEYS.name])
  for (const authenticator of [open(), noted])
    for (let times = 0; times < 2; times++) {
      t.same(await authenticator.authenticate(device.key), tracker)
      t.same(await authenticator.authenticate(gateway.key), ingestKey)
    }
  noted.note('ingestKey', id, null)
  await t.rejects(noted.authenticate(gateway.key), new Failure('unauthenticated'))
  t.same(await noted.authenticate(device.key), tracker, 'the end of one is not that of the other')
})
