import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { askControl } from '../../src/cli/control-socket.ts'
import { openChdbHistoryStore } from '../../src/engines/chdb/chdb-history.ts'
import { openLmdbEventLog } from '../../src/engines/lmdb-log/lmdb-log.ts'
import { openLmdbTableStore } from '../../src/engines/lmdb-tables/lmdb-tables.ts'
import { LATEST_POSITIONS } from '../../src/features/locations/views.ts'
import { systemClock } from '../../src/kernel/system-clock.ts'
import { OWED_MAILS } from '../../src/reactors/mail/owed-mails.ts'
import { PROJECTIONS } from '../../src/product-parts.ts'
import { folderOf } from '../support/folder-of.ts'
import { addressOf } from '../support/each-route.ts'
import { operationsOf } from '../support/open-api.ts'
import { formOf } from '../support/pictures.ts'
import { mailsIn, tokenIn } from '../support/read-mail.ts'
import { codeAt } from '../support/code-at.ts'
import { ask, call, type Service, signUp, startService, until } from '../support/service.ts'

const PASSWORD = 'Another-horse-8-battery'
const ADDRESS = '203.0.113.77'
const REBUILT = [
  'directory',
  'access',
  'audit-log',
  'location-history',
  'transitions',
  'latest-position',
  'automation-runs',
]

/** Files of tasks and records that the folder has. */
const attachedIn = (data: string): string[] => {
  const entries = readdirSync(join(data, 'files', 'attachments'), { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name)
}

/** All that a data folder holds in readable form, piece by piece: events, rows of tables, rows of the history. */
async function* contentsOf(data: string): AsyncGenerator<{ where: string; text: string }> {
  const log = await openLmdbEventLog({ path: join(data, 'log'), clock: systemClock })
  const end = new AbortController()
  for await (const { events, caughtUp } of log.follow({ prefixes: [''] }, undefined, end.signal)) {
    for (const event of events) {
      const text = `${Buffer.from(event.data).toString('latin1')} ${Buffer.from(event.data).toString()} ${JSON.stringify(event.metadata)}`
      yield { where: `${event.stream} ${event.type}`, text }
    }
    if (caughtUp) break
  }
  end.abort()
  await log.close()
  const tables = await openLmdbTableStore({ path: join(data, 'tables'), clock: systemClock })
  for (const table of [LATEST_POSITIONS, OWED_MAILS, ...PROJECTIONS.flatMap((one) => one.tables)]) {
    await tables.declare(table)
    for await (const { id, row } of tables.scanAll(table.name))
      yield { where: table.name, text: `${id} ${JSON.stringify(row)}` }
  }
  await tables.close()
  const history = await openChdbHistoryStore({
    path: join(data, 'history'),
    scratchPath: join(data, 'history-scratch'),
  })
  const names = await history.rows<{ name: string }>(
    'SELECT name FROM system.tables WHERE database = currentDatabase()',
  )
  for (const { name } of names)
    for await (const chunk of history.query(`SELECT * FROM ${name}`, undefined, 'JSONEachRow'))
      yield { where: name, text: Buffer.from(chunk).toString() }
  await history.close()
}

/** Points that the history has. */
const pointsWhere = async (data: string, condition: string): Promise<number> => {
  const history = await openChdbHistoryStore({
    path: join(data, 'history'),
    scratchPath: join(data, 'history-scratch'),
  })
  const [{ rows }] = await history.rows<{ rows: number }>(`SELECT count() AS rows FROM points WHERE ${condition}`)
  await history.close()
  return rows
}

/** Where one of these words stands. */
const foundIn = async (data: string, words: readonly string[]): Promise<{ found: string[]; pieces: number }> => {
  const found = new Set<string>()
  let pieces = 0
  for await (const { where, text } of contentsOf(data)) {
    pieces++
    for (const word of words) if (text.includes(word)) found.add(`${word} in ${where.replace(/-[0-9a-f-]{36}/, '-…')}`)
  }
  return { found: [...found], pieces }
}

/** Where one of these words stands in an answer to a read without parameters. */
const answered = async (service: Service, token: string, words: readonly string[]): Promise<string[]> => {
  const found: string[] = []
  const operations = operationsOf((await call(service, 'GET', '//openapi.json')).json)
  for (const operation of operations.filter((one) => one.method === 'GET' && !one.isRoot && one.params.length === 0)) {
    const { text } = await call(service, 'GET', addressOf(operation, {}), { token })
    for (const word of words) if (text.includes(word)) found.push(`${word} in ${operation.operationId}`)
  }
  return found
}

const mailedToken = async (service: Service, to: string): Promise<string> => {
  let token = ''
  await until(`a mail to ${to}`, () => {
    const mail = mailsIn(join(service.data, 'mail')).find(({ headers }) => headers.to === to)
    token = mail === undefined ? '' : tokenIn(mail)
    return token !== ''
  })
  return token
}

const rebuildAll = async (t: Test, data: string): Promise<void> => {
  for (const name of REBUILT) {
    const answer = await askControl(data, { command: 'rebuild', name })
    t.match(answer, { ok: true, report: { differing: 0 } }, `${name} is what it was`)
  }
}

const automationOf = (name: string, geofenceGroupId: string) => ({
  name,
  event: 'onGeofenceEntry',
  automationType: 'webhook',
  automationDetails: { url: 'http://127.0.0.1:9/vogon' },
  rules: { fields: { geofenceGroupId } },
})

test('nothing is left of an organization that was erased', { timeout: 900_000 }, async (t) => {
  const data = folderOf(t)
  const service = await startService(data)
  t.teardown(() => service.kill())
  const elsewhere = await signUp(service, 'Elsewhere')
  const { token, password, email, hubId, organizationId } = await signUp(service, 'Vogons')
  const make = async (path: string, body: object) => (await ask(service, 'POST', path, { token, body })).data
  const role = await make('/role', { name: 'Vogon role', permissions: ['view/hub'] })
  await make('/hub', { name: 'Vogon hub', lat: 47.7654321, lng: 8 })
  await make('/user', { name: 'Vogon jeltz', email: 'jeltz@vogon.example', password: PASSWORD, roleId: role._id })
  await make('/user/invite', { name: 'Vogon guest', email: elsewhere.email, roleId: role._id })
  await make('/team', { name: 'Vogon team', hubId })
  await make('/vehicle', { name: 'Vogon van', type: 'car', hubId })
  const tracker = await make('/tracker', { name: 'Vogon ship', kind: 'device', externalId: 'vogon-1' })
  const group = await make('/geofence-group', { name: 'Vogon group' })
  await make('/geofence', {
    name: 'Vogon fence',
    geofenceGroupId: group._id,
    center: { lat: 52, lng: 21 },
    radius: 500,
  })
  await make('/automation', automationOf('Vogon automation', group._id))
  const components = [{ id: 'poem', type: 'file' }]
  const flow = await make('/flow', { name: 'Vogon flow', steps: [{ id: 'one', name: 'One', components }] })
  const task = await make('/task', { flowId: flow._id, title: 'Vogon task', hubId })
  const form = new FormData()
  form.append('componentId', 'poem')
  form.append('file', new File(['Vogon poetry'], 'Vogon poem.txt'))
  await ask(service, 'POST', `/task/${task._id}/files`, { token, ...(await formOf(form)) })
  t.equal(attachedIn(data).length, 1)
  const points = [0, 1, 2].map((i) => ({ recordedAt: Date.now() - 60_000 + i * 10_000, lat: 52 + i / 50, lng: 21 }))
  await ask(service, 'POST', '/location-history/bulk', { token: tracker.deviceKey, body: { points } })
  await until('the points', async () => (await ask(service, 'GET', '/location-histories', { token })).data.length === 3)
  await until('an entry', async () => (await ask(service, 'GET', '/geofence-events', { token })).data.length > 0)

  // Deleted before: only the log remembers them.
  for (const [path, body] of [
    ['/hub', { name: 'Vogon ruin', lat: 1, lng: 1 }],
    ['/task', { flowId: flow._id, title: 'Vogon errand', hubId }],
    ['/automation', automationOf('Vogon habit', group._id)],
    ['/geofence', { name: 'Vogon past', geofenceGroupId: group._id, center: { lat: 1, lng: 1 }, radius: 50 }],
    ['/user', { name: 'Vogon exile', email: 'exile@vogon.example', password: PASSWORD, roleId: role._id }],
  ] as const)
    await ask(service, 'DELETE', `${path}/${(await make(path, body))._id}`, { token })

  const erase = (by: string, body: object) => call(service, 'DELETE', '/organization', { token: by, body })
  const login = await call(service, 'POST', '/auth/login', {
    body: { email: 'jeltz@vogon.example', password: PASSWORD },
  })
  t.equal((await erase(login.json.token, { password: PASSWORD })).status, 403, 'an owner alone')
  t.match(await erase(token, { password: 'wrong' }), { status: 403, json: { code: 'wrong_password' } })
  t.equal((await erase(token, {})).status, 400)
  t.equal((await call(service, 'GET', '/organization', { token })).status, 200)
  t.equal((await erase(token, { password })).status, 200)
  t.equal((await call(service, 'GET', '/organization', { token })).status, 401)
  t.equal((await call(service, 'POST', '/auth/login', { body: { email, password } })).status, 401)
  const body = { points: [{ ...points[0], recordedAt: Date.now() }] }
  await until(
    'its keys to end',
    async () =>
      (await call(service, 'POST', '/location-history/bulk', { token: tracker.deviceKey, body })).status === 401,
  )
  t.equal(
    (await ask(service, 'GET', '/auth/my-organizations', { token: elsewhere.token })).data.length,
    1,
    'its guest stays',
  )
  await until('its files to go', () => attachedIn(data).length === 0)
  await service.stop()

  const words = ['ogon', 'jeltz', email, '47.7654321']
  const first = await foundIn(data, words)
  t.same(first.found, [])
  const again = await startService(data)
  t.teardown(() => again.kill())
  await rebuildAll(t, data)
  t.same(await answered(again, elsewhere.token, words), [])
  await again.stop()
  t.same((await foundIn(data, words)).found, [])
  t.equal(await pointsWhere(data, `organizationId = '${organizationId}'`), 0)
})

/** Tells a user in the application what stands nowhere else: `towel-742`. */
const notified = async (
  service: Service,
  token: string,
  { userId, hubId, own }: { userId: string; hubId: string; own: string },
): Promise<void> => {
  const automation = {
    name: 'Tell',
    event: 'onTaskCreated',
    automationType: 'notification',
    automationDetails: { channel: 'inApp', to: userId, text: 'towel-{{task.priority}}42' },
  }
  await ask(service, 'POST', '/automation', { token, body: automation })
  const [flow] = (await ask(service, 'GET', '/flows?key=delivery', { token })).data
  await ask(service, 'POST', '/task', { token, body: { flowId: flow._id, title: 'Tea', hubId, priority: 7 } })
  const told = async () => (await ask(service, 'GET', '/notifications', { token: own })).data
  await until('it to be told', async () => (await told()).length === 1)
}

test('nothing is left of a user who was erased', { timeout: 900_000 }, async (t) => {
  const data = folderOf(t)
  const flags = ['--trusted-proxies', '127.0.0.0/8']
  let service = await startService(data, flags)
  t.teardown(() => service.kill())
  const { token, hubId } = await signUp(service)
  const roleId = (await ask(service, 'GET', '/roles?key=planner', { token })).data[0]._id
  const email = 'zaphod@erased.example'
  const invited = { email, name: 'Zaphod Beeblebrox', roleId, hubId: [hubId] }
  const { _id: userId } = (await ask(service, 'POST', '/user/invite', { token, body: invited })).data
  const link = await mailedToken(service, email)
  const accepted = await ask(service, 'POST', '/auth/accept-invitation', { body: { token: link, password: PASSWORD } })
  const own = { token: accepted.token }
  await ask(service, 'PATCH', '/user', { ...own, body: { name: 'Zaphod the Renamed' } })
  await ask(service, 'PATCH', '/user', { ...own, body: { email: 'pending@erased.example', currentPassword: PASSWORD } })
  await ask(service, 'POST', '/auth/forgot-password', { body: { email } })
  await ask(service, 'POST', '/team', { token, body: { name: 'Team', hubId, userIds: [userId] } })
  await ask(service, 'POST', '/vehicle', { token, body: { name: 'Van', type: 'car', hubId, userId } })
  const points = [0, 1, 2].map((i) => ({
    recordedAt: Date.now() - 60_000 + i * 10_000,
    lat: 47.1234567,
    lng: 8 + i / 100,
  }))
  await ask(service, 'POST', '/location-history/bulk', { ...own, body: { points } })
  const phoneOf = async () => (await ask(service, 'GET', `/trackers?userId=${userId}`, { token })).data[0]
  await until('the phone', async () => (await phoneOf()) !== undefined)
  const { _id: phoneId } = await phoneOf()
  await ask(service, 'PATCH', `/tracker/${phoneId}`, { token, body: { name: 'Zaphods phone' } })
  const positions = async () => (await ask(service, 'GET', `/location-histories?trackerId=${phoneId}`, { token })).data
  await until('the points', async () => (await positions()).length === 3)

  // From an address that only their sessions name.
  const headers = { 'x-forwarded-for': ADDRESS }
  const elsewhere = await ask(service, 'POST', '/auth/login', { body: { email, password: PASSWORD }, headers })
  await ask(service, 'POST', '/auth/refresh', { token: elsewhere.token, headers })
  const { secret } = (await ask(service, 'POST', '/auth/second-factor', { ...own, body: { password: PASSWORD } })).data
  const code = codeAt(secret, Date.now())
  await ask(service, 'POST', '/auth/second-factor/confirm', { ...own, body: { code } })

  await notified(service, token, { userId, hubId, own: own.token })
  const lostId = await lostPhone(service, token, userId, 'Zaphods lost phone')
  const former = await deletedUser(service, token, hubId)

  const words = ['Zaphod', 'erased.example', '47.1234567', ADDRESS, 'Trillian', 'towel-742']
  t.ok((await answered(service, token, words)).length > 2, 'they are there before')
  t.equal((await call(service, 'DELETE', `/user/${userId}?erase=perhaps`, { token })).status, 400)
  t.equal((await call(service, 'DELETE', `/user/${userId}?erase=true`, { token })).status, 200)
  t.equal((await call(service, 'GET', '/user', own)).status, 401)
  t.equal((await call(service, 'GET', `/user/${userId}`, { token })).status, 404)
  t.equal((await call(service, 'GET', `/tracker/${phoneId}`, { token })).status, 404)
  t.equal((await call(service, 'DELETE', `/user/${former.userId}`, { token })).status, 404, 'deleted before')
  t.equal((await call(service, 'DELETE', `/user/${former.userId}?erase=true`, { token })).status, 200)
  t.equal((await call(service, 'DELETE', `/user/${former.userId}?erase=true`, { token })).status, 404, 'once')
  t.equal((await call(service, 'GET', `/tracker/${former.phoneId}`, { token })).status, 404, 'nor their phone')
  await until(
    'the history to forget',
    async () =>
      (await call(service, 'GET', `/location-histories?trackerId=${phoneId}`, { token })).json.data?.length !== 3,
  )
  await until('the live position to go', async () => (await answered(service, token, words)).length === 0)
  const entries = (await ask(service, 'GET', `/audit-log?resourceId=${userId}`, { token })).data
  t.ok(entries.length > 0, 'that there was somebody, and who did what, stays')
  t.match(
    await ask(service, 'POST', '/user/invite', { token, body: invited }),
    { data: { email } },
    'the address is free',
  )
  const again = (await ask(service, 'GET', `/users?email=${email}`, { token })).data[0]._id
  await ask(service, 'DELETE', `/user/${again}?erase=true`, { token })
  await service.stop()

  const gone = ['Zaphod', 'erased.example', ADDRESS, 'Trillian', 'sealedSecret', secret]
  const first = await foundIn(data, gone)
  t.same(first.found, [])
  t.ok(first.pieces > 50)
  service = await startService(data, flags)
  await rebuildAll(t, data)
  t.same(await answered(service, token, words), [], 'after a restart and a rebuild')
  await service.stop()
  t.same((await foundIn(data, gone)).found, [])
  const ids = [phoneId, lostId, former.phoneId, former.lostId].map((id) => `'${id}'`)
  t.equal(await pointsWhere(data, `trackerId IN (${ids})`), 0)
})

/** Somebody with a phone who was deleted, and not erased. */
const deletedUser = async (service: Service, token: string, hubId: string) => {
  const roleId = (await ask(service, 'GET', '/roles?key=fieldUser', { token })).data[0]._id
  const body = { name: 'Trillian', email: 'trillian@erased.example', password: PASSWORD, roleId, hubId: [hubId] }
  const { _id: userId } = (await ask(service, 'POST', '/user', { token, body })).data
  const { email, password } = body
  const own = await ask(service, 'POST', '/auth/login', { body: { email, password } })
  const points = [{ recordedAt: Date.now() - 30_000, lat: 47.1234567, lng: 8 }]
  await ask(service, 'POST', '/location-history/bulk', { token: own.token, body: { points } })
  const phones = async () => (await ask(service, 'GET', `/trackers?userId=${userId}`, { token })).data
  await until('the phone', async () => (await phones()).length === 1)
  const [{ _id: phoneId }] = await phones()
  await ask(service, 'PATCH', `/tracker/${phoneId}`, { token, body: { name: 'Trillians phone' } })
  const lostId = await lostPhone(service, token, userId, 'Trillians lost phone')
  await ask(service, 'DELETE', `/user/${userId}`, { token })
  return { userId, phoneId, lostId }
}

/** A phone of somebody that was deleted before they were. */
const lostPhone = async (service: Service, token: string, userId: string, name: string): Promise<string> => {
  const body = { name, kind: 'phone', userId }
  const { _id, deviceKey } = (await ask(service, 'POST', '/tracker', { token, body })).data
  const points = [{ recordedAt: Date.now() - 40_000, lat: 47.1234567, lng: 8 }]
  await ask(service, 'POST', '/location-history/bulk', { token: deviceKey, body: { points } })
  await ask(service, 'DELETE', `/tracker/${_id}`, { token })
  return _id
}
