import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Test, test } from 'tap'
import { askControl } from '../../src/cli/control-socket.ts'
import { folderOf } from '../support/folder-of.ts'
import { demoTrace } from '../support/reports-world.ts'
import { allPages, ask, call, type Json, type Service, signUp, startService, until } from '../support/service.ts'
import type { PlainPoint } from '../support/trace-batches.ts'

const PASSWORD = 'Correct-horse-9-battery'
const MINUTE_MS = 60_000
/** Between any two places. */
const ROAD = { meters: 4_200, seconds: 600 }

/** A server of roads; it counts its questions, and fails while it is told to. */
const openRoads = async (t: Test) => {
  const roads = { asked: 0, fails: false, url: '' }
  const server = createServer((_request, response) => {
    roads.asked++
    if (roads.fails) return void response.writeHead(500).end()
    const [distances, durations] = [ROAD.meters, ROAD.seconds].map((one) => [0, one].map((cell) => [cell, one - cell]))
    response.end(JSON.stringify({ code: 'Ok', distances, durations }))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  t.teardown(() => server.close())
  roads.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return roads
}

/** What two buses of the demo drove, as if it had just been. */
const twoTracks = (): Json[][] => {
  const byTracker = new Map<string, PlainPoint[]>()
  for (const point of demoTrace())
    byTracker.set(point.trackerId, [...(byTracker.get(point.trackerId) ?? []), point].slice(0, 300))
  const longest = [...byTracker.values()].sort((a, b) => b.length - a.length).slice(0, 2)
  const shiftMs = Date.now() - MINUTE_MS - Math.max(...longest.flat().map(({ recordedAt }) => recordedAt))
  return longest.map((points) =>
    points.map(({ recordedAt, latE7, lngE7 }) => ({
      recordedAt: recordedAt + shiftMs,
      lat: latE7 / 1e7,
      lng: lngE7 / 1e7,
    })),
  )
}

const openDrivers = async (service: Service) => {
  const { token, hubId, email } = await signUp(service, 'Couriers')
  const get = async (path: string, by = token): Promise<Json> => ask(service, 'GET', path, { token: by })
  const make = async (path: string, body: object, by = token): Promise<Json> =>
    (await ask(service, 'POST', path, { token: by, body })).data
  const roleId = (await get('/roles?key=fieldUser')).data[0]._id
  const driver = async (name: string, points: Json[]) => {
    const address = `${name}.${email}`
    const { _id } = await make('/user', { name, email: address, password: PASSWORD, roleId, hubId: [hubId] })
    const login = await ask(service, 'POST', '/auth/login', { body: { email: address, password: PASSWORD } })
    const sent = points.length === 0 ? {} : await make('/location-history/bulk', { points }, login.token)
    return { _id, token: login.token as string, points, sent }
  }
  return { token, hubId, get, make, driver }
}

test('a field user reads their own track, trips and position by real points, and nobody else’s', {
  timeout: 900_000,
}, async (t) => {
  const service = await startService(folderOf(t))
  t.teardown(() => service.kill())
  const { get, driver, token } = await openDrivers(service)
  const [first, second] = twoTracks()
  const [ada, bob] = [await driver('ada', first), await driver('bob', second)]
  t.same([ada.sent.accepted, bob.sent.accepted], [first.length, second.length])
  const path = '/location-histories?order=asc'
  const history = (by: string) => allPages(service, path, by)
  await until('both tracks', async () => (await history(token)).length === first.length + second.length)
  await until('trips of both', async () => (await get('/trips')).total >= 2)
  await until('both positions', async () => (await get('/live-positions')).total === 2)
  const all = { trackers: (await get('/trackers')).data, trips: (await get('/trips')).data }
  for (const [one, other] of [
    [ada, bob],
    [bob, ada],
  ]) {
    const own = all.trackers.find(({ userId }: Json) => userId === one._id)._id
    const others = all.trackers.find(({ userId }: Json) => userId === other._id)._id
    const shown = (await history(one.token)).map(({ recordedAt, lat, lng }: Json) => ({
      recordedAt: Date.parse(recordedAt),
      lat,
      lng,
    }))
    t.same(
      shown,
      [...one.points].sort((a, b) => a.recordedAt - b.recordedAt),
      'their whole track, as it was sent',
    )
    const trips = (await get('/trips', one.token)).data
    t.same(
      trips.map(({ _id }: Json) => _id),
      all.trips.filter(({ trackerId }: Json) => trackerId === own).map(({ _id }: Json) => _id),
    )
    t.ok(trips.length > 0)
    t.match(await get(`/trip/${trips[0]._id}`, one.token), { data: { trackerId: own } })
    const last = one.points.reduce((a, b) => (a.recordedAt > b.recordedAt ? a : b))
    t.match(await get('/live-positions', one.token), {
      total: 1,
      data: [{ trackerId: own, lat: last.lat, lng: last.lng }],
    })
    for (const filter of [`trackerId=${others}`, `userId=${other._id}`]) {
      t.same((await get(`/location-histories?${filter}`, one.token)).data, [], filter)
      t.same((await get(`/trips?${filter}`, one.token)).data, [])
    }
    const foreign = all.trips.find(({ trackerId }: Json) => trackerId === others)._id
    for (const absent of [`/trip/${foreign}`, `/tracker/${others}`])
      t.equal((await call(service, 'GET', absent, { token: one.token })).status, 404, absent)
    for (const refused of ['/reports/summary?from=0&to=1', '/geofence-events'])
      t.equal((await call(service, 'GET', refused, { token: one.token })).status, 403, refused)
  }
})

test('an arrival is by the road of a server while it answers, and a share that has ended is swept away', {
  timeout: 900_000,
}, async (t) => {
  const roads = await openRoads(t)
  const service = await startService(folderOf(t), ['--osrm', roads.url])
  t.teardown(() => service.kill())
  const { hubId, get, make, driver } = await openDrivers(service)
  const ada = await driver('ada', [])
  const { _id: flowId } = await make('/flow', { name: 'Parcel', steps: [{ id: 's', name: 'S', components: [] }] })
  const body = { flowId, hubId, title: 'T', lat: 52.25, lng: 21, assigneeIds: [ada._id] }
  const task = await make('/task', body)
  const share = await make('/share', { taskId: task._id })
  const short = await make('/share', { taskId: task._id, expiresAt: new Date(Date.now() + 5_000).toISOString() })
  await make(`/task/${task._id}/start`, {}, ada.token)
  const recordedAt = Date.now()
  await make('/location-history/bulk', { points: [{ recordedAt, lat: 52.2, lng: 21 }] }, ada.token)
  const eta = async (): Promise<Json> => (await call(service, 'GET', `/follow/${share.token}`)).json.data.eta
  // A way that came too late, on a slow machine, is asked for again ten seconds later.
  await until('a way by road', async () => (await eta())?.distanceMeters === ROAD.meters)
  const arrival = Date.parse((await eta()).at)
  t.ok(Math.abs(arrival - recordedAt - ROAD.seconds * 1_000) <= 1, 'driving time from the last position')
  t.match(await (await fetch(`${service.url}/follow/${share.token}`)).text(), /4\.2\skm/)
  const asked = roads.asked
  for (let n = 0; n < 20; n++) await eta()
  t.ok(roads.asked < asked + 10, 'many who look ask once in ten seconds')
  roads.fails = true
  const straight = 0.05 * (Math.PI / 180) * 6_371_008.8 * 1.3
  await until('the great circle', async () => Math.abs((await eta()).distanceMeters - straight) <= 1)

  const listed = async (): Promise<string[]> => (await get('/shares')).data.map(({ _id }: Json) => _id)
  await until('its end', async () => (await call(service, 'GET', `/follow/${short.token}`)).status === 404)
  t.ok((await listed()).includes(short._id), 'one that has ended is there until the next sweep')
  t.match(await askControl(service.data, { command: 'sweep' }), { ok: true })
  await until('the sweep', async () => (await listed()).length === 1)
  t.same(await listed(), [share._id])
  const swept = (await get(`/audit-log?resourceId=${short._id}`)).data[0]
  t.match(swept, { action: 'deleted', noun: 'share' })
  t.equal((await call(service, 'GET', `/follow/${share.token}`)).status, 200, 'the other goes on')
})
