import { join } from 'node:path'
import { test } from 'tap'
import { startEngines } from '../support/engine-servers.ts'
import { folderOf } from '../support/folder-of.ts'
import { openSocket, type OpenSocket } from '../support/open-socket.ts'
import { withoutRedis } from '../support/redis-server.ts'
import { ringOf } from '../support/ring.ts'
import {
  allPages,
  allRows,
  ask,
  call,
  type Json,
  type Service,
  signUp,
  startService,
  until,
} from '../support/service.ts'

const EVENTS = ['geofence', 'task']
const TURNS = 8

const eventsOf = ({ messages }: OpenSocket): Json[] => messages.filter(({ type }) => type === 'event')
const shownBy = ({ messages }: OpenSocket): Set<string> =>
  new Set(messages.flatMap(({ positions = [] }) => positions.map(({ trackerId }: Json) => trackerId)))

/** What an event says apart from others: a transition, or a task at one of its versions. */
const keyOf = ({ channel, event }: Json): string =>
  channel === 'task' ? `${event._id} ${event.title}` : `${event._id} ${event.type}`

test('a dashboard sees what came through another process, and hears each event once when its own dies and it goes on there', {
  skip: withoutRedis,
  timeout: 900_000,
}, async (t) => {
  const folder = folderOf(t)
  const { flags } = await startEngines(t, folder)
  const start = async (name: string): Promise<Service> => {
    const service = await startService(join(folder, name), [
      ...flags,
      ...['--keys', join(folder, 'keys.json'), '--partitions', '4'],
    ])
    t.teardown(() => service.kill())
    return service
  }
  const there = await start('there')
  const here = await start('here')
  const { token } = await signUp(here)
  const stranger = await signUp(here, 'Others')
  const post = async (path: string, body: object, as = token): Promise<Json> =>
    (await ask(here, 'POST', path, { token: as, body })).data
  const group = await post('/geofence-group', { name: 'g' })
  const geometry = { type: 'Polygon', coordinates: [ringOf(9.99, 9.99, 10.01, 10.01)] }
  await post('/geofence', { name: 'home', geofenceGroupId: group._id, geometry })
  const { key } = await post('/ingest-key', { name: 'k', autoCreate: true })
  const foreign = await post('/ingest-key', { name: 'k', autoCreate: true }, stranger.token)
  const hub = await post('/hub', { name: 'Yard', lat: 10, lng: 10 })
  const flow = await post('/flow', { name: 'Round', steps: [{ id: 'one', name: 'One', components: [] }] })

  let turn = 0
  const begunMs = Date.now() - 3_600_000
  /** A device goes in or out, and a task is renamed: through whoever takes it. */
  const happen = async (door: Service): Promise<void> => {
    turn++
    const points = Array.from({ length: 4 }, (_, i) => ({
      externalId: `van-${i}`,
      recordedAt: begunMs + turn * 1_000,
      lat: turn % 2 === 0 ? 11 : 10,
      lng: 10,
    }))
    const send = (as: string) => call(door, 'POST', '/location-history/bulk', { token: as, body: { points } })
    for (const as of [key, foreign.key]) await until('points to be taken', async () => (await send(as)).status === 200)
    const rename = () =>
      call(door, 'PATCH', `/task/${task._id}`, { token, body: { title: `T${turn}` } }).then(({ status }) => status)
    await until('the task to be renamed', async () => (await rename()) === 200)
  }
  const task = await post('/task', { flowId: flow._id, hubId: hub._id, title: 'T0' })

  const before = await openSocket(there, 'live', token)
  before.send({ type: 'subscribe', id: 's', channels: ['positions', ...EVENTS] })
  const other = await openSocket(there, 'live', stranger.token)
  other.send({ type: 'subscribe', id: 's', channels: ['positions', ...EVENTS] })
  for (const socket of [before, other]) await socket.heard(({ type }) => type === 'snapshot')
  for (let i = 0; i < TURNS; i++) await happen(here)
  await until('positions', () => shownBy(before).size === 4 && shownBy(other).size === 4)
  const own = (await allPages(here, '/trackers', token)).map(({ _id }) => _id).sort()
  t.same([...shownBy(before)].sort(), own, 'all that came through the other process')
  t.same(
    [...shownBy(other)].filter((id) => own.includes(id)),
    [],
    'and nothing of another organization',
  )
  await until('events', () => eventsOf(before).length >= TURNS * 4)
  t.same(
    eventsOf(other).filter(({ event }) => own.includes(event.trackerId) || event._id === task._id),
    [],
    'nor an event of it',
  )

  // The other process stands while more happens: it is behind what the client has seen.
  here.process.kill('SIGSTOP')
  for (let i = 0; i < 2; i++) await happen(there)
  await there.kill()
  await before.closed
  const heard = eventsOf(before)
  const { cursor } = before.messages.findLast((message) => message.cursor !== undefined) as Json
  here.process.kill('SIGCONT')
  const after = await openSocket(here, 'live', token)
  after.send({ type: 'subscribe', id: 's', channels: ['positions', ...EVENTS], since: cursor })
  await after.heard(({ type }) => type === 'snapshot')
  for (let i = 0; i < 2; i++) await happen(here)

  const decided = async (): Promise<Json[]> => allRows(here, '/geofence-events', token)
  await until('all transitions', async () => (await decided()).length === turn * 4)
  const all = (): string[] => [...heard, ...eventsOf(after)].map(keyOf)
  await until('all events', () => new Set(all()).size >= turn * 5)
  t.notOk(after.messages.some(({ type }) => type === 'gap'))
  const expected = [
    ...(await decided()).map(({ _id, type }) => `${_id} ${type}`),
    ...Array.from({ length: turn }, (_, i) => `${task._id} T${i + 1}`),
  ]
  t.same(all().sort(), expected.sort(), 'each event once, over both')
  t.same([...shownBy(after)].sort(), own)
  for (const socket of [other, after]) socket.close()
})
