import { test, type Test } from 'tap'
import type { Config } from '../../src/config.ts'
import { LATEST_POSITIONS } from '../../src/features/locations/views.ts'
import type { UserCaller } from '../../src/kernel/caller.ts'
import { systemClock } from '../../src/kernel/system-clock.ts'
import type { LogOrigin } from '../../src/kit/consumers/log-origin.ts'
import { createMetrics } from '../../src/kit/operations/metrics.ts'
import type { HistoryStore } from '../../src/engines/history-store.ts'
import { automationFeed } from '../../src/features/automations/live-feed.ts'
import type { LiveHub } from '../../src/live/hub.ts'
import { liveChannel } from '../../src/live/client.ts'
import { liveHub } from '../../src/roles/live.ts'
import { entry, openHook, openWorld, ORG, owner, trackerId } from '../reactors/dispatch/world.ts'
import { until, type Json } from '../support/service.ts'

const HUB = 'h1'

const open = async (t: Test, scheduleMs: number[]) => {
  const world = await openWorld(t, { clock: systemClock, scheduleMs })
  await world.tables.declare({ name: 'trackers', version: 1 })
  await world.tables.declare(LATEST_POSITIONS)
  const rows = [1, 2].map((n) => ({
    table: 'trackers',
    scope: ORG,
    id: trackerId(n),
    row: { _id: trackerId(n), name: `Bus ${n}`, hubIds: [n === 1 ? HUB : 'h2'] },
  }))
  await world.tables.commit(rows)
  world.known.hubIds.set(trackerId(1), [HUB]).set(trackerId(2), ['h2'])
  const asked = { rows: 0 }
  /** One that is `deaf` has not followed the log yet. */
  const openHub = async (isDeaf = false): Promise<LiveHub> => {
    const config = { staleAfterMs: 1, offlineAfterMs: 1 } as Config
    const origin = { logId: 'log', epoch: 0 } as LogOrigin
    const services = { ...world, config, partitions: 1, origin, metrics: createMetrics(), settle: async () => true }
    const rows: HistoryStore['rows'] = (...question) => {
      asked.rows++
      return world.history.rows(...question)
    }
    const history: HistoryStore = Object.assign(Object.create(world.history), { rows })
    const hub = liveHub({ ...services, history })
    if (isDeaf) return hub
    const feed = await automationFeed({ ...services, history }).follow(hub)
    t.teardown(() => feed.close())
    return hub
  }
  const connect = async (hub: LiveHub, caller: Partial<UserCaller> = {}, message: object = {}) => {
    const messages: Json[] = []
    const socket = {
      address: '',
      isLocal: true,
      send: (text: string) => messages.push(JSON.parse(text)) && 0,
      bufferedBytes: () => 0,
      close: () => {},
    }
    const connection = liveChannel(hub, () => true).open(socket, { ...owner, ...caller })
    connection.message(
      new Uint8Array(Buffer.from(JSON.stringify({ type: 'subscribe', id: 's', channels: ['automation'], ...message })))
        .buffer,
      false,
    )
    await until('an answer', () => messages.some(({ type }) => type === 'snapshot' || type === 'error'))
    const events = (): Json[] => messages.filter(({ type }) => type === 'event')
    return {
      connection,
      messages,
      events,
      of: (tracker: number): Json[] =>
        events()
          .filter(({ event }) => event.trackerId === trackerId(tracker))
          .map(({ event }) => event),
    }
  }
  const answered = async (caller: UserCaller = owner): Promise<Json[]> =>
    (await world.call('GET', '/automation-log?limit=100', { caller })).body.data
  return { world, asked, openHub, connect, answered }
}

test('whoever may read the runs of automations hears how they go, as their GET answers them; nobody else does', async (t) => {
  const { world, openHub, connect, answered } = await open(t, [1])
  const hook = await openHook(t, ({ body }) => (body.data.tracker._id === trackerId(1) ? 200 : 500))
  await world.webhook(hook)
  const hub = await openHub()
  const all = await connect(hub)
  const ofHub = await connect(hub, { hubIds: [HUB] })
  const ofTracker = await connect(hub, {}, { trackerIds: [trackerId(2)] })
  const deaf = await Promise.all([
    connect(hub, { organizationId: '0190f3a2-0000-7000-8000-0000000000aa' }),
    connect(hub, {}, { channels: ['geofence', 'job'] }),
    connect(hub, { hubIds: [] }),
  ])
  const refused = await connect(hub, { permissions: new Set(['view/geofence']) })
  t.match(refused.messages, [{ type: 'error', code: 'forbidden' }])

  await world.decide([entry(Date.now(), 1), entry(Date.now(), 2)])
  await until('both ended', () => all.of(1).length === 2 && all.of(2).length === 3)
  const statuses = (events: Json[]): string[] => events.map(({ status, attempts }) => `${status} ${attempts.length}`)
  t.same(statuses(all.of(1)), ['pending 0', 'succeeded 1'])
  t.same(statuses(all.of(2)), ['pending 0', 'pending 1', 'dead 2'])
  t.ok(all.events().every(({ channel }) => channel === 'automation'))
  t.ok(all.of(2)[1].nextAttemptAt, 'with when the next attempt is due')
  await until('the rows', async () => (await answered()).every(({ status }) => status !== 'pending'))
  const rowOf = async (tracker: number): Promise<Json> =>
    (await answered()).find((row) => row.trackerId === trackerId(tracker))
  for (const tracker of [1, 2]) t.same(all.of(tracker).at(-1), await rowOf(tracker), 'as the read answers it')

  // Someone asks for another attempt.
  hook.answer = () => 200
  const { status } = await world.call('POST', `/automation-log/${all.of(2)[0]._id}/retry`, { caller: owner })
  t.equal(status, 200)
  await until('it succeeded', () => all.of(2).length === 5)
  t.same(statuses(all.of(2)).slice(3), ['pending 2', 'succeeded 3'])

  t.same(
    ofHub.events().map(({ event }) => event),
    all.of(1),
    'a user of one hub',
  )
  t.same(
    (await answered({ ...owner, hubIds: [HUB] })).map(({ trackerId: id }) => id),
    [trackerId(1)],
    'as the read has it',
  )
  t.same(
    ofTracker.events().map(({ event }) => event),
    all.of(2),
  )
  for (const { events } of deaf) t.same(events(), [])

  const whole = all.events()
  for (const [what, one] of [
    ['this process', hub],
    ['another one', await openHub()],
  ] as const) {
    for (const i of [0, 1, 3]) {
      const { events, messages } = await connect(one, {}, { since: whole[i].cursor })
      const told = (all: Json[]): Json[] => all.map(({ cursor: _cursor, ...rest }) => rest)
      t.same(told(events()), told(whole.slice(i + 1)), `the same after since ${i}, from ${what}`)
      t.notOk(messages.some(({ type }) => type === 'gap'))
    }
    t.same(
      (await connect(one, { hubIds: ['h2'] }, { since: whole[0].cursor })).events().map(({ event }) => event),
      all.of(2).slice(all.events()[0].event.trackerId === trackerId(2) ? 1 : 0),
    )
    t.same((await connect(one, {}, { since: whole[0].cursor, channels: ['geofence'] })).events(), [])
  }
})

test('who has heard a part of an event at another process hears the rest of it at one that is not so far', async (t) => {
  const { world, openHub, connect } = await open(t, [1])
  const hooks = await Promise.all([1, 2].map(() => openHook(t)))
  for (const hook of hooks) await world.webhook(hook)
  const all = await connect(await openHub())
  await world.decide([entry(Date.now(), 1)])
  await until('both runs', () => all.events().length >= 2)
  const [first, second] = all.events()
  t.same([first.event.status, second.event.status], ['pending', 'pending'], 'one event tells of two runs')
  const late = await connect(await openHub(true), {}, { since: first.cursor })
  t.same(
    late.events().map(({ event }) => event),
    [second.event],
  )
  const after = await connect(await openHub(), {}, { since: late.messages.at(-1).cursor })
  t.notOk(after.events().some(({ event }) => event.status === 'pending' && event.attempts.length === 0))
})

test('an automation that the service deactivates is told as its GET answers it, with why, and its runs with it', async (t) => {
  const { world, openHub, connect, answered } = await open(t, [60_000])
  const hook = await openHook(t, () => 410)
  const { _id } = await world.webhook(hook)
  const hub = await openHub()
  const { events } = await connect(hub)
  const ofHub = await connect(hub, { hubIds: [HUB] })
  await world.decide([entry(Date.now())])
  const automationsIn = (one: Json[]): Json[] => one.filter(({ event }) => event._id === _id).map(({ event }) => event)
  await until('it is told', () => automationsIn(events()).length === 1 && automationsIn(ofHub.events()).length === 1)
  const read = async (): Promise<Json> => (await world.call('GET', `/automation/${_id}`, { caller: owner })).body.data
  await until('it is read', async () => !(await read()).isActive)
  t.same(automationsIn(events()), [await read()])
  t.match(await read(), { isActive: false, notice: { reason: 'gone', at: String } })
  t.match((await world.call('GET', '/automations', { caller: owner })).body.data, [{ notice: { reason: 'gone' } }])
  t.notOk('secret' in automationsIn(events())[0].automationDetails)
  t.equal((await answered())[0].status, 'dead')
  const changed = await world.call('PATCH', `/automation/${_id}`, { caller: owner, body: { isActive: true } })
  t.notOk('notice' in changed.body.data, 'whoever activates it again has read it')
})

test('without anybody who asks nothing is made of a run; runs that have left the log are a gap', async (t) => {
  const { world, asked, openHub, connect, answered } = await open(t, [])
  const hook = await openHook(t, () => 200)
  await world.webhook(hook)
  const hub = await openHub()
  const other = await connect(hub, {}, { channels: ['geofence'] })
  const begun = await connect(hub)
  const since = begun.messages[0].cursor
  begun.connection.closed()
  let looked = 0
  const asksFor = hub.asksFor.bind(hub)
  hub.asksFor = (channel, organizationId) => {
    if (organizationId !== undefined) looked++
    return asksFor(channel, organizationId)
  }
  await world.decide([entry(Date.now())])
  await until('it succeeded', async () => (await answered())[0]?.status === 'succeeded')
  await until('it is passed', async () => hub.vector[2].revision >= (await world.log.headPosition()))
  t.same([asked.rows, looked], [0, 0], 'its events are not even looked into')
  t.same(other.events(), [])
  const late = await connect(hub, {}, { since })
  t.same(
    late.events().map(({ event }) => event.status),
    ['pending', 'succeeded'],
    'what nobody heard is in the log',
  )
  t.equal(asked.rows, 1)

  await world.log.truncateBefore('automation-runs-0', await world.log.head('automation-runs-0'))
  const gap = await connect(hub, {}, { since })
  t.same(
    gap.messages.map(({ type }) => type),
    ['gap', 'snapshot'],
  )
  t.same(
    (await connect(hub, {}, { since, channels: ['geofence'] })).messages.map(({ type }) => type),
    ['snapshot'],
    'for those alone who ask for runs',
  )
})

test('who resumes asks the history once for a page of events, not once for each', async (t) => {
  const { world, asked, openHub, connect } = await open(t, [1])
  const hook = await openHook(t, () => 200)
  await world.webhook(hook)
  const hub = await openHub()
  const all = await connect(hub)
  for (let i = 1; i <= 5; i++) {
    await world.decide([entry(Date.now(), 1)])
    await until('a run to end', () => all.of(1).filter(({ status }) => status === 'succeeded').length === i)
  }
  const whole = all.events()
  asked.rows = 0
  const { events } = await connect(hub, {}, { since: whole[0].cursor })
  t.same(
    events().map(({ event }) => event),
    whole.slice(1).map(({ event }) => event),
  )
  t.equal(asked.rows, 1)
})
