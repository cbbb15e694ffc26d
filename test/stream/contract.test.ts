import { test, type Test } from 'tap'
import { WebSocket } from 'undici'
import { allRows, ask, call, type Json, type Service, signUp, startService, until } from '../support/service.ts'
import { folderOf } from '../support/folder-of.ts'
import { ringOf } from '../support/ring.ts'

const MINUTE = 60_000
const square = (lng: number, lat: number, half = 0.01) => ({
  type: 'Polygon',
  coordinates: [ringOf(lng - half, lat - half, lng + half, lat + half)],
})

const open = async (
  t: Test,
): Promise<{
  service: Service
  token: string
  post: (path: string, body?: unknown, token?: string) => Promise<Json>
  get: (path: string) => Promise<Json>
}> => {
  const service = await startService(folderOf(t))
  t.teardown(() => service.kill())
  const { token } = await signUp(service)
  return {
    service,
    token,
    post: (path, body = {}, as = token) => ask(service, 'POST', path, { token: as, body }),
    get: (path) => ask(service, 'GET', path, { token }),
  }
}

const socketOf = async (
  service: Service,
  path: string,
  bearer: string,
): Promise<{ socket: WebSocket; messages: Json[]; closed: Promise<number> }> => {
  const socket = new WebSocket(`${service.url.replace('http', 'ws')}/api/v3${path}`)
  const messages: Json[] = []
  socket.onmessage = ({ data }) => messages.push(JSON.parse(String(data)))
  const closed = new Promise<number>((done) => (socket.onclose = ({ code }) => done(code)))
  await new Promise((done) => (socket.onopen = done))
  socket.send(JSON.stringify({ type: 'auth', token: bearer }))
  return { socket, messages, closed }
}

test('the life of a tracker: keys, points, fences, deletion, and the same one anew', {
  timeout: 900_000,
}, async (t) => {
  const { service, token, post, get } = await open(t)
  const group = (await post('/geofence-group', { name: 'g' })).data
  const fence = (await post('/geofence', { name: 'home', geofenceGroupId: group._id, geometry: square(21, 52) })).data
  const made = await post('/tracker', { name: 'Bus', kind: 'vehicle', externalId: 'bus-1' })
  const { _id, deviceKey } = made.data
  t.match(deviceKey, new RegExp(`^${_id}\\.`), 'the device key is told once')
  t.notOk('deviceKey' in (await get(`/tracker/${_id}`)).data)

  const now = Date.now()
  const at = (ms: number): string => new Date(now - ms).toISOString()
  const point = (ms: number, lng: number) => ({ recordedAt: at(ms), lat: 52, lng })
  const bulk = await post(
    '/location-history/bulk',
    { points: [point(3 * MINUTE, 20.5), point(2 * MINUTE, 21), { recordedAt: at(MINUTE), lat: 95, lng: 21 }] },
    deviceKey,
  )
  t.match(
    bulk.data,
    { accepted: 2, rejected: [{ index: 2, code: 'invalid', message: /lat/ }] },
    'one bad point never loses its neighbours',
  )
  await until('the entry', async () => (await get('/geofence-events')).data.length === 1)
  t.match((await get('/geofence-events')).data, [
    { type: 'entry', trackerId: _id, geofenceId: fence._id, at: at(2 * MINUTE), cause: 'point', point: { lng: 21 } },
  ])
  await until('the live position', async () => (await get('/live-positions')).data.length === 1)
  t.match((await get('/live-positions')).data, [{ trackerId: _id, name: 'Bus', lng: 21, status: 'online' }])

  const { socket, messages, closed } = await socketOf(service, '/ingest', deviceKey)
  await until('ready', () => messages.some((message) => message.type === 'ready'))
  socket.send(JSON.stringify({ type: 'points', seq: 1, points: [point(MINUTE, 21.001)] }))
  await until('the acknowledgement', () => messages.some((message) => message.type === 'ack' && message.seq === 1))
  await ask(service, 'DELETE', `/tracker/${_id}`, { token })
  t.equal(await closed, 4401, 'deleting a tracker closes its sockets')
  await until('the leave', async () => (await get('/geofence-events')).data.length === 2)
  t.match((await get('/geofence-events')).data[0], { type: 'leave', cause: 'tracker' })
  await until('its live position to be forgotten', async () => (await get('/live-positions')).data.length === 0)
  await until(
    'its history, which is kept',
    async () => (await allRows(service, '/location-histories', token)).length === 3,
  )
  t.equal(
    (await call(service, 'POST', '/location-history/bulk', { token: deviceKey, body: { points: [point(0, 21)] } }))
      .status,
    401,
    'its key is gone',
  )

  const anew = (await post('/tracker', { name: 'Bus again', kind: 'vehicle', externalId: 'bus-1' })).data
  t.equal(anew._id, _id, 'the same external id is the same tracker')
  await post('/location-history/bulk', { points: [point(0, 21.002)] }, anew.deviceKey)
  await until(
    'a first fix inside is an entry',
    async () => (await get('/geofence-events?type=entry')).data.length === 2,
  )
})

test('edits of a fence move trackers in and out, at the edit', { timeout: 900_000 }, async (t) => {
  const { service, token, post, get } = await open(t)
  const group = (await post('/geofence-group', { name: 'g' })).data
  const key = (await post('/ingest-key', { name: 'k', autoCreate: true })).data.key
  await post(
    '/location-history/bulk',
    { points: [{ externalId: 'a', recordedAt: new Date().toISOString(), lat: 52, lng: 21 }] },
    key,
  )
  await until('the position', async () => (await get('/live-positions')).data.length === 1)
  const fence = (await post('/geofence', { name: 'late', geofenceGroupId: group._id, geometry: square(21, 52) })).data
  const types = async (): Promise<string[]> =>
    (await get('/geofence-events')).data.map(({ type, cause }: { type: string; cause: string }) => `${type} ${cause}`)
  await until('the entry', async () => (await types()).length === 1)
  await ask(service, 'PATCH', `/geofence/${fence._id}`, { token, body: { isActive: false } })
  await until('the leave', async () => (await types()).length === 2)
  await ask(service, 'PATCH', `/geofence/${fence._id}`, { token, body: { isActive: true } })
  await until('in again', async () => (await types()).length === 3)
  await ask(service, 'PATCH', `/geofence/${fence._id}`, { token, body: { geometry: square(30, 10) } })
  await until('out again', async () => (await types()).length === 4)
  t.same(await types(), ['leave geofence', 'entry geofence', 'leave geofence', 'entry geofence'], 'newest first')
  t.equal(
    (await call(service, 'DELETE', `/geofence-group/${group._id}`, { token })).status,
    409,
    'a group with geofences stays',
  )
  const test = await post(`/geofence/${fence._id}/backtest`, { from: Date.now() - MINUTE, to: Date.now() + MINUTE })
  t.same(test.data, [], 'the back-test of a fence elsewhere finds nothing')
})

test('trips: explicit ones with their token, detected ones from movement to rest', { timeout: 900_000 }, async (t) => {
  const { service, post, get } = await open(t)
  const key = (await post('/ingest-key', { name: 'k', autoCreate: true })).data.key
  const start = Date.now() - 60 * MINUTE
  const at = (minutes: number): string => new Date(start + minutes * MINUTE).toISOString()
  const explicit = await post(
    '/location-history/bulk',
    {
      points: [
        { externalId: 'e', recordedAt: at(0), lat: 52, lng: 21, trip: 'start' },
        { externalId: 'e', recordedAt: at(1), lat: 52.01, lng: 21 },
        { externalId: 'e', recordedAt: at(2), lat: 52.02, lng: 21, trip: 'finish' },
      ],
    },
    key,
  )
  const [{ token: trackingToken, trackerId }] = explicit.data.trackingTokens
  await until('the trip', async () => (await get(`/trips?trackerId=${trackerId}`)).data[0]?.finishedAt)
  const [trip] = (await get(`/trips?trackerId=${trackerId}`)).data
  t.match(trip, { trackerId, trackingToken, startedAt: at(0), finishedAt: at(2) })
  t.ok(Math.abs(trip.distance - 2224) < 10, `two hundredths of a degree are 2.2 km (${trip.distance})`)
  const tracking = (await get(`/location-history/tracking/${trackingToken}`)).data
  t.match(tracking.trip, { _id: trip._id, state: 'finished' })
  t.equal(tracking.points.length, 3, 'a finished trip has all of its points')

  const drive = Array.from({ length: 30 }, (_, minute) => ({
    externalId: 'd',
    recordedAt: at(minute),
    lat: 52 + Math.min(Math.max(minute - 5, 0), 10) * 0.005,
    lng: 21,
  }))
  await post('/location-history/bulk', { points: drive }, key)
  await until('the detected trip', async () => (await get('/trips?state=finished')).data.length === 2)
  const detected = (await get('/trips?state=finished')).data.find(
    (one: { trackerId: string }) => one.trackerId !== trackerId,
  )
  t.match(detected, { startedAt: at(6), finishedAt: at(15) }, 'from the first point over 100 m away until it rests')
  t.equal(
    (
      await call(service, 'GET', `/location-history/tracking/${trackingToken.slice(0, -2)}xx`, {
        token: (await signUp(service)).token,
      })
    ).status,
    404,
  )
})

test('a repeated request under its key, versions, and what may be written back', { timeout: 900_000 }, async (t) => {
  const { service, token, get } = await open(t)
  const body = { name: 'once', lat: 1, lng: 2 }
  const send = (content: object) =>
    call(service, 'POST', '/hub', { token, body: content, headers: { 'idempotency-key': 'k1' } })
  const first = await send(body)
  const again = await send(body)
  t.equal(first.status, 201)
  t.same(again.json, first.json, 'the first answer again')
  t.equal((await send({ ...body, name: 'other' })).status, 422)
  t.equal((await get('/hubs?q=once')).total, 1)

  const hub = first.json.data
  const put = await call(service, 'PUT', `/hub/${hub._id}/`, { token, body: { ...hub, name: 'written back' } })
  t.match(
    put.json,
    { status: true, data: { name: 'written back', version: 2 } },
    'what was read may be written back, also at the path with a slash',
  )
  t.match(await call(service, 'PATCH', `/hub/${hub._id}`, { token, body: { name: 'x', version: 1 } }), {
    status: 409,
    json: { code: 'stale_version', version: 2 },
  })
  t.match(
    await call(service, 'PATCH', `/hub/${hub._id}`, { token, body: { name: 'x' }, headers: { 'if-match': '"1"' } }),
    { status: 409 },
  )
  t.match(await call(service, 'POST', '/hub', { token, body: { ...body, colour: 'red' } }), {
    status: 400,
    json: { errors: [{ path: '/colour' }] },
  })
  const client = { _id: '018f0000-0000-7000-8000-000000000001', ...body }
  t.equal((await call(service, 'POST', '/hub', { token, body: client })).status, 201)
  t.ok(
    (await call(service, 'POST', '/hub', { token, body: client })).status < 300,
    'an id of the client makes the create idempotent',
  )
  t.equal((await call(service, 'POST', '/hub', { token, body: { ...client, name: 'y' } })).status, 409)
  const keyed = (await call(service, 'POST', '/ingest-key', { token, body: { name: 'k', hubId: hub._id } })).json.data
  t.match(
    await call(service, 'DELETE', `/hub/${hub._id}`, { token }),
    { status: 409, json: { errors: [{ path: `/ingest-key/${keyed._id}` }] } },
    'a hub that an ingest key gives stays',
  )
  await call(service, 'DELETE', `/ingest-key/${keyed._id}`, { token })
  for (const list of [
    'hubs',
    'teams',
    'vehicles',
    'roles',
    'users',
    'trackers',
    'ingest-keys',
    'geofence-groups',
    'geofences',
    'automations',
  ])
    t.equal((await get(`/${list}?name=nobody`)).total, 0, `${list} filter by a field's name`)
  const page = await call(service, 'GET', '/hubs?limit=1&sortBy=name&sortOrder=desc&fields=name', { token })
  t.match(page.headers.link, /rel="next"/)
  t.same(Object.keys(page.json.data[0]).sort(), ['_id', 'name'])
})

test('tokens: refresh revokes, live sockets follow, logout ends', { timeout: 900_000 }, async (t) => {
  const { service, token } = await open(t)
  const live = await socketOf(service, '/live', token)
  live.socket.send(JSON.stringify({ type: 'subscribe', id: 's', channels: ['positions'] }))
  await until('the snapshot', () => live.messages.some((message) => message.type === 'snapshot'))
  const refresh = (key: string) =>
    call(service, 'POST', '/auth/refresh', { token, headers: { 'idempotency-key': key } })
  const fresh = (await refresh('lost')).json.token
  t.equal((await refresh('lost')).json.token, fresh, 'an answer that got lost is answered again')
  t.equal((await refresh('other')).status, 401, 'and nothing else')
  t.match(await call(service, 'GET', '/user', { token }), { status: 401, headers: { 'www-authenticate': /Bearer/ } })
  live.socket.send(JSON.stringify({ type: 'auth', token: fresh }))
  t.equal((await call(service, 'GET', '/user', { token: fresh })).status, 200)
  await ask(service, 'POST', '/auth/logout', { token: fresh, body: {} })
  t.equal(await live.closed, 4401, 'a revoked token closes its sockets')
})
