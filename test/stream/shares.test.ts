import tap, { type Test, test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { ask, call, type Json, signUp, startService, until } from '../support/service.ts'

const PASSWORD = 'Correct-horse-9-battery'
const HOUR_MS = 3_600_000

const opened = async (t: Test, args: string[] = []) => {
  const service = await startService(folderOf(t), args)
  t.teardown(() => service.kill())
  return service
}

type Service = Awaited<ReturnType<typeof opened>>

const withoutFlags = await opened(tap)

const inMs = (ms: number): string => new Date(Date.now() + ms).toISOString()

/** An organization with a driver, a flow and a task for them. */
const openOffice = async (service: Service) => {
  const { token, hubId, email, organizationId } = await signUp(service, 'Couriers <b>')
  const send = (method: string, path: string, body?: Json, by = token) =>
    call(service, method, path, { token: by, body })
  const made = async (path: string, body: Json, by = token): Promise<Json> =>
    (await ask(service, 'POST', path, { token: by, body })).data
  const person = async (name: string, role: string, hubs: string[] = [hubId]) => {
    const roleId = (await send('GET', `/roles?key=${role}`)).json.data[0]._id
    const address = `${name}.${email}`
    const { _id } = await made('/user', { name, email: address, password: PASSWORD, roleId, hubId: hubs })
    const login = await ask(service, 'POST', '/auth/login', { body: { email: address, password: PASSWORD } })
    return { id: _id as string, token: login.token as string, email: address }
  }
  const flow = await made('/flow', {
    name: 'Parcel',
    steps: [{ id: 's', name: 'S', components: [{ id: 'secretNote', type: 'text', label: 'Note' }] }],
  })
  const task = (title: string, more: Json = {}) => made('/task', { flowId: flow._id, title, hubId, ...more })
  const points = (by: string, list: Json[]) =>
    ask(service, 'POST', '/location-history/bulk', { token: by, body: { points: list } })
  const follow = (shareToken: string, headers = {}) => call(service, 'GET', `/follow/${shareToken}`, { headers })
  const page = async (shareToken: string, language = 'en') => {
    const answer = await fetch(`${service.url}/follow/${shareToken}`, { headers: { 'accept-language': language } })
    return { status: answer.status, headers: answer.headers, text: await answer.text() }
  }
  return { token, hubId, organizationId, email, send, made, person, flow, task, points, follow, page }
}

test('a customer follows a task without an account, and learns nothing else', { timeout: 900_000 }, async (t) => {
  const service = withoutFlags
  const office = await openOffice(service)
  const { send, made, person, task, points, follow, page, email } = office
  const ada = await person('ada', 'fieldUser')
  const window = { from: inMs(-HOUR_MS), to: inMs(HOUR_MS) }
  const place = { lat: 52.25, lng: 21.0 }
  const secrets = ['Ring twice', 'Secret street 7', 'hidden-note', 'order-4711', 'vip-tag', 'Other customer', 'ada']
  const shared = await task('Parcel <i>for</i> "Bob"', {
    ...place,
    window,
    assigneeIds: [ada.id],
    description: secrets[0],
    address: secrets[1],
    components: { secretNote: secrets[2] },
    externalId: secrets[3],
    tags: [secrets[4]],
  })
  await task(secrets[5], { assigneeIds: [ada.id] })
  const share = await made('/share', { taskId: shared._id, showTrail: true })
  t.match(share, { _id: String, token: /^[\w-]{43}$/, url: `${service.url}/follow/${share.token}`, taskId: shared._id })
  t.ok(Date.parse(share.expiresAt) > Date.now() + HOUR_MS)
  const listed = (await send('GET', `/shares?taskId=${shared._id}`)).json
  t.match(listed, { total: 1, data: [{ _id: share._id, taskId: shared._id, showTrail: true }] })
  t.notMatch(JSON.stringify(listed), new RegExp(`token|${share.token}|hash`, 'i'), 'its token is told once')

  // Before its start there is no position, whatever the driver does.
  await points(ada.token, [{ recordedAt: inMs(-60_000), lat: 52.1, lng: 20.9, speed: 9 }])
  t.match((await follow(share.token)).json, {
    status: true,
    data: { task: { title: shared.title, state: 'assigned' } },
  })
  t.notOk((await follow(share.token)).json.data.position)
  t.equal((await send('POST', `/task/${shared._id}/start`, {}, ada.token)).status, 200)
  t.notOk((await follow(share.token)).json.data.position, 'nothing from before the start')

  const now = Date.now()
  const way = [0, 1, 2].map((i) => ({ recordedAt: now + i, lat: 52.2 + i / 1000, lng: 21.0, speed: 8, heading: 10 }))
  await points(ada.token, way)
  let followed: Json = {}
  await until('a position and its trail', async () => {
    followed = (await follow(share.token)).json.data
    return followed.position?.lat === 52.202
  })
  t.same(Object.keys(followed).sort(), ['eta', 'organization', 'position', 'task', 'trail'])
  t.same(followed.organization, { name: (await send('GET', '/organization')).json.data.name, logo: null })
  t.same(followed.task, { title: shared.title, state: 'inProgress', window, ...place })
  t.same(followed.position, {
    lat: 52.202,
    lng: 21,
    speed: 8,
    heading: 10,
    recordedAt: new Date(now + 2).toISOString(),
  })
  const meters = 0.048 * (Math.PI / 180) * 6_371_008.8 * 1.3
  t.ok(Math.abs(followed.eta.distanceMeters - meters) <= 1, 'the great circle, times 1.3')
  const leftAt = Date.parse(followed.eta.at) - (meters / 8) * 1000
  t.ok(leftAt > now - 1_000 && leftAt < Date.now() + 1_000, 'as fast as it drives')
  t.notOk(JSON.stringify(followed.trail).includes('20.9'), 'no trail from before the start')

  const shown = await page(share.token, 'de-AT,en;q=0.5')
  t.equal(shown.status, 200)
  t.match(
    shown.headers.get('content-security-policy'),
    /^default-src 'none'; style-src 'sha256-.+frame-ancestors 'none'$/,
  )
  t.match(shown.headers.get('content-type'), 'text/html')
  t.equal(shown.headers.get('cache-control'), 'no-store')
  t.equal(shown.headers.get('referrer-policy'), 'no-referrer')
  t.match(shown.text, 'Parcel &lt;i&gt;for&lt;/i&gt; &quot;Bob&quot;')
  t.match(shown.text, /<html lang="de" dir="ltr">[\s\S]*Unterwegs[\s\S]*<svg/)
  t.notMatch(shown.text, /<script|<i>|<b>|style=| on\w+=/)
  t.ok(Buffer.byteLength(shown.text) < 16_384, 'it is small')
  t.match((await page(share.token, 'ar')).text, '<html lang="ar" dir="rtl">')
  t.match((await page(share.token, 'xx')).text, '<html lang="en" dir="ltr">')

  // A walk over all that is answered: no value of the organization but what is meant to be there.
  const everything = JSON.stringify(followed) + shown.text + JSON.stringify((await follow(share.token)).headers)
  const ids = [office.organizationId, office.hubId, office.flow._id, shared._id, ada.id, share._id]
  const others = (await send('GET', '/trackers')).json.data.flatMap((one: Json) => [one._id, one.name])
  for (const secret of [...secrets, ...ids, ...others, email, ada.email])
    t.notOk(everything.includes(secret), `${secret} is not told`)
  for (const path of ['/tasks', '/organization', '/live-positions', `/task/${shared._id}`, '/shares'])
    t.equal((await call(service, 'GET', path, { token: share.token })).status, 401, `${path} is not opened by it`)

  const finishedAfter = Date.now()
  t.equal((await send('POST', `/task/${shared._id}/finish`, {}, ada.token)).status, 200)
  const over = (await follow(share.token)).json.data
  t.same(Object.keys(over).sort(), ['organization', 'task'], 'no position once it is over')
  t.equal(over.task.state, 'finished')
  t.match((await page(share.token)).text, 'Done')
  const [row] = (await send('GET', '/shares')).json.data
  const finishedAt = Date.parse(row.expiresAt) - HOUR_MS
  t.ok(finishedAt >= finishedAfter && finishedAt <= Date.now(), 'it ends an hour after the task')

  t.equal((await send('DELETE', `/share/${share._id}`)).status, 200)
  const unknown = (await follow('x'.repeat(43))).json
  const ended = await follow(share.token)
  t.same({ status: ended.status, json: ended.json }, { status: 404, json: unknown }, 'as one that never was')
  t.match(await page(share.token), { status: 404, text: /This link has ended/ })
})

test('a tracker is followed for some days, from the share on', { timeout: 900_000 }, async (t) => {
  const service = withoutFlags
  const { send, made, follow, page } = await openOffice(service)
  const tracker = await made('/tracker', { name: 'Secret bus', kind: 'vehicle' })
  const point = (recordedAt: string, lat: number) =>
    ask(service, 'POST', '/location-history/bulk', {
      token: tracker.deviceKey,
      body: { points: [{ recordedAt, lat, lng: 21 }] },
    })
  await point(inMs(-60_000), 50)
  const body = { trackerId: tracker._id, showTrail: true, expiresAt: inMs(HOUR_MS) }
  const share = await made('/share', body)
  await until('a position', async () => (await follow(share.token)).json.data.position !== undefined)
  await point(inMs(0), 51)
  await until('the next', async () => (await follow(share.token)).json.data.position.lat === 51)
  const { data } = (await follow(share.token)).json
  t.same(Object.keys(data).sort(), ['organization', 'position', 'trail'])
  t.notOk(JSON.stringify(data.trail).includes('50'), 'nothing from before it was shared')
  t.notMatch(JSON.stringify(data) + (await page(share.token)).text, /Secret bus/)
  t.equal((await send('DELETE', `/tracker/${tracker._id}`)).status, 200, 'a share keeps nothing from being deleted')
  t.equal((await follow(share.token)).status, 404)
  const [listed] = (await send('GET', '/shares')).json.data
  t.equal(listed.expiresAt, share.createdAt, 'the list says that it has ended')
})

test('who may share what, and for how long', { timeout: 900_000 }, async (t) => {
  const service = await opened(t, ['--shares-max', '4'])
  const { send, made, person, task, follow, token } = await openOffice(service)
  const other = (await made('/hub', { name: 'Other', lat: 50, lng: 20 }))._id
  const planner = await person('pia', 'planner')
  const driver = await person('dan', 'fieldUser')
  const [near, far] = [await task('Near'), await task('Far', { hubId: other })]
  const tracker = await made('/tracker', { name: 'Bus', kind: 'vehicle' })
  const refused = async (body: Json, status: number, path: string | undefined, by = token) => {
    const { status: found, json } = await send('POST', '/share', body, by)
    t.match({ status: found, path: json.errors?.[0]?.path }, { status, path }, JSON.stringify(body))
  }
  await refused({}, 400, '/taskId')
  await refused({ taskId: near._id, trackerId: tracker._id }, 400, '/trackerId')
  await refused({ taskId: 'x' }, 400, '/taskId')
  await refused({ taskId: tracker._id }, 400, '/taskId')
  await refused({ trackerId: tracker._id }, 400, '/expiresAt')
  await refused({ trackerId: tracker._id, expiresAt: inMs(8 * 24 * HOUR_MS) }, 400, '/expiresAt')
  await refused({ trackerId: tracker._id, expiresAt: inMs(-1) }, 400, '/expiresAt')
  await refused({ taskId: near._id, expiresAt: inMs(91 * 24 * HOUR_MS) }, 400, '/expiresAt')
  await refused({ taskId: near._id, token: 'x' }, 400, '/token')
  await refused({ taskId: near._id }, 403, undefined, driver.token)
  await refused({ trackerId: tracker._id, expiresAt: inMs(HOUR_MS) }, 403, undefined, planner.token)
  await refused({ taskId: far._id }, 400, '/taskId', planner.token)
  const outsider = await signUp(service, 'Outsider')
  await refused({ taskId: near._id }, 400, '/taskId', outsider.token)

  const [ofNear, ofFar] = [await made('/share', { taskId: near._id }), await made('/share', { taskId: far._id })]
  const ofBus = await made('/share', { trackerId: tracker._id, expiresAt: inMs(HOUR_MS) })
  const seenBy = async (by: string) =>
    (await send('GET', '/shares', undefined, by)).json.data.map((one: Json) => one._id)
  t.same((await seenBy(token)).sort(), [ofNear._id, ofFar._id, ofBus._id].sort())
  t.same(await seenBy(planner.token), [ofNear._id], 'neither of another hub nor of trackers')
  t.same(await seenBy(outsider.token), [])
  t.equal((await send('GET', '/shares', undefined, driver.token)).status, 403)
  for (const by of [outsider.token, planner.token]) {
    t.equal((await send('DELETE', `/share/${ofFar._id}`, undefined, by)).status, 404)
    t.equal((await send('GET', `/share/${ofFar._id}`, undefined, by)).status, 404)
  }
  t.equal((await send('PATCH', `/share/${ofNear._id}`, { showTrail: true })).status, 405, 'nobody changes one')

  const gone = await task('Gone')
  t.equal((await send('POST', `/task/${gone._id}/cancel`, { at: inMs(-30_000) })).status, 200)
  const ofGone = await made('/share', { taskId: gone._id })
  t.match((await follow(ofGone.token)).json, { data: { task: { state: 'cancelled' } } }, 'for an hour more')
  t.match(await send('POST', '/share', { taskId: near._id }), { status: 409, json: { code: 'quota' } })
  t.equal((await send('DELETE', `/task/${gone._id}`)).status, 200)
  t.equal((await follow(ofGone.token)).status, 404, 'its task is gone')
  t.equal((await send('DELETE', `/share/${ofGone._id}`)).status, 200)
  const soon = await made('/share', { taskId: near._id, expiresAt: inMs(3_000) })
  t.equal((await follow(soon.token)).status, 200)
  await until('its end', async () => (await follow(soon.token)).status === 404)
})

test('whoever guesses is stopped, with a right token too', { timeout: 900_000 }, async (t) => {
  const service = await opened(t)
  const { made, task, follow, page } = await openOffice(service)
  const share = await made('/share', { taskId: (await task('T'))._id })
  for (let n = 0; n < 60; n++) t.equal((await follow('left-open')).status, 404, 'one that is left open counts once')
  const wrong = [
    '..%2f..',
    '%00',
    'a',
    share.token.toLowerCase(),
    `${share.token}x`,
    share.token.slice(0, -1),
    '%F0%9F',
  ]
  for (const one of wrong) t.ok([400, 404].includes((await follow(one)).status), one)
  let tried = 0
  for (; tried < 100; tried++) if ((await follow(`${tried}`.padStart(43, 'x'))).status === 429) break
  t.ok(tried > 30 && tried <= 50, `${tried} wrong ones`)
  const { status, headers, json } = await follow(share.token)
  t.match({ status, json }, { status: 429, json: { code: 'rate_limited' } })
  t.ok(Number(headers['retry-after']) > 60)
  t.match(await page(share.token), { status: 429, text: /Try again later/ })
})
