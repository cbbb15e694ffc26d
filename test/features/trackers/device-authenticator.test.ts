import { test } from 'tap'
import { Failure } from '../../../src/kernel/errors.ts'
import { DeviceAuthenticator } from '../../../src/features/trackers/device-authenticator.ts'
import { makeDeviceKey } from '../../../src/features/trackers/device-key.ts'
import { DEVICE_KEYS, type DeviceKeyRow } from '../../../src/features/trackers/views.ts'
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
      authenticator.note(id, meanwhile)
      return (table === DEVICE_KEYS.name ? rowOf(keyHash) : undefined) as never
    }
    const authenticator = new DeviceAuthenticator({ get }, keyring)
    await t.rejects(authenticator.authenticate(key), new Failure('unauthenticated'), 'while it is read')
    await t.rejects(authenticator.authenticate(key), new Failure('unauthenticated'), 'afterwards')
  }
})
