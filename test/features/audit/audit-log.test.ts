import { join } from 'node:path'
import { test, type Test } from 'tap'
import { AUDITED } from '../../../src/product-parts.ts'
import { auditBuffer, auditFollower } from '../../../projections/audit-log.ts'
import { Erased } from '../../../projections/erasures.ts'
import { rebuildHistory } from '../../../projections/history-rebuild.ts'
import { openChdbHistoryStore } from '../../../src/engines/chdb/chdb-history.ts'
import { AUDIT as AUDIT_TABLE } from '../../../src/engines/clickhouse-sql/history-tables.ts'
import { openSchema } from '../../../src/engines/clickhouse-sql/history-schema.ts'
import { HistoryRows } from '../../../src/engines/clickhouse-sql/rows.ts'
import { auditRoute } from '../../../src/features/audit/api.ts'
import { type LoggedServices, readLogged } from '../../../src/features/audit/changes.ts'
import { AUDIT, auditEntry, type AuditRow, auditedPrefixes } from '../../../src/features/audit/views.ts'
import { geofence } from '../../../src/features/geofences/declaration.ts'
import { encodeJson, type RecordedEvent } from '../../../src/kernel/event.ts'
import { anyObject, id } from '../../../src/kernel/schema.ts'
import { defineResource } from '../../../src/kit/resource/resource.ts'
import { resources } from '../../../src/product-parts.ts'
import { callerWith } from '../../support/callers.ts'
import { noErasures } from '../../support/history-writers.ts'
import { folderOf } from '../../support/folder-of.ts'
import { openIdentity, PASSWORD, type Session } from '../../support/open-identity.ts'
import { until } from '../../support/service.ts'

const open = async (t: Test) => {
  const folder = folderOf(t)
  const history = await openChdbHistoryStore({ path: join(folder, 'data'), scratchPath: join(folder, 'scratch') })
  t.teardown(() => history.close())
  await openSchema(history, { days: 36_500, runDays: 36_500 })
  let follower: ReturnType<typeof auditFollower> | undefined
  const world = await openIdentity(t, {}, (services) => [
    auditRoute({
      asShown: async (_caller, _declaration, values) => values,
      log: services.log,
      listed: new HistoryRows(history, services.clock),
      resources: resources.all(),
      caughtUp: async () => {
        follower ??= auditFollower({ ...services, history, erasures: noErasures(), epoch: 0, nouns: AUDITED }).start(
          services.tables,
        )
        const head = await services.log.headPosition()
        await until('the audit log', async () => {
          world.clock.advance(250)
          return ((await services.tables.checkpoint(AUDIT))?.all ?? -1) >= head
        })
      },
    }),
  ])
  t.teardown(async () => follower?.close())
  const entries = async (session: Session, query = '') =>
    (await session.call('GET', `/audit-log?limit=500${query}`)).body.data
  return { ...world, history, entries }
}

test('the audit log says who changed what, from where, newest first, without secrets', async (t) => {
  const { signup, login, entries, call } = await open(t)
  const owner = await signup()
  const { _id: ownerId, organizationId } = owner.body.data
  const from = { address: '203.0.113.7' }
  const hub = (await owner.call('POST', '/hub', { name: 'North', lat: 1, lng: 2 }, from)).body.data
  await owner.call('PATCH', `/hub/${hub._id}`, { name: 'North yard' }, from)
  await owner.call('DELETE', `/hub/${hub._id}`, undefined, from)
  const [deleted, changed, created] = await entries(owner, `&resourceId=${hub._id.toUpperCase()}`)
  const actor = { type: 'user', id: ownerId }
  const entry = { actor, noun: 'hub', resourceId: hub._id, ...from }
  t.match(created, { ...entry, action: 'created', changes: { name: { to: 'North' }, lat: { to: 1 }, lng: { to: 2 } } })
  t.strictSame(changed.changes, { name: { from: 'North', to: 'North yard' } })
  t.match(changed, { ...entry, action: 'changed', at: /^2026-.*Z$/, _id: String })
  t.match(deleted, { ...entry, action: 'deleted', changes: { name: { from: 'North yard' } } })
  t.notOk('to' in deleted.changes.name)

  const tracker = (await owner.call('POST', '/tracker', { name: 'Bus', kind: 'device' })).body.data
  await owner.call('POST', `/tracker/${tracker._id}/rotate-key`)
  const again = await login(owner.email, PASSWORD, { address: '198.51.100.8' })
  await again.call('POST', '/role', { name: 'Clerk' }, { address: '198.51.100.9' })
  const all = await entries(owner)
  t.match(all[0], { actor, action: 'created', noun: 'role', address: '198.51.100.9' })
  t.match(
    all.find(({ noun }: { noun: string }) => noun === 'session'),
    { actor, action: 'began', changes: {}, address: '198.51.100.8' },
    'signing in',
  )
  t.notMatch(JSON.stringify(all), /keyHash|passwordHash|argon2|identityId|deviceKey/)
  t.equal(new Set(all.map(({ _id }: { _id: string }) => _id)).size, all.length)
  t.strictSame(
    all.map(({ at }: { at: string }) => at),
    [...all]
      .map(({ at }) => at)
      .sort()
      .reverse(),
  )

  const walked = []
  let cursor: string | null = ''
  do {
    const page = await owner.call('GET', `/audit-log?limit=3${cursor === '' ? '' : `&cursor=${cursor}`}`)
    t.equal('total' in page.body, false)
    walked.push(...page.body.data)
    cursor = page.body.nextCursor as string | null
    if (cursor !== null) t.match(page.headers.link, /cursor=/)
  } while (cursor !== null)
  t.strictSame(walked, all, 'by cursor')
  t.strictSame(
    await entries(owner, '&noun=hub&action=changed&fields=noun,action'),
    all
      .filter(({ noun, action }: { noun: string; action: string }) => noun === 'hub' && action === 'changed')
      .map(({ _id }: { _id: string }) => ({ _id, noun: 'hub', action: 'changed' })),
  )
  t.equal((await entries(owner, `&actorId=${ownerId}`)).length > 0, true)
  t.strictSame(await entries(owner, '&actorId=nobody'), [])
  t.strictSame(await entries(owner, `&_id=${created._id},${deleted._id.toUpperCase()}`), [deleted, created])
  t.match((await owner.call('GET', '/audit-log?_id=x')).body, { code: 'invalid', errors: [{ path: '/_id' }] })
  t.strictSame(
    (await entries(owner, '&noun=hub,role&action=created,deleted')).length,
    all.filter(
      (one: { noun: string; action: string }) => ['hub', 'role'].includes(one.noun) && one.action !== 'changed',
    ).length,
    'several values',
  )
  t.strictSame(await entries(owner, '&to=2020-01-01T00:00:00Z'), [])
  t.equal((await owner.call('GET', '/audit-log?from=2026-02-01T00:00:00Z&to=2026-01-01T00:00:00Z')).status, 400)
  t.equal((await owner.call('GET', '/audit-log?sortBy=at')).status, 400)
  t.match(
    (await owner.call('GET', '/audit-log?noun=hub,hubs')).body,
    { code: 'invalid', errors: [{ path: '/noun', message: /must be one of .*hub, .*session/ }] },
    'a kind of things that there is none of',
  )
  t.equal((await call('GET', '/audit-log')).status, 401)

  const stranger = await signup()
  const theirs = await entries(stranger)
  t.ok(theirs.length > 0)
  t.notMatch(JSON.stringify(theirs), new RegExp(organizationId), 'each organization has its own')
  t.strictSame(await entries(stranger, `&resourceId=${hub._id}`), [])
  t.strictSame(await entries(stranger, `&_id=${created._id}`), [])
})

test('a reader of one hub sees what concerns it, with the fields that their role may see', async (t) => {
  const { signup, login, entries, roleId } = await open(t)
  const owner = await signup()
  const [north, south] = await Promise.all(
    ['North', 'South'].map(async (name) => (await owner.call('POST', '/hub', { name, lat: 1, lng: 2 })).body.data._id),
  )
  for (const hubId of [north, south]) await owner.call('POST', '/team', { name: `Team of ${hubId}`, hubId })
  const role = (
    await owner.call('POST', '/role', { name: 'Auditor', permissions: ['view/audit-log', 'view/user', 'view/hub'] })
  ).body.data
  const person = { name: 'Auditor', email: 'auditor@example.com', password: PASSWORD, roleId: role._id, hubId: [north] }
  await owner.call('POST', '/user', person)
  await owner.call('POST', '/user', {
    ...person,
    name: 'Else',
    email: 'else@example.com',
    roleId: await roleId(owner, 'fieldUser'),
  })
  const auditor = await login('auditor@example.com')
  const seen = await entries(auditor)
  t.notMatch(JSON.stringify(seen), new RegExp(south))
  t.strictSame(
    [...new Set(seen.map(({ noun }: { noun: string }) => noun))].sort(),
    ['hub', 'team', 'user'],
    'what has no hub is not theirs',
  )
  const team = seen.find(({ noun }: { noun: string }) => noun === 'team')
  t.strictSame(team.changes, {}, 'without view/team no values')
  const user = seen.find(
    ({ noun, changes }: { noun: string; changes: { name?: { to: string } } }) =>
      noun === 'user' && changes.name?.to === 'Else',
  )
  t.match(user.changes, { status: { to: 'active' }, name: { to: 'Else' } })
  t.notOk('email' in user.changes, 'without edit/user no e-mail')
  await owner.call('PATCH', `/role/${role._id}`, { permissions: ['view/user'] })
  t.equal((await auditor.call('GET', '/audit-log')).status, 403)
})

test('a restart repeats nothing, and rebuilding finds nothing that differs', async (t) => {
  const { signup, entries, log, history, close } = await open(t)
  const owner = await signup()
  const before = await entries(owner)
  const rows = await history.rows<{ n: number }>(`SELECT count() AS n FROM ${AUDIT_TABLE}`)
  async function* events() {
    const end = new AbortController()
    for await (const batch of log.follow({ prefixes: auditedPrefixes(AUDITED) }, undefined, end.signal)) {
      for (const event of batch.events) yield { partition: 0, entry: { revision: event.revision, event } }
      if (batch.caughtUp) end.abort()
    }
  }
  const parts = { history, mark: 'a', since: 0, eraseAgain: async () => {} }
  const audited = auditBuffer(AUDITED, new Erased())
  const report = await rebuildHistory(parts, AUDIT, [AUDIT_TABLE], audited, events())
  t.match(report, { projection: AUDIT, rows: rows[0].n, differing: 0 })
  t.strictSame(await entries(owner), before)
  await history.command(`ALTER TABLE ${AUDIT_TABLE} DELETE WHERE noun = 'hub' SETTINGS mutations_sync = 2`)
  await history.command(
    `ALTER TABLE ${AUDIT_TABLE} UPDATE action = 'wrong' WHERE noun = 'role' SETTINGS mutations_sync = 2`,
  )
  const found = await rebuildHistory({ ...parts, mark: 'b' }, AUDIT, [AUDIT_TABLE], audited, events())
  t.match(found, { missing: 1, different: 4 })
  t.strictSame(await entries(owner), before, 'and puts it right')
  await close()
})

const CARGO = defineResource({
  noun: 'cargo',
  plural: 'cargos',
  tag: 'Cargo',
  fields: { dataTypeId: id(), values: anyObject(), pin: anyObject() },
  secrets: { writeOnly: ['pin'] },
  permissions: { view: 'view/data', edit: 'edit/data' },
  example: {},
}).declaration

const logOf = (stream: string, events: [type: string, data: object][]) => {
  const recorded = events.map(([type, data], revision): RecordedEvent => {
    const metadata = { organizationId: 'org-1' }
    return {
      id: `${revision}`,
      type,
      data: encodeJson(data),
      isJson: true,
      metadata,
      stream,
      revision,
      position: revision,
      loggedAt: 1,
    }
  })
  const read = async (_stream: string, from: number | 'end', limit: number) =>
    recorded
      .slice(0, Number(from) + 1)
      .reverse()
      .slice(0, limit)
  const rowAt = (revision: number) =>
    auditEntry(recorded[revision], new Set(['cargo', 'geofence'])) as unknown as AuditRow
  return { log: { read }, rowAt }
}

const services = (log: LoggedServices['log']): LoggedServices => ({
  log,
  asShown: async (_caller, _declaration, values) => values,
})

test('fields that a role hides do not show, whatever changed; long values are counted', async (t) => {
  const values = (phone: string) => ({
    values: { dataTypeId: 'type', values: { phone, note: 'n'.repeat(phone.length) }, pin: 1 },
  })
  const { log, rowAt } = logOf('cargo-1', [
    ['cargoCreated', values('1')],
    ['cargoChanged', values('12'.repeat(5_000))],
  ])
  const open = callerWith(['view/data'])
  const { changes } = await readLogged(services(log), open, CARGO, rowAt(1))
  t.strictSame(Object.keys(changes), ['values'])
  t.match(changes.values, { from: { phone: '1' }, to: { omittedCharacters: /^2\d{4}$/ } })
  const asShown: LoggedServices['asShown'] = async (_caller, _declaration, { values, ...rest }) => ({
    ...rest,
    values: { note: (values as { note: string }).note },
  })
  const shown = await readLogged({ log, asShown }, open, CARGO, rowAt(1))
  t.match(shown.changes.values, { from: { note: 'n' } })
  t.notMatch(JSON.stringify(shown), /phone|pin/)
  t.strictSame((await readLogged(services(log), callerWith([]), CARGO, rowAt(1))).changes, {})
  const erased = await readLogged(services({ read: async () => [] }), open, CARGO, rowAt(1))
  t.strictSame(erased, { changes: {} }, 'what was erased says nothing')
})

test('a geofence says in patches what changed: both sides are shown', async (t) => {
  const { log, rowAt } = logOf('geofence-1', [
    [
      'geofenceCreated.v1',
      { name: 'Yard', isActive: true, shape: { center: { lat: 1, lng: 2 }, radius: 5 }, organizationId: 'o', at: 1 },
    ],
    ['geofenceChanged.v1', { changes: { name: 'Gate' }, organizationId: 'o', at: 2 }],
    ['geofenceChanged.v1', { changes: { shape: { type: 'Polygon', coordinates: [] } }, organizationId: 'o', at: 3 }],
    ['geofenceChanged.v1', { changes: { name: 'Door' }, organizationId: 'o', at: 4 }],
    ['geofenceDeleted.v1', { organizationId: 'o', at: 5 }],
  ])
  const caller = callerWith(['view/geofence'])
  const changes = async (revision: number) =>
    (await readLogged(services(log), caller, geofence.declaration, rowAt(revision))).changes
  t.strictSame(await changes(1), { name: { from: 'Yard', to: 'Gate' } })
  t.strictSame(await changes(2), {
    center: { from: { lat: 1, lng: 2 } },
    radius: { from: 5 },
    geometry: { to: { type: 'Polygon', coordinates: [] } },
  })
  t.strictSame(await changes(3), { name: { from: 'Gate', to: 'Door' } })
  t.match(await changes(4), { name: { from: 'Door' }, geometry: { from: { type: 'Polygon' } } })
})
