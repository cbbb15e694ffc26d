import { test, type Test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { openSocket } from '../support/open-socket.ts'
import { ask, call, type Json, type Service, signUp, startService, until } from '../support/service.ts'

const TRACKERS = 12
const POINTS = 40
const FEW_POINTS = 'dist/test/support/few-points-child.js'

/** Trackers that go to and fro over the edge of a fence. */
const walks = (start: number): Json[] =>
  Array.from({ length: TRACKERS }, (_, tracker) =>
    Array.from({ length: POINTS }, (_, i) => ({
      externalId: `t${tracker}`,
      recordedAt: start + i * 10_000 + tracker,
      lat: 52 + ((i + tracker) % 5) * 0.003,
      lng: 21,
    })),
  ).flat()

const open = async (t: Test) => {
  const folder = folderOf(t)
  let service = await startService(folder, [], 0, FEW_POINTS)
  t.teardown(() => service.kill())
  const owner = await signUp(service)
  const { token } = owner
  const make = async (path: string, body: Json): Promise<Json> =>
    (await ask(service, 'POST', path, { token, body })).data
  const group = await make('/geofence-group', { name: 'Yards', debounce: { fixes: 2 } })
  const fence = await make('/geofence', {
    name: 'Yard',
    geofenceGroupId: group._id,
    center: { lat: 52, lng: 21 },
    radius: 500,
  })
  const { key } = await make('/ingest-key', { name: 'Gateway', autoCreate: true })
  const start = Date.now() - POINTS * 10_000
  await ask(service, 'POST', '/location-history/bulk', { token: key, body: { points: walks(start) } })
  await until(
    'the history',
    async () =>
      (await ask(service, 'GET', '/location-histories?limit=1000', { token })).data.length === TRACKERS * POINTS,
  )
  const path = `/geofence/${fence._id}/backtest`
  const everything = { from: start, to: Date.now(), debounce: { fixes: 1 } }
  return {
    token,
    owner,
    fence,
    path,
    everything,
    start,
    make,
    service: (): Service => service,
    again: async (entry?: string): Promise<void> => void (service = await startService(folder, [], 0, entry)),
    post: (body: Json, as = token) => call(service, 'POST', path, { token: as, body }),
    get: (of: string, as = token) => call(service, 'GET', path + of, { token: as }),
  }
}

/** All pages of a result. */
const resultOf = async (get: (of: string) => Promise<{ json: Json }>, id: string, limit: number): Promise<Json[]> => {
  const rows: Json[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { json } = await get(`/${id}/transitions?limit=${limit}${cursor && `&cursor=${cursor}`}`)
    rows.push(...json.data)
    cursor = json.nextCursor
  }
  return rows
}

test('a back-test over too many points is a job: live reports, paged result, once, through SIGKILL, as the direct answer has it', {
  timeout: 900_000,
}, async (t) => {
  const { token, path, everything, start, service, again, post, get } = await open(t)
  const trackerId = (await ask(service(), 'GET', '/trackers', { token })).data[0]._id
  const few = await post({ ...everything, trackerIds: [trackerId], to: start + 45_000 })
  t.equal(few.status, 200, 'few points are answered at once')
  t.ok(few.json.data.length > 0)

  const live = await openSocket(service(), 'live', token)
  live.send({ type: 'subscribe', id: 's', channels: ['job'] })
  const { cursor } = await live.heard(({ type }) => type === 'snapshot')
  const asked = await post(everything)
  t.equal(asked.status, 202)
  const job = asked.json.data
  t.match(job, { status: 'queued', processed: 0, total: TRACKERS * POINTS, debounce: { fixes: 1 } })
  t.equal(asked.headers.location, `/api/v3${path}/${job._id}`)
  const completed = await live.heard(({ event }) => event?.status === 'completed')
  const told = live.messages.filter(({ type }) => type === 'event')
  t.same([...new Set(told.map(({ event }) => event.status))], ['queued', 'processing', 'completed'])
  t.match(told[0], { id: 's', channel: 'job', cursor: String })
  await until('it to be listed', async () => (await get('s?status=completed')).json.total === 1)
  t.same(told[0].event, job, 'live shows the job as the answer does')
  t.same((await get(`/${job._id}`)).json.data, completed.event, 'and as its GET does')
  t.match(completed.event, { processed: TRACKERS * POINTS, total: TRACKERS * POINTS })
  const whole = (await get(`/${job._id}/transitions`)).json
  t.match(whole, { page: null, limit: 500, nextCursor: null })
  t.equal(whole.data.length, completed.event.transitions)
  t.ok(whole.data.length > TRACKERS)
  t.same(await resultOf(get, job._id, 7), whole.data, 'page by page the same')
  t.equal((await get(`/${job._id}/transitions?cursor=x`)).status, 400)
  t.same(
    (await get('s?status=completed&sortBy=createdAt')).json,
    { status: true, data: [completed.event], total: 1, page: 1, limit: 20, nextCursor: null },
    'it is listed',
  )
  live.close()

  const second = (await post({ ...everything, debounce: undefined })).json.data
  await service().kill()
  await again(FEW_POINTS)
  await until('the other one', async () => (await get(`/${second._id}`)).json.data.status === 'completed')
  const resumed = await openSocket(service(), 'live', token)
  resumed.send({ type: 'subscribe', id: 's', channels: ['job'], since: cursor })
  await resumed.heard(({ type }) => type === 'snapshot')
  const since = resumed.messages.filter(({ type }) => type === 'event')
  t.same(since.slice(0, told.length), told, 'what was told before the crash is told again by since')
  const others = since.slice(told.length).map(({ event }) => event)
  t.ok(others.every(({ _id }) => _id === second._id))
  t.equal(others.filter(({ status }) => status === 'completed').length, 1, 'it was completed once')
  t.match(others[0], { debounce: { fixes: 2 } }, "what was not asked for is the group's")
  resumed.close()

  await service().stop()
  await again()
  const direct = await post(everything)
  t.equal(direct.status, 200)
  t.same(
    (await get(`/${job._id}/transitions`)).json.data,
    direct.json.data,
    'the result is the direct answer, in its order',
  )
  t.same(
    (await get(`/${second._id}/transitions`)).json.data,
    (await post({ ...everything, debounce: undefined })).json.data,
  )
})

test('jobs belong to whoever asked and to those who see every hub; deleting ends them', {
  timeout: 900_000,
}, async (t) => {
  const { token, owner, path, everything, service, post, get, make } = await open(t)
  const stranger = await signUp(service(), 'Stranger')
  const role = await make('/role', { name: 'Watcher', permissions: ['view/geofence', 'view/tracker'] })
  const blind = await make('/role', { name: 'Blind', permissions: ['view/hub'] })
  const userOf = async (email: string, roleId: string): Promise<string> => {
    await make('/user', { name: 'User', email, roleId, hubId: [owner.hubId], password: owner.password })
    return (await ask(service(), 'POST', '/auth/login', { body: { email, password: owner.password } })).token
  }
  const watcher = await userOf(`watcher.${owner.email}`, role._id)
  const without = await userOf(`blind.${owner.email}`, blind._id)
  const sockets = await Promise.all(
    [watcher, without, stranger.token, token].map((as) => openSocket(service(), 'live', as)),
  )
  for (const socket of sockets) {
    socket.send({ type: 'subscribe', id: 's', channels: ['job'] })
    await socket.heard(({ type }) => type === 'snapshot')
  }
  const { _id } = (await post(everything)).json.data
  await sockets[3].heard(({ event }) => event?.status === 'completed')
  for (const of of [`/${_id}`, `/${_id}/transitions`]) {
    t.equal((await get(of)).status, 200)
    t.equal((await get(of, watcher)).status, 404, `${of}: not of a user who has one hub`)
    t.equal((await get(of, stranger.token)).status, 404, `${of}: not of another organization`)
    t.equal((await get(of, without)).status, 403, `${of}: not without the permission`)
  }
  t.match((await get('s', watcher)).json, { data: [], total: 0 }, 'nor listed for them')
  t.equal((await get('s', stranger.token)).status, 404)
  t.equal((await call(service(), 'DELETE', `${path}/${_id}`, { token: stranger.token })).status, 404)
  t.equal((await call(service(), 'DELETE', `${path}/${_id}`, { token: watcher })).status, 404)
  t.match(
    await post(everything, watcher),
    { status: 200, json: { data: [] } },
    'whoever sees no tracker has nothing to read',
  )
  t.equal((await call(service(), 'DELETE', `${path}/${_id}`, { token })).status, 200)
  t.equal((await get(`/${_id}`)).status, 404)
  t.equal((await get(`/${_id}/transitions`)).status, 404)
  for (const socket of sockets.slice(0, 3))
    t.same(
      socket.messages.filter(({ type }) => type === 'event' || type === 'error'),
      [],
      'nobody else was told',
    )
  for (const socket of sockets) socket.close()
})
