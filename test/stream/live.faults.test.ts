import { test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { openSocket, type OpenSocket } from '../support/open-socket.ts'
import { allRows, ask, type Json, signUp, startService, until } from '../support/service.ts'
import { openReceiver } from '../support/webhook-receiver.ts'
import { ringOf } from '../support/ring.ts'

const SECOND = 1_000
const square = (lng: number, lat: number, half = 0.01) => ({
  type: 'Polygon',
  coordinates: [ringOf(lng - half, lat - half, lng + half, lat + half)],
})

const eventsOf = ({ messages }: OpenSocket, id: string): Json[] =>
  messages.filter((message) => message.type === 'event' && message.id === id).map(({ event }) => event)

test('events are as their GET answers them, and thousands of them resume, also after a SIGKILL', {
  timeout: 900_000,
}, async (t) => {
  const data = folderOf(t)
  let service = await startService(data)
  t.teardown(() => service.kill())
  const { token } = await signUp(service)
  const post = (path: string, body: object, as = token): Promise<Json> =>
    ask(service, 'POST', path, { token: as, body })
  const group = (await post('/geofence-group', { name: 'g' })).data
  const fence = (await post('/geofence', { name: 'home', geofenceGroupId: group._id, geometry: square(10, 10) })).data
  const key = (await post('/ingest-key', { name: 'k', autoCreate: true })).data.key
  const receiver = await openReceiver(t)
  const hook = (
    await post('/automation', {
      name: 'h',
      event: 'onFinishTrip',
      automationType: 'webhook',
      automationDetails: { url: receiver.url },
    })
  ).data
  receiver.secrets.set(hook._id, hook.automationDetails.secret)
  const live = await openSocket(service, 'live', token)
  live.send({ type: 'subscribe', id: 'runs', channels: ['automation'] })
  live.send({ type: 'subscribe', id: 's', channels: ['geofence', 'trip'] })
  const { cursor } = await live.heard(({ type, id }) => type === 'snapshot' && id === 's')

  const start = Date.now() - 12 * 3600 * SECOND
  const full = {
    accuracy: 3.456,
    altitude: -12.3456,
    speed: 3.456,
    heading: 12.34,
    battery: 0.5,
    attributes: { door: 'open', count: 2 },
  }
  const points = [
    { externalId: 'van', recordedAt: start, lat: 10, lng: 10, ...full, trip: 'start' },
    { externalId: 'van', recordedAt: start + SECOND, lat: 11, lng: 10, ...full, trip: 'finish' },
  ]
  await post('/location-history/bulk', { points }, key)
  await ask(service, 'PATCH', `/geofence/${fence._id}`, { token, body: { geometry: square(10, 11) } })
  await until('all events', () => eventsOf(live, 's').length === 5)
  let rows: Json[] = []
  await until('the transitions', async () => (rows = await allRows(service, '/geofence-events', token)).length === 3)
  for (const row of rows)
    t.same(
      eventsOf(live, 's').find(({ _id }) => _id === row._id),
      row,
      `${row.type} by ${row.cause}`,
    )
  const finished = eventsOf(live, 's').find(({ state }) => state === 'finished')
  const trip = async (): Promise<Json> => (await ask(service, 'GET', `/trip/${finished._id}`, { token })).data
  await until('its end in the history', async () => (await trip()).state === 'finished')
  t.same(finished, await trip(), 'the trip')
  await until('a run', () => eventsOf(live, 'runs').length > 0)
  const [owed] = eventsOf(live, 'runs')
  t.match(await ask(service, 'GET', `/automation-log/${owed._id}`, { token }), { data: { _id: owed._id } }, 'at once')
  await until('the run', () => eventsOf(live, 'runs').length === 2)
  const runs = eventsOf(live, 'runs')
  t.same(
    runs.map(({ status }) => status),
    ['pending', 'succeeded'],
  )
  const listed = async (): Promise<Json> => (await ask(service, 'GET', '/automation-log', { token })).data[0]
  await until('its end in the list', async () => (await listed()).status === 'succeeded')
  t.same(runs[1], await listed(), 'the run')

  const jumps = Array.from({ length: 9_000 }, (_, i) => ({
    externalId: 'jumper',
    recordedAt: start + (i + 2) * SECOND,
    lat: i % 2 === 0 ? 11 : 11.005,
    lng: i % 2 === 0 ? 10 : 12,
  }))
  await post('/location-history/bulk', { points: jumps }, key)
  await until('9,000 transitions', () => eventsOf(live, 's').filter(({ geofenceId }) => geofenceId).length === 9_003)
  live.close()
  const resumed = async (): Promise<void> => {
    const socket = await openSocket(service, 'live', token)
    for (const id of ['s', 't']) socket.send({ type: 'subscribe', id, channels: ['geofence'], since: cursor })
    socket.send({ type: 'subscribe', id: 'runs', channels: ['automation'], since: cursor })
    await socket.heard((message) => message.type === 'snapshot' && message.id === 'runs')
    t.same(eventsOf(socket, 'runs'), runs)
    for (const id of ['s', 't']) {
      await socket.heard((message) => message.type === 'snapshot' && message.id === id)
      const events = eventsOf(socket, id)
      t.equal(new Set(events.map(({ _id }) => _id)).size, 9_003, 'each event')
      t.equal(events.length, 9_003, 'once')
    }
    t.notOk(socket.messages.some(({ type }) => type === 'gap'))
    socket.close()
  }
  await resumed()
  await service.kill()
  service = await startService(data)
  await resumed()
})
