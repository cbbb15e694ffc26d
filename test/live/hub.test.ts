import { test, type Test } from 'tap'
import { openGappedLog } from '../support/gapped-log.ts'
import { transitionStream, type Decided, type Transition } from '../../src/features/transitions/events.ts'
import type { UserCaller } from '../../src/kernel/caller.ts'
import { encodeJson } from '../../src/kernel/event.ts'
import type { ChannelSocket } from '../../src/kit/http/channel.ts'
import { type LatestPoint, latestPointAt } from '../../src/features/locations/views.ts'
import type { TrackerFacts } from '../../src/features/trackers/views.ts'
import { encodeCursor } from '../../src/live/cursor.ts'
import { LiveHub } from '../../src/live/hub.ts'
import {
  liveChannel,
  MESSAGES_AT_ONCE,
  MESSAGES_PER_SECOND,
  SUBSCRIBES_AT_ONCE,
  SUBSCRIBES_PER_SECOND,
} from '../../src/live/client.ts'
import { callerWith } from '../support/callers.ts'
import { batchOf, type SimplePoint } from '../support/batches.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { folderOf } from '../support/folder-of.ts'

const callerOf = (changes: Partial<UserCaller> = {}): UserCaller =>
  callerWith(['view/location-history', 'view/geofence'], {
    organizationId: 'org',
    expiresAt: Number.MAX_SAFE_INTEGER,
    ...changes,
  })

// biome-ignore lint/suspicious/noExplicitAny: a message of any type
type Message = any

class FakeSocket implements ChannelSocket {
  address = '127.0.0.1'
  messages: Message[] = []
  closedWith: number | undefined
  buffered = 0
  /** While true nothing leaves the buffer. */
  stuck = false
  send(text: string): number {
    this.messages.push(JSON.parse(text))
    if (this.stuck) this.buffered += text.length
    return this.buffered
  }
  bufferedBytes(): number {
    return this.buffered
  }
  close(code: number): void {
    this.closedWith = code
  }
  take(): Message[] {
    return this.messages.splice(0)
  }
}

const decidedOf = (sourceRevision: number, decisions: Transition[]): Decided => ({
  sourceRevision,
  ordinal: 0,
  sourceLoggedAt: 0,
  decisions,
})

const eventOf = (n: number, decided: Decided) => ({
  id: `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`,
  type: 'decided.v1',
  data: encodeJson(decided),
  isJson: true,
  metadata: {},
})

const turn = (): Promise<void> => new Promise((resume) => setImmediate(resume))

const open = async (
  t: Test,
  {
    facts = {} as { [trackerId: string]: TrackerFacts },
    latest = [] as LatestPoint[],
    partitions = 2,
    isDown = (): boolean | Promise<boolean> => false,
  } = {},
) => {
  const clock = new FakeClock()
  const log = await openGappedLog({ path: folderOf(t), clock })
  t.teardown(() => log.close())
  const newHub = (): LiveHub =>
    new LiveHub({
      log,
      partitions,
      logMark: 7,
      ages: { staleAfterMs: 300_000, offlineAfterMs: 3_600_000 },
      clock,
      logger: { debug() {}, info() {}, warn() {}, error() {} },
      onConflated: () => {},
      sources: {
        latestPoints: async () => {
          if (await isDown()) throw new Error('the tables do not answer')
          return { points: each(latest), keptUpTo: {} }
        },
        factsOf: async () => [],
        trackers: async () => each(Object.entries(facts).map(([trackerId, one]) => ({ trackerId, facts: one }))),
        decode: () => {
          throw new Error('nothing to decode')
        },
        eventOf: (decision) => ({ ...decision }),
      },
      feeds: [],
    })
  const hub = newHub()
  let revision = -1
  const points = (list: SimplePoint[]): void => {
    revision++
    hub.positions.handle(
      { kind: 'points', partition: 0, revision, position: revision, batch: batchOf(list, clock.now()) },
      0,
    )
  }
  const connect = (caller = callerOf(), to = hub) => {
    const socket = new FakeSocket()
    const connection = liveChannel(to, () => true).open(socket, caller)
    const say = (message: object): void =>
      connection.message(new Uint8Array(Buffer.from(JSON.stringify(message))).buffer, false)
    return { socket, connection, say }
  }
  const settle = async (ms = 200): Promise<void> => {
    for (let i = 0; i < 20; i++) await turn()
    clock.advance(ms)
    await turn()
  }
  return { clock, log, hub, newHub, points, connect, settle }
}

async function* each<Item>(items: readonly Item[]): AsyncGenerator<Item> {
  yield* items
}

/** How many events of a client wait until its socket has room. */
const waitingIn = (connection: object): number =>
  Object.getOwnPropertyDescriptor(connection, 'outbox')?.value.awaiting.length

const named = (name: string, hubIds: string[] = []): TrackerFacts => ({ name, hubIds })
const BOX = [20, 52, 22, 53]

test('a snapshot, then only what moves in the box, and gone for what leaves it', async (t) => {
  const { points, connect, settle, clock } = await open(t, { facts: { a: named('A'), b: named('B') } })
  const { socket, say } = connect()
  say({ type: 'subscribe', id: 's', bbox: BOX, channels: ['positions'] })
  await settle()
  t.match(
    socket.take(),
    [{ type: 'snapshot', id: 's', positions: [], cursor: String }],
    'the snapshot of an empty fleet',
  )

  points([
    { trackerId: 'a', recordedAt: clock.now(), lat: 52.5, lng: 21 },
    { trackerId: 'b', recordedAt: clock.now(), lat: 10, lng: 10 },
  ])
  await settle()
  const [first] = socket.take()
  t.match(first, {
    type: 'positions',
    id: 's',
    positions: [{ trackerId: 'a', name: 'A', lat: 52.5, lng: 21, status: 'online' }],
  })
  t.equal(first.positions.length, 1, 'what is outside the box is not sent')

  points([{ trackerId: 'a', recordedAt: clock.now() + 1, lat: 0, lng: 0 }])
  await settle()
  t.match(socket.take(), [{ type: 'positions', positions: [], gone: ['a'] }], 'what left the box is named')
  points([{ trackerId: 'a', recordedAt: clock.now() + 2, lat: 1, lng: 1 }])
  await settle()
  t.same(socket.take(), [], 'it is named once')
})

test('only the newest position of an interval is sent, late and ahead points never', async (t) => {
  const { points, connect, settle, clock } = await open(t, { facts: { a: named('A') } })
  const { socket, say } = connect()
  say({ type: 'subscribe', id: 's', channels: ['positions'], interval: 1000 })
  await settle()
  socket.take()
  const at = clock.now()
  for (let i = 0; i < 5; i++) points([{ trackerId: 'a', recordedAt: at + i, lat: i, lng: 0 }])
  points([
    { trackerId: 'a', recordedAt: at - 1, lat: 50, lng: 0 },
    { trackerId: 'a', recordedAt: at + 700_000, lat: 60, lng: 0, ahead: true },
  ])
  await settle(2000)
  const messages = socket.take()
  t.equal(messages.length, 1)
  t.match(messages[0].positions, [{ lat: 4 }])
})

for (const byMs of [7_200_000, -7_200_000]) {
  test(`positions go on at their interval when the clock is set by ${byMs / 3_600_000} h`, async (t) => {
    const { points, connect, settle, clock } = await open(t, { facts: { a: named('A') } })
    const { socket, say } = connect()
    say({ type: 'subscribe', id: 's', channels: ['positions'], interval: 1000 })
    await settle(1000)
    socket.take()
    clock.set(byMs)
    points([{ trackerId: 'a', recordedAt: 1, lat: 1, lng: 0 }])
    await settle(20)
    t.match(socket.take(), [{ positions: [{ lat: 1 }] }])
    points([{ trackerId: 'a', recordedAt: 2, lat: 2, lng: 0 }])
    await settle(500)
    t.same(socket.take(), [], 'no sooner')
    await settle(600)
    t.match(socket.take(), [{ positions: [{ lat: 2 }] }], 'nor later')
  })
}

test('a slow reader gets newer positions less often, and catches up', async (t) => {
  const { points, connect, settle, clock } = await open(t, { facts: { a: named('A') } })
  const { socket, say, connection } = connect()
  say({ type: 'subscribe', id: 's', channels: ['positions'], interval: 20 })
  await settle()
  socket.take()
  socket.stuck = true
  socket.buffered = 300 * 1024
  points([{ trackerId: 'a', recordedAt: clock.now(), lat: 1, lng: 0 }])
  await settle()
  const before = socket.take().length
  for (let i = 0; i < 1000; i++) points([{ trackerId: 'a', recordedAt: clock.now() + 1 + i, lat: i / 100, lng: 0 }])
  await settle(1000)
  t.equal(before, 1, 'what was sent before the buffer was known to be full')
  t.same(socket.take(), [], 'nothing is queued for a socket that does not take it')
  socket.stuck = false
  socket.buffered = 0
  connection.drain()
  await settle()
  t.match(socket.take(), [{ positions: [{ lat: 9.99 }] }], 'the newest one alone')
  t.equal(socket.closedWith, undefined)
})

test('what large maps cannot get at their interval they get less often, all of them alike', async (t) => {
  const ids = Array.from({ length: 100 }, (_, i) => `t${i}`)
  const { points, connect, settle, clock } = await open(t, {
    facts: Object.fromEntries(ids.map((id) => [id, named(id)])),
  })
  const sockets = Array.from({ length: 60 }, () => {
    const { socket, say } = connect()
    say({ type: 'subscribe', id: 's', channels: ['positions'], interval: 20 })
    return socket
  })
  for (let i = 0; i < 5; i++) await settle()
  for (const socket of sockets) socket.take()
  // Each message takes a millisecond: a few fill a turn, and the fleet moves again before all maps were told.
  let spentMs = 1_000_000
  t.intercept(performance, 'now', { value: () => spentMs })
  const last = sockets.map(() => 0)
  const got = sockets.map((socket, i) => {
    socket.send = (text) => {
      spentMs++
      got[i]++
      last[i] = JSON.parse(text).positions.at(-1).lat
      return 0
    }
    return 0
  })
  for (let move = 1; move <= 40; move++) {
    points(ids.map((trackerId) => ({ trackerId, recordedAt: clock.now() + move, lat: 1 + move / 100, lng: 0 })))
    clock.advance(20)
    await turn()
    t.ok(Math.max(...got) - Math.min(...got) <= 1, `${Math.min(...got)} to ${Math.max(...got)} after ${move} moves`)
  }
  t.ok(Math.min(...got) > 0, 'none stands still')
  t.ok(Math.max(...got) < 40, `${Math.max(...got)} of 40 moves came to each`)
  for (let i = 0; i < 40; i++) {
    clock.advance(20)
    await turn()
  }
  t.same([...new Set(last)], [1.4], 'the last one comes to all')
})

test('a position says whose it is to whoever may see that user alone, though its text is kept for all', async (t) => {
  const facts: TrackerFacts = { name: 'A', hubIds: ['h1'], userId: 'ada', userHubIds: ['h2'], vehicleId: 'van' }
  const { hub, points, connect, settle, clock } = await open(t, { facts: { a: facts } })
  const permissions = new Set(['view/location-history', 'view/user'])
  const viewers: { [who: string]: ReturnType<typeof connect> } = {
    'sees all users': connect(callerOf({ permissions })),
    'sees users of that hub': connect(callerOf({ permissions, hubIds: ['h1', 'h2'] })),
    'sees users of another hub': connect(callerOf({ permissions, hubIds: ['h1'] })),
    'sees no users': connect(callerOf()),
    'is the user': connect(callerOf({ userId: 'ada', hubIds: ['h1'] })),
  }
  const seen: { [who: string]: (string | undefined)[] } = {}
  const tell = async (ms: number) => {
    points([{ trackerId: 'a', recordedAt: clock.now() + ms, lat: 1, lng: 1 }])
    await settle()
    for (const [who, { socket }] of Object.entries(viewers)) {
      const [position] = socket.take().flatMap(({ positions }) => positions)
      t.match(position, { trackerId: 'a', name: 'A', vehicleId: 'van' }, who)
      ;(seen[who] ??= []).push(position.userId)
    }
  }
  for (const { say } of Object.values(viewers)) say({ type: 'subscribe', id: 's', channels: ['positions'] })
  await settle()
  await tell(1)
  await tell(2)
  hub.trackerChanged('org', 'a', { ...facts, userHubIds: ['h1'] })
  await tell(3)
  t.same(seen, {
    'sees all users': ['ada', 'ada', 'ada'],
    'sees users of that hub': ['ada', 'ada', 'ada'],
    'sees users of another hub': [undefined, undefined, 'ada'],
    'sees no users': [undefined, undefined, undefined],
    'is the user': ['ada', 'ada', 'ada'],
  })
})

test('hubs decide who sees what, and a change of hubs takes away', async (t) => {
  const { points, connect, settle, clock } = await open(t, {
    facts: { a: named('A', ['h1']), b: named('B', ['h2']), c: named('C') },
  })
  const { socket, say, connection } = connect(callerOf({ hubIds: ['h1', 'h2'] }))
  const at = clock.now()
  points([{ trackerId: 'a', recordedAt: at, lat: 1, lng: 1 }])
  say({ type: 'subscribe', id: 's', channels: ['positions'] })
  await settle()
  points(['a', 'b', 'c'].map((trackerId) => ({ trackerId, recordedAt: at + 1, lat: 1, lng: 1 })))
  await settle()
  const seen = new Set(
    socket.take().flatMap((message) => message.positions.map((position: Message) => position.trackerId)),
  )
  t.same([...seen].sort(), ['a', 'b'], 'what has no hub only owner and admin see')
  connection.reauthorized(callerOf({ hubIds: ['h1'] }))
  await settle()
  t.match(socket.take(), [{ positions: [], gone: ['b'] }])
  connection.reauthorized(callerOf({ permissions: new Set(), isService: true }))
  await settle()
  t.match(socket.take(), [{ type: 'error', id: 's', code: 'forbidden' }])
})

test('whoever lacks the permission hears of their own phone alone', async (t) => {
  const own: TrackerFacts = { name: 'A', hubIds: ['h1'], userId: 'ada', ownerId: 'ada' }
  const facts = { a: own, b: { ...own, userId: 'bob', ownerId: 'bob' }, c: named('C', ['h1']) }
  const { points, connect, settle, clock } = await open(t, { facts })
  const { socket, say, connection } = connect(callerOf({ userId: 'ada', permissions: new Set(), hubIds: ['h1'] }))
  say({ type: 'subscribe', id: 's', channels: ['positions', 'trip'] })
  await settle()
  const tell = async (ms: number): Promise<string[]> => {
    points(['a', 'b', 'c'].map((trackerId) => ({ trackerId, recordedAt: clock.now() + ms, lat: 1, lng: 1 })))
    await settle()
    return socket.take().flatMap(({ positions }) => positions.map(({ trackerId }: Message) => trackerId))
  }
  t.same(await tell(1), ['a'])
  connection.reauthorized(callerOf({ userId: 'ada', hubIds: ['h1'] }))
  t.same((await tell(2)).sort(), ['a', 'b', 'c'])
})

test('a change of hubs takes positions away from whoever asked for tasks too', async (t) => {
  const { points, connect, settle, clock } = await open(t, { facts: { a: named('A', ['h1']), b: named('B', ['h2']) } })
  const permissions = new Set(['view/location-history', 'view/task'])
  const { socket, say, connection } = connect(callerOf({ hubIds: ['h1', 'h2'], permissions }))
  points(['a', 'b'].map((trackerId) => ({ trackerId, recordedAt: clock.now(), lat: 1, lng: 1 })))
  say({ type: 'subscribe', id: 's', channels: ['positions', 'task'] })
  await settle()
  t.equal(socket.take()[0].positions.length, 2)
  connection.reauthorized(callerOf({ hubIds: ['h1'], permissions }))
  await settle()
  const [gap, snapshot, gone, ...others] = socket.take()
  t.match([gap, snapshot], [{ type: 'gap' }, { type: 'snapshot', positions: [{ trackerId: 'a' }] }])
  t.match(gone, { type: 'positions', positions: [], gone: ['b'] })
  t.same(others, [])
})

test('messages that are no subscription', async (t) => {
  const { connect, settle } = await open(t)
  const { socket, say } = connect()
  const faults = [
    [{ channels: ['weather'] }, '/channels/0 must be one of positions, geofence, trip'],
    [{ interval: 5 }, '/interval must be >= 20'],
    [{ bbox: [1, 5, 2, 4] }, '/bbox must be west, south, east, north'],
    [{ bbox: [1, 2, 3] }, '/bbox must have at least 4 entries'],
    [{ trackerId: 'a' }, '/trackerId is not a known field'],
    [{ channels: undefined }, '/channels is required'],
  ] as const
  for (const [members] of faults) say({ type: 'subscribe', id: 's', channels: ['positions'], ...members })
  say({ type: 'unsubscribe', id: 's', channels: [] })
  say({ type: 'unsubscribe' })
  await settle()
  const errors = socket.take()
  for (const [i, [, message]] of faults.entries())
    t.match(errors[i], { type: 'error', id: 's', code: 'invalid', message: new RegExp(`^${message}`) })
  t.match(errors.slice(faults.length), [
    { id: 's', message: '/channels is not a known field' },
    { message: '/id is required' },
  ])
  t.equal(socket.closedWith, undefined, 'an invalid subscription closes nothing')
  for (let i = 0; i < 17; i++) say({ type: 'subscribe', id: String(i), channels: ['geofence'] })
  await settle()
  t.match(
    socket.take().filter((message) => message.type === 'error'),
    [{ id: '16', code: 'rate_limited' }],
    'at most 16 subscriptions',
  )
  say({ type: 'what' })
  t.equal(socket.closedWith, 4400)
})

const transition = (n: number, organizationId = 'org'): Transition => ({
  kind: 'transition',
  _id: String(n),
  organizationId,
  trackerId: 'a',
  geofenceId: 'g',
  geofenceGroupId: 'gg',
  type: 'entry',
  at: n,
  cause: 'point',
  point: { recordedAt: n, lat: 1, lng: 1 },
})

test('what is decided about a tracker waits until it is known who sees it, or that nobody will know', async (t) => {
  const { hub, connect, settle } = await open(t, { facts: { a: named('A', ['h1']) } })
  await hub.events.load(0)
  const { socket, say } = connect(callerOf({ hubIds: ['h1'] }))
  say({ type: 'subscribe', id: 's', channels: ['geofence'] })
  await settle()
  socket.take()
  let revision = 0
  const decide = (...trackerIds: string[]): void | Promise<void> => {
    const decisions = trackerIds.map((trackerId, n) => ({ ...transition(10 * revision + n), trackerId }))
    const decided = { sourceRevision: revision, ordinal: 0, sourceLoggedAt: 0, decisions }
    return hub.events.handle({ revision: revision++, decided }, 0)
  }
  const told = (): string[] => socket.take().map((message) => message.event.trackerId)
  t.equal(decide('a'), undefined, 'nothing is waited for where it is known')
  t.same(told(), ['a'])
  const first = decide('new', 'a')
  await settle(0)
  t.same(told(), [])
  hub.trackerChanged('org', 'new', named('New', ['h1']))
  await first
  t.same(told(), ['new', 'a'])
  const second = decide('gone', 'a')
  await settle(1_000)
  await second
  t.same(told(), ['a'])
  t.equal(decide('gone', 'a'), undefined, 'once for each')
  t.same(told(), ['a'])
})

test('events resume after a cursor, from memory and from the log, with a gap only where there is one', async (t) => {
  const { log, hub, newHub, connect, settle } = await open(t, { facts: { a: named('A') } })
  let n = 0
  const decide = async (to: LiveHub | undefined, count: number): Promise<void> => {
    const decided = decidedOf(
      n,
      Array.from({ length: count }, () => transition(n++, n % 3 === 2 ? 'other' : 'org')),
    )
    const { revision } = await log.append(transitionStream(1), [eventOf(n, decided)], 'any')
    to?.events.handle({ revision, decided }, 1)
  }
  const idsOf = (messages: Message[]): string[] =>
    messages.filter((message) => message.type === 'event').map((message) => message.event._id)
  for (const partition of [0, 1]) await hub.events.load(partition)
  const first = connect()
  first.say({ type: 'subscribe', id: 's', channels: ['geofence'] })
  await settle()
  t.match(first.socket.take(), [{ type: 'snapshot', positions: [] }])
  await decide(hub, 4)
  await decide(hub, 4)
  const seen = first.socket.take()
  t.same(idsOf(seen), ['0', '2', '3', '5', '6'], 'the events of the own organization')
  const since = seen[1].cursor

  const second = connect()
  second.say({ type: 'subscribe', id: 's', channels: ['geofence'], since })
  await settle()
  const resumed = second.socket.take()
  t.same(idsOf(resumed), ['3', '5', '6'], 'from memory')
  t.equal(resumed.at(-1).type, 'snapshot', 'the snapshot comes after them')

  const restarted = newHub()
  for (const partition of [0, 1]) await restarted.events.load(partition)
  const third = connect(callerOf(), restarted)
  third.say({ type: 'subscribe', id: 's', channels: ['geofence'], since })
  await decide(restarted, 3)
  await settle(0)
  for (let i = 0; i < 50 && !third.socket.messages.some((message) => message.type === 'snapshot'); i++) await settle(50)
  t.same(idsOf(third.socket.messages), ['3', '5', '6', '8', '9'], 'from the log, with what came in meanwhile once')

  await log.truncateBefore(transitionStream(1), 2)
  const fourth = connect(callerOf(), newHub())
  const late = newHub()
  for (const partition of [0, 1]) await late.events.load(partition)
  const fifth = connect(callerOf(), late)
  fifth.say({ type: 'subscribe', id: 's', channels: ['geofence'], since })
  for (let i = 0; i < 50 && fifth.socket.messages.length < 2; i++) await settle(50)
  t.match(fifth.socket.messages, [{ type: 'gap', id: 's' }, { type: 'snapshot' }], 'a truncated log is a gap')
  fourth.say({ type: 'subscribe', id: 's', channels: ['geofence'], since: 'nonsense' })
  for (let i = 0; i < 50 && fourth.socket.messages.length < 2; i++) await settle(50)
  t.match(fourth.socket.messages, [{ type: 'gap', id: 's' }, { type: 'snapshot' }])
})

test('who comes from a process that was further is told nothing twice, and has a cursor of all that was told', async (t) => {
  const { log, newHub, connect, settle } = await open(t, { facts: { a: named('A') } })
  const [ahead, behind] = [newHub(), newHub()]
  for (const partition of [0, 1]) for (const hub of [ahead, behind]) await hub.events.load(partition)
  let n = 0
  const decide = async (): Promise<{ revision: number; decided: Decided }> => {
    const decided = decidedOf(n, [transition(n++), transition(n++)])
    return { revision: (await log.append(transitionStream(1), [eventOf(n, decided)], 'any')).revision, decided }
  }
  const idsOf = (messages: Message[]): string[] =>
    messages.filter(({ type }) => type === 'event').map(({ event }) => event._id)
  const told = await Promise.all([decide(), decide()])
  const there = connect(callerOf(), ahead)
  there.say({ type: 'subscribe', id: 's', channels: ['geofence'] })
  await settle()
  for (const one of told) ahead.events.handle(one, 1)
  const events = there.socket.take().filter(({ type }) => type === 'event')
  t.same(idsOf(events), ['0', '1', '2', '3'])

  const here = connect(callerOf(), behind)
  here.say({ type: 'subscribe', id: 's', channels: ['geofence'], since: events[2].cursor })
  for (let i = 0; i < 50 && here.socket.messages.length === 0; i++) await settle(50)
  t.match(here.socket.messages, [{ type: 'snapshot', cursor: events[2].cursor }], 'it does not go back')
  for (const one of [...told, await decide()]) behind.events.handle(one, 1)
  t.same(idsOf(here.socket.messages), ['3', '4', '5'], 'each event once')
  t.not(here.socket.messages.at(-1).cursor, events[2].cursor)

  const again = connect(callerOf(), behind)
  again.say({ type: 'subscribe', id: 's', channels: ['geofence'], since: here.socket.messages[1].cursor })
  await settle()
  t.same(idsOf(again.socket.take()), ['4', '5'], 'and from there on')
  const beyond = encodeCursor(
    7,
    behind.vector.map(() => ({ revision: 9_000, seen: 0 })),
  )
  again.say({ type: 'subscribe', id: 's', channels: ['geofence'], since: beyond })
  for (let i = 0; i < 50 && again.socket.messages.length < 2; i++) await settle(50)
  t.match(again.socket.messages, [{ type: 'gap' }, { type: 'snapshot' }], 'a log that ends before it was restored')
})

test('trackers, hubs and teams are named in any case', async (t) => {
  const [trackerId, hubId, teamId] = [
    '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a',
    '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6b',
    '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6c',
  ]
  const { points, connect, settle, clock } = await open(t, {
    facts: { [trackerId]: { name: 'A', hubIds: [hubId], teamId } },
  })
  const { socket, say } = connect()
  const filters: { [id: string]: object } = {
    tracker: { trackerIds: [trackerId.toUpperCase()] },
    hub: { hubId: hubId.toUpperCase() },
    team: { teamId: teamId.toUpperCase() },
    other: { hubId: teamId },
  }
  for (const [id, filter] of Object.entries(filters)) say({ type: 'subscribe', id, channels: ['positions'], ...filter })
  await settle()
  socket.take()
  points([{ trackerId, recordedAt: clock.now(), lat: 1, lng: 1 }])
  await settle()
  t.same(
    socket
      .take()
      .map(({ id }) => id)
      .sort(),
    ['hub', 'team', 'tracker'],
  )
})

test('a load that fails after its organization was forgotten takes nothing from the next one', async (t) => {
  const down: ((isDown: boolean) => void)[] = []
  const { points, connect, settle, clock } = await open(t, {
    facts: { a: named('A') },
    isDown: () => new Promise((resume) => down.push(resume)),
  })
  connect()
  await settle(300_000)
  const { socket, say } = connect()
  say({ type: 'subscribe', id: 's', channels: ['positions'] })
  await settle()
  t.equal(down.length, 2, 'it is loaded anew')
  down[1](false)
  await settle()
  t.match(socket.take(), [{ type: 'snapshot' }])
  down[0](true)
  await settle()
  points([{ trackerId: 'a', recordedAt: clock.now(), lat: 1, lng: 1 }])
  await settle()
  t.match(socket.take(), [{ type: 'positions', positions: [{ trackerId: 'a' }] }])
})

test('a large fleet comes in parts', async (t) => {
  const facts = Object.fromEntries(Array.from({ length: 2500 }, (_, i) => [`t${i}`, named(`T${i}`)]))
  const clock = new FakeClock()
  const latest = Object.keys(facts).map((trackerId) => ({
    trackerId,
    recordedAt: clock.now(),
    loggedAt: clock.now(),
    lat: 1,
    lng: 1,
    flags: 0,
    accuracy: 0,
    altitude: 0,
    speed: 0,
    heading: 0,
    battery: 0,
  }))
  const { connect, settle } = await open(t, { facts, latest })
  const { socket, say } = connect()
  say({ type: 'subscribe', id: 's', channels: ['positions'] })
  for (let i = 0; i < 600 && socket.messages.length < 3; i++) await settle(20)
  t.same(
    socket.messages.map(({ type, positions, more }) => [type, positions.length, more]),
    [
      ['snapshot', 1000, true],
      ['snapshot', 1000, true],
      ['snapshot', 500, undefined],
    ],
  )
  await settle(2000)
  t.equal(socket.messages.length, 3, 'nothing is sent twice')
})

test('a resume goes as fast as the client reads, and what comes meanwhile follows', async (t) => {
  const { log, hub, connect, settle } = await open(t, { facts: { a: named('A') } })
  for (const partition of [0, 1]) await hub.events.load(partition)
  const first = connect()
  first.say({ type: 'subscribe', id: 's', channels: ['geofence'] })
  await settle()
  const [{ cursor: since }] = first.socket.take()
  let n = 0
  const decide = async (count: number): Promise<void> => {
    const decided = decidedOf(
      n,
      Array.from({ length: count }, () => transition(n++)),
    )
    const { revision } = await log.append(transitionStream(1), [eventOf(n, decided)], 'any')
    hub.events.handle({ revision, decided }, 1)
  }
  for (let i = 0; i < 9; i++) await decide(1000)

  const { socket, say, connection } = connect()
  socket.stuck = true
  for (const id of ['s', 't']) say({ type: 'subscribe', id, channels: ['geofence'], since })
  await settle()
  const begun = socket.messages.length
  t.ok(begun > 0 && begun < 5000, `${begun} messages went before the socket was full`)
  await decide(500)
  for (let i = 0; i < 500 && socket.messages.filter((message) => message.type === 'snapshot').length < 2; i++) {
    t.ok(socket.buffered < 300 * 1024, 'no more is handed to a full socket')
    socket.buffered = 0
    connection.drain()
    await settle(20)
  }
  t.equal(socket.closedWith, undefined, 'it is not too slow')
  for (const wanted of ['s', 't']) {
    const heard = socket.messages
      .filter(({ type, id }) => type === 'event' && id === wanted)
      .map(({ event }) => Number(event._id))
    t.same(
      heard,
      Array.from({ length: 9500 }, (_, i) => i),
      'each event once, in order',
    )
  }
  const end = connect()
  end.say({ type: 'subscribe', id: 's', channels: ['geofence'], since: socket.messages.at(-1).cursor })
  await settle()
  t.match(end.socket.take(), [{ type: 'snapshot' }], 'nothing is missed after that')
})

test('each of many subscribes at once is answered, until there are too many', async (t) => {
  const batch = batchOf([{ trackerId: 'a', recordedAt: 0, lat: 52.5, lng: 21 }], 0)
  const { connect, settle, clock } = await open(t, {
    facts: { a: named('A') },
    latest: [latestPointAt(batch, 0, 'a')],
  })
  const subscribe = { type: 'subscribe', bbox: BOX, channels: ['positions'] }
  for (const isLoaded of [false, true]) {
    const { socket, say } = connect()
    for (let n = 0; n < SUBSCRIBES_AT_ONCE; n++) say({ ...subscribe, id: `s${n % 20}` })
    await settle()
    t.equal(socket.closedWith, undefined)
    const answers = socket.take()
    const refused = answers.filter(({ type }) => type === 'error')
    t.equal(refused.length, SUBSCRIBES_AT_ONCE / 5, 'ids beyond the sixteenth')
    t.match(refused[0], { id: 's16', code: 'rate_limited', message: /at most 16/ })
    const snapshots = answers.filter(({ type, more }) => type === 'snapshot' && more === undefined)
    t.equal(
      snapshots.length,
      (SUBSCRIBES_AT_ONCE / 5) * 4,
      `the others, ${isLoaded ? 'of a fleet that is there' : 'while the fleet is read'}`,
    )
    t.equal(snapshots.filter(({ positions }) => positions.length === 1).length, 16, 'positions go to those that last')
    say({ type: 'unsubscribe', id: 's0' })
    t.equal(socket.closedWith, undefined, 'other messages have a limit of their own')
    for (let n = 0; n < SUBSCRIBES_PER_SECOND; n++) say({ ...subscribe, id: 's0' })
    t.equal(socket.closedWith, 4429, 'more than a burst')
    const patient = connect()
    for (let n = 0; n < 2 * SUBSCRIBES_AT_ONCE; n++) {
      patient.say({ ...subscribe, id: 's' })
      clock.advance(1_000 / SUBSCRIBES_PER_SECOND)
    }
    t.equal(patient.socket.closedWith, undefined, 'a map that pans all the time')
  }
})

test('any messages, in a burst and for long', async (t) => {
  const { connect, clock } = await open(t)
  const forget = { type: 'unsubscribe', id: 's' }
  const hasty = connect()
  for (let n = 0; n < MESSAGES_AT_ONCE; n++) hasty.say(forget)
  t.equal(hasty.socket.closedWith, undefined)
  for (let n = 0; n < MESSAGES_PER_SECOND; n++) hasty.say(forget)
  t.equal(hasty.socket.closedWith, 4429)
  const patient = connect()
  for (let n = 0; n < 2 * MESSAGES_AT_ONCE; n++) {
    patient.say(forget)
    clock.advance(1_000 / MESSAGES_PER_SECOND)
  }
  t.equal(patient.socket.closedWith, undefined)
})

test('a map that opens looks at the cells that it shows, however large the fleet is', async (t) => {
  const { points, connect, settle, clock, hub } = await open(t)
  const ids = Array.from({ length: 2_000 }, (_, i) => `t${i}`)
  for (const id of ids) hub.trackerChanged('org', id, named(id))
  const { socket, say } = connect()
  say({ type: 'subscribe', id: 'all', channels: ['positions'] })
  await settle()
  for (const id of ids) hub.trackerChanged('org', id, named(id))
  points(
    ids.map((trackerId, i) => ({
      trackerId,
      recordedAt: clock.now(),
      lat: 10 + (i % 50) / 10,
      lng: Math.floor(i / 50) / 10,
    })),
  )
  await settle()
  socket.take()
  let looked = 0
  const { fleet } = hub.organization('org')
  const isWithin = fleet.isWithin.bind(fleet)
  fleet.isWithin = (slot, viewport) => {
    looked++
    return isWithin(slot, viewport)
  }
  say({ type: 'subscribe', id: 'all', bbox: [0.45, 10.25, 0.65, 10.45], channels: ['positions'] })
  await settle()
  const seen = (): string[] => {
    const [{ positions }] = socket.take()
    return positions.map(({ trackerId }: Message) => trackerId).sort()
  }
  t.same(seen(), ['t253', 't254', 't303', 't304'])
  t.ok(looked >= 4 && looked < 100, `${looked} of 2,000 looked at`)
  points([{ trackerId: 't0', recordedAt: clock.now() + 1, lat: 10.35, lng: 0.55 }])
  points([{ trackerId: 't253', recordedAt: clock.now() + 1, lat: 50.5, lng: 0.55 }])
  await settle()
  t.match(socket.take(), [{ type: 'positions', positions: [{ trackerId: 't0' }], gone: ['t253'] }])
  say({ type: 'subscribe', id: 'all', bbox: [0.45, 10.25, 0.65, 10.45], channels: ['positions'] })
  await settle()
  t.same(seen(), ['t0', 't254', 't303', 't304'], 'cells follow what moves')
  say({ type: 'subscribe', id: 'all', trackerIds: ['t1', 't2', 'nobody'], channels: ['positions'] })
  await settle()
  t.same(seen(), ['t1', 't2'])
})

test('what is read for a subscription ends with it, also while its client does not read', async (t) => {
  const { log, newHub, connect, settle } = await open(t)
  const heard = async (hub: LiveHub): Promise<ReturnType<typeof connect>> => {
    for (const partition of [0, 1]) await hub.events.load(partition)
    return connect(callerOf(), hub)
  }
  const first = await heard(newHub())
  first.say({ type: 'subscribe', id: 's', channels: ['geofence'] })
  await settle()
  const [{ cursor: since }] = first.socket.take()
  const events = Array.from({ length: 1_281 }, (_, n) =>
    eventOf(n, decidedOf(n, [transition(n, n < 1_280 ? 'other' : 'org')])),
  )
  await log.append(transitionStream(1), events, 'any')

  const hub = newHub()
  let reads = 0
  let atRead = (): void => undefined
  const read: typeof log.read = (...asked) => {
    reads++
    atRead()
    return log.read(...asked)
  }
  const { socket, say, connection } = await heard(hub)
  hub.options.log = Object.assign(Object.create(log), { read })
  atRead = () => {
    if (reads === 3) say({ type: 'unsubscribe', id: 's' })
  }
  say({ type: 'subscribe', id: 's', channels: ['geofence'], since })
  await settle()
  t.equal(reads, 3, 'none of the other 18 pages')
  t.same(
    socket.take(),
    [{ type: 'snapshot', id: 's', positions: [], cursor: since }],
    'it is answered all the same, with the cursor that it came with',
  )

  socket.stuck = true
  socket.buffered = 300 * 1024
  connection.drain()
  for (let i = 0; i < 3; i++) {
    say({ type: 'subscribe', id: 's', channels: ['geofence'], since })
    for (let turns = 0; turns < 1_000 && waitingIn(connection) === 0; turns++) await turn()
    t.equal(waitingIn(connection), 1, 'its event waits for room, and none of those before')
  }
  say({ type: 'unsubscribe', id: 's' })
  t.equal(waitingIn(connection), 0)
})

test('a cursor whose whole rest was truncated is a gap', async (t) => {
  const { log, newHub, connect, settle } = await open(t)
  const append = (n: number) => log.append(transitionStream(1), [eventOf(n, decidedOf(n, [transition(n)]))], 'any')
  const heardBy = async (since?: string): Promise<Message[]> => {
    const hub = newHub()
    for (const partition of [0, 1]) await hub.events.load(partition)
    const { socket, say } = connect(callerOf(), hub)
    say({ type: 'subscribe', id: 's', channels: ['geofence'], since })
    for (let i = 0; i < 50 && !socket.messages.some((message) => message.type === 'snapshot'); i++) await settle(50)
    return socket.messages
  }
  await append(0)
  const [{ cursor }] = await heardBy()
  await append(1)
  await append(2)
  await log.truncateBefore(transitionStream(1), 1)
  t.same(
    (await heardBy(cursor)).map(({ type }) => type),
    ['event', 'event', 'snapshot'],
    'all after the cursor is there',
  )
  await log.truncateBefore(transitionStream(1), 3)
  t.same(
    (await heardBy(cursor)).map(({ type }) => type),
    ['gap', 'snapshot'],
  )
})

test('a box that ends at 180 degrees has both sides of that meridian', async (t) => {
  const { points, connect, settle, clock } = await open(t, {
    facts: Object.fromEntries(['east', 'west', 'plus', 'minus', 'middle'].map((id) => [id, named(id)])),
  })
  const boxes: { [id: string]: number[] } = {
    east: [170, -20, 180, 20],
    west: [-180, -20, -170, 20],
    across: [170, -20, -170, 20],
    round: [176, -20, 174, 20],
  }
  const { socket, say } = connect()
  for (const [id, bbox] of Object.entries(boxes)) say({ type: 'subscribe', id, bbox, channels: ['positions'] })
  await settle()
  const places = { east: 175, west: -175, plus: 180, minus: -180, middle: 0 }
  points(Object.entries(places).map(([trackerId, lng]) => ({ trackerId, recordedAt: clock.now(), lat: 0, lng })))
  await settle()
  const moved = (id: string): string[] =>
    socket.messages
      .filter((message) => message.type === 'positions' && message.id === id)
      .flatMap(({ positions }) => positions.map(({ name }: Message) => name))
      .sort()
  t.same(moved('east'), ['east', 'minus', 'plus'])
  t.same(moved('west'), ['minus', 'plus', 'west'])
  t.same(moved('across'), ['east', 'minus', 'plus', 'west'])
  t.same(moved('round'), ['middle', 'minus', 'plus', 'west'], 'all but two degrees of the way around')
})

test('a connection that watched nothing for a while, or that could not be served, subscribes again', async (t) => {
  let isDown = true
  const { points, connect, settle, clock } = await open(t, { facts: { a: named('A') }, isDown: () => isDown })
  const { socket, say } = connect()
  say({ type: 'subscribe', id: 's', channels: ['positions'] })
  await settle()
  t.match(socket.take(), [{ type: 'error', id: 's', code: 'engine_down' }])
  isDown = false
  const moves = async (lat: number): Promise<void> => {
    say({ type: 'subscribe', id: 's', channels: ['positions'] })
    await settle()
    t.match(socket.take(), [{ type: 'snapshot', id: 's' }])
    points([{ trackerId: 'a', recordedAt: clock.now(), lat, lng: 1 }])
    await settle()
    t.match(socket.take(), [{ type: 'positions', positions: [{ lat }] }])
    say({ type: 'unsubscribe', id: 's' })
  }
  await moves(1)
  clock.advance(20 * 60_000)
  await moves(2)
})

test('loaded again after a failure, the hub goes on where it was', async (t) => {
  const { hub, log } = await open(t)
  for (const [consumer, stream] of [
    [hub.positions, 'locations-0'],
    [hub.events, transitionStream(0)],
  ] as const) {
    const at = await consumer.load(0)
    await log.append(stream, [eventOf(1, decidedOf(0, []))], 'any')
    t.equal(await consumer.load(0), at)
  }
})

test('where entries are gone that it has not read, the hub ends connections, and shows who comes back the tables', async (t) => {
  const latest: LatestPoint[] = []
  const { hub, points, connect, settle, clock } = await open(t, { facts: { a: named('A') }, latest })
  for (const consumer of [hub.positions, hub.events]) {
    const before = connect()
    before.say({ type: 'subscribe', id: 's', channels: ['positions'] })
    await settle()
    points([{ trackerId: 'a', recordedAt: clock.now(), lat: 1, lng: 1 }])
    await settle()
    consumer.skipped?.(0)
    t.equal(before.socket.closedWith, 1012)
    before.connection.closed()
    const newer = { trackerId: 'a', recordedAt: clock.now(), lat: 2, lng: 2 }
    latest[0] = latestPointAt(batchOf([newer], clock.now()), 0, 'a')
    const after = connect()
    after.say({ type: 'subscribe', id: 's', channels: ['positions'] })
    await settle()
    t.match(after.socket.take(), [{ type: 'snapshot', positions: [{ lat: 2 }] }])
    after.connection.closed()
  }
})
