import { test } from 'tap'
import { eventDataSchema } from '../../../src/features/automations/event-table.ts'
import { GEOFENCE_CREATED, GEOFENCE_DELETED, geofenceStream } from '../../../src/features/geofences/events.ts'
import { GEOFENCE_DETAILS, GEOFENCES } from '../../../src/features/geofences/views.ts'
import { ACCESS_IDENTITIES, ACCESS_ROLES, ACCESS_USERS, USERS_TABLE } from '../../../src/features/identity/views.ts'
import { LATEST_POSITIONS } from '../../../src/features/locations/views.ts'
import { ACCESS_SERVICES } from '../../../src/features/service-accounts/views.ts'
import { TRACKERS_TABLE } from '../../../src/features/trackers/views.ts'
import { encodeJson } from '../../../src/kernel/event.ts'
import { idSource } from '../../../src/kit/commands/ids.ts'
import { resources } from '../../../src/product-parts.ts'
import { TableDirectory } from '../../../src/reactors/dispatch/directory.ts'
import { openServices } from '../../support/open-services.ts'
import { folderOf } from '../../support/folder-of.ts'

const ORG = 'org'
const AT = '2026-01-01T00:00:00.000Z'

test('what events refer to is read from tables, and what is gone from its stream', async (t) => {
  const services = await openServices(folderOf(t))
  t.teardown(() => services.close())
  const { log, tables, clock } = services
  for (const name of [TRACKERS_TABLE, USERS_TABLE]) await tables.declare({ name, version: 1 })
  const access = [ACCESS_ROLES, ACCESS_USERS, ACCESS_IDENTITIES, ACCESS_SERVICES]
  for (const table of [LATEST_POSITIONS, GEOFENCES, GEOFENCE_DETAILS, ...access]) await tables.declare(table)
  const directory = new TableDirectory({
    ...services,
    ages: { staleAfterMs: 300_000, offlineAfterMs: 3_600_000 },
    inRollout: () => true,
  })
  const put = (table: string, id: string, row: object) => tables.commit([{ table, scope: ORG, id, row: { ...row } }])
  const append = (stream: string, type: string, data: object) =>
    log.append(
      stream,
      [{ id: idSource(clock.now()).next(), type, data: encodeJson(data), isJson: true, metadata: {} }],
      'any',
    )

  await put(TRACKERS_TABLE, 't1', {
    _id: 't1',
    organizationId: ORG,
    name: 'Bus',
    kind: 'device',
    keyHash: 'hash',
    hubIds: ['h1'],
    userId: 'u1',
  })
  const seenAt = clock.now() - 1_000
  await put(LATEST_POSITIONS.name, 't1', { recordedAt: seenAt, loggedAt: seenAt })
  t.same(await directory.tracker(ORG, 't1', 0), {
    shown: {
      _id: 't1',
      organizationId: ORG,
      name: 'Bus',
      kind: 'device',
      userId: 'u1',
      lastSeenAt: new Date(clock.now() - 1_000).toISOString(),
      status: 'online',
    },
    hubIds: ['h1'],
    userId: 'u1',
  })
  const now = new Date(clock.now()).toISOString()
  t.match(
    await directory.tracker(ORG, 't1', clock.now()),
    { shown: { lastSeenAt: now, status: 'online' } },
    'the event itself says that it was seen',
  )
  await append('tracker-t2', 'trackerDeleted', {
    organizationId: ORG,
    values: { name: 'Gone', kind: 'phone', userId: 'u1', hubId: 'h2', keyHash: 'hash' },
    createdAt: AT,
    at: AT,
  })
  await put(USERS_TABLE, 'u1', {
    _id: 'u1',
    organizationId: ORG,
    name: 'Ada',
    hubId: ['h3'],
    identityId: 'secret',
    emailKey: 'k',
  })
  const gone = await directory.tracker(ORG, 't2', 0)
  t.match(gone, { shown: { _id: 't2', name: 'Gone', updatedAt: AT }, hubIds: ['h3'] })
  t.notOk('keyHash' in (gone?.shown ?? {}))
  t.same(
    await directory.tracker('other', 't2', 0),
    { shown: { _id: 't2' }, hubIds: [] },
    'not for another organization',
  )
  t.same(await directory.user(ORG, 'u1'), { _id: 'u1', organizationId: ORG, name: 'Ada', hubId: ['h3'] })
  t.same(await directory.user(ORG, 'erased'), { _id: 'erased' })

  await put(GEOFENCES.name, 'g1', {
    _id: 'g1',
    organizationId: ORG,
    version: 1,
    name: 'Yard',
    geofenceGroupId: 'gg',
    isActive: true,
  })
  await put(GEOFENCE_DETAILS.name, 'g1', { geometry: { type: 'Polygon' }, attributes: { dock: 7 } })
  const geofence = await directory.geofence(ORG, 'g1')
  t.match(geofence, { _id: 'g1', name: 'Yard', attributes: { dock: 7 } })
  const { properties } = eventDataSchema(resources, 'onGeofenceEntry') as {
    properties: { [name: string]: object }
  }
  for (const [name, data] of Object.entries({
    tracker: (await directory.tracker(ORG, 't1', 0))?.shown,
    user: await directory.user(ORG, 'u1'),
    geofence,
  }))
    t.same(
      namesOf(data).filter(
        (member) => !namesOf((properties[name] as { properties: object }).properties).includes(member),
      ),
      [],
      `rules can name all of the ${name}`,
    )
  await append(geofenceStream('g2'), GEOFENCE_CREATED, {
    organizationId: ORG,
    name: 'Old',
    geofenceGroupId: 'gg',
    isActive: true,
    shape: { center: { lat: 1, lng: 2 }, radius: 3 },
    attributes: { dock: 8 },
    at: 1,
  })
  await append(geofenceStream('g2'), GEOFENCE_DELETED, { organizationId: ORG, at: 2 })
  const old = await directory.geofence(ORG, 'g2')
  t.match(old, { _id: 'g2', name: 'Old', attributes: { dock: 8 }, version: 2 })
  t.notOk('shape' in old)

  await put(ACCESS_ROLES.name, 'r1', { permissions: ['view/geofence'], permissionDetails: [] })
  await put(ACCESS_USERS.name, 'u1', {
    identityId: 'i',
    email: 'e',
    status: 'active',
    roleId: 'r1',
    hubIds: ['h3'],
    teamIds: [],
  })
  const editor = await directory.editor(ORG, 'u1')
  t.same([editor?.hubIds, [...(editor?.permissions ?? [])]], [['h3'], ['view/geofence']])
  await put(ACCESS_USERS.name, 'u1', {
    identityId: 'i',
    email: 'e',
    status: 'disabled',
    roleId: 'r1',
    hubIds: ['h3'],
    teamIds: [],
  })
  t.equal(await directory.editor(ORG, 'u1'), undefined)

  await append('user-u9', 'userCreated', { organizationId: ORG, values: { name: 'Eve' }, createdAt: AT, at: AT })
  await t.rejects(directory.editor(ORG, 'u9'), { code: 'engine_down' }, 'a table that is behind hides nobody')
  await append('user-u9', 'userDeleted', { organizationId: ORG, values: { name: 'Eve' }, createdAt: AT, at: AT })
  t.equal(await directory.editor(ORG, 'u9'), undefined)
})

function namesOf(value: object = {}): string[] {
  return Object.keys(value)
}
