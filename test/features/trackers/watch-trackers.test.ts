import { test } from 'tap'
import { access } from '../../../projections/access.ts'
import { directory } from '../../../projections/directory.ts'
import { IDENTITY } from '../../../src/features/identity/events.ts'
import { watchAccess, type UserAccessChange } from '../../../src/features/identity/sessions/watch-access.ts'
import { ingestKey, tracker } from '../../../src/features/trackers/declaration.ts'
import { DeviceAuthenticator } from '../../../src/features/trackers/device-authenticator.ts'
import { makeDeviceKey } from '../../../src/features/trackers/device-key.ts'
import { KnownTrackers } from '../../../src/features/trackers/known-trackers.ts'
import type { TrackerWriter } from '../../../src/features/trackers/tracker-writer.ts'
import { watchTrackers } from '../../../src/features/trackers/watch-trackers.ts'
import { Failure } from '../../../src/kernel/errors.ts'
import { systemClock } from '../../../src/kernel/system-clock.ts'
import { appendFacts } from '../../../src/kit/commands/handle-command.ts'
import { idFrom } from '../../../src/kit/commands/ids.ts'
import { folderOf } from '../../support/folder-of.ts'
import { openServices, startProjections, type TestServices } from '../../support/open-services.ts'
import { until } from '../../support/service.ts'

const organizationId = idFrom('organization')
const AT = new Date(1_800_000_000_000).toISOString()

const append = async ({ log }: TestServices, stream: string, type: string, data: object, version: number) =>
  appendFacts(
    log,
    stream,
    [{ type, data: { organizationId, createdAt: AT, at: AT, ...data } }],
    [idFrom(type, stream)],
    version,
    {},
  )

test('a process that starts while the tables are behind refuses trackers and keys that the log has deleted', async (t) => {
  const services = await openServices(folderOf(t), systemClock)
  t.teardown(() => services.close())
  const { runner } = await startProjections(services, [directory([tracker.rows, ingestKey.rows])])
  const [trackerId, keyId] = [idFrom('tracker'), idFrom('key')]
  const { key, keyHash } = makeDeviceKey(services.keyring, keyId, 'secret')
  await append(services, `tracker-${trackerId}`, 'trackerCreated', { values: { name: 'Van', kind: 'device' } }, 0)
  await append(
    services,
    `ingestKey-${keyId}`,
    'ingestKeyCreated',
    { values: { name: 'K', keyHash, autoCreate: false } },
    0,
  )
  await until('its rows', async () => (await services.tables.get('trackers', organizationId, trackerId)) !== undefined)
  const open = async () => {
    const known = new KnownTrackers({ ...services, writer: {} as TrackerWriter, partitionOf: () => 0 })
    const devices = new DeviceAuthenticator(services.tables, services.keyring)
    const watching = await watchTrackers(services, 'watch', { known, devices })
    t.teardown(() => watching.close())
    await watching.ready()
    const gateway = { kind: 'ingestKey', organizationId, keyId, autoCreate: false } as const
    const resolve = async () => (await known.resolve(gateway, [{ trackerId, externalId: undefined }]))[0]
    return { devices, resolve }
  }
  const before = await open()
  t.match(await before.resolve(), { trackerId })
  t.match(await before.devices.authenticate(key), { keyId })
  await runner.close()
  await append(services, `tracker-${trackerId}`, 'trackerDeleted', { values: {} }, 1)
  await append(services, `ingestKey-${keyId}`, 'ingestKeyDeleted', { values: {} }, 1)
  const after = await open()
  t.equal(await after.resolve(), 'unknown_tracker')
  await t.rejects(after.devices.authenticate(key), new Failure('unauthenticated'))
})

test('a process that starts while the tables are behind checks its sockets for what they lack', async (t) => {
  const services = await openServices(folderOf(t), systemClock)
  t.teardown(() => services.close())
  const [userId, jti] = [idFrom('user'), 'j']
  await append(services, `sessions-${idFrom('identity')}`, IDENTITY.tokenRevoked, { userId, jti }, 0)
  const changes: UserAccessChange[] = []
  const watching = await watchAccess(services, (change) => void changes.push(change))
  t.teardown(() => watching.close())
  const { runner } = await startProjections(services, [access])
  t.teardown(() => runner.close())
  await until('it is told', () => changes.length > 0)
  t.match(changes, [{ organizationId, userId, jti }])
})
