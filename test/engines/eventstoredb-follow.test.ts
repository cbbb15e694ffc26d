import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { type Test, test } from 'tap'
import type { Connection } from '../../src/engines/eventstoredb-log/connection.ts'
import { RecentEvents } from '../../src/engines/eventstoredb-log/recent-events.ts'
import { openEventstoredbLog } from '../../src/engines/eventstoredb-log/eventstoredb-log.ts'
import { followPrefixes } from '../../src/engines/eventstoredb-log/follow.ts'
import type { EventLog, FollowBatch } from '../../src/engines/event-log.ts'
import type { RecordedEvent } from '../../src/kernel/event.ts'
import { newEvent } from '../contracts/event-log.ts'
import { openEventstoredbServer } from '../support/eventstoredb/server.ts'
import { until } from '../support/service.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { seeded } from '../support/random.ts'

/** The server, and the log over a proxy. */
const opened = async (t: Test) => {
  const server = await openEventstoredbServer()
  const proxy = await TcpProxy.open(Number(new URL(server.url).port))
  const log = await openEventstoredbLog({
    url: `esdb://127.0.0.1:${proxy.port}?tls=false`,
    newId: randomUUID,
    now: Date.now,
  })
  t.teardown(async () => {
    await log.close()
    await proxy.close()
    await server.close()
  })
  return { server, proxy, log }
}

/** Follows by prefixes and keeps what it is told. */
const watch = (
  t: Test,
  log: EventLog,
  prefixes: string[],
  pace?: (batch: FollowBatch) => Promise<void>,
  checkpoint?: number,
) => {
  const ended = new AbortController()
  const watched = { events: [] as RecordedEvent[], checkpoint: checkpoint ?? -1, isCaughtUp: false, batches: 0 }
  const following = (async () => {
    for await (const batch of log.follow({ prefixes }, checkpoint, ended.signal)) {
      watched.events.push(...batch.events)
      watched.batches++
      watched.isCaughtUp = batch.caughtUp
      if (batch.checkpoint < watched.checkpoint) t.fail('a checkpoint that goes back')
      watched.checkpoint = batch.checkpoint
      await pace?.(batch)
    }
  })()
  t.teardown(async () => {
    ended.abort()
    await following
  })
  return watched
}

const namesOf = (events: readonly RecordedEvent[]): string[] =>
  events.map(({ stream, revision }) => `${stream}@${revision}`)

const append = async (log: EventLog, stream: string, count: number, bytes = 20): Promise<void> => {
  const once = bytes > 1_000 ? 8 : 500
  for (let left = count; left > 0; left -= once) {
    const events = Array.from({ length: Math.min(left, once) }, () => newEvent('thingDone.v1', bytes))
    await log.append(stream, events, 'any')
  }
}

/** Checks that a follower has all that the streams hold, once, in the order of the log. */
const sawAll = async (t: Test, log: EventLog, seen: readonly RecordedEvent[], streams: readonly string[]) => {
  const all: RecordedEvent[] = []
  for (const stream of streams) all.push(...(await log.read(stream, 0, 20_000)))
  all.sort((a, b) => a.position - b.position)
  t.strictSame(namesOf(seen), namesOf(all))
}

test('thirteen followers by prefix share one subscription, also those that begin later with other prefixes', async (t) => {
  const { server, log } = await opened(t)
  const kinds = Array.from({ length: 12 }, (_, index) => `kind${String.fromCharCode(97 + index)}-`)
  await Promise.all(kinds.map((kind) => append(log, `${kind}1`, 3)))
  await append(log, 'foreign-1', 500)
  const first = kinds.slice(0, 8).map((kind) => watch(t, log, [kind]))
  await until('the first to be caught up', () => first.every(({ isCaughtUp }) => isCaughtUp))
  await until('one subscription', () => server.subscriptions.open === 1)
  await Promise.all(kinds.map((kind) => append(log, `${kind}1`, 3)))
  const rest = kinds.slice(8).map((kind) => watch(t, log, [kind, 'kinda-']))
  const both = watch(t, log, ['kind'])
  await until('all to be caught up', () => [...rest, both].every(({ isCaughtUp }) => isCaughtUp))
  await until('one subscription', () => server.subscriptions.open === 1)
  const { passed, begun } = server.subscriptions
  for (let round = 0; round < 3; round++) await Promise.all(kinds.map((kind) => append(log, `${kind}2`, 2)))
  await until('the last event', () => both.events.length === 12 * 12)
  await sawAll(
    t,
    log,
    both.events,
    kinds.flatMap((kind) => [`${kind}1`, `${kind}2`]),
  )
  for (const [index, { events }] of first.entries()) {
    await until('its last event', () => events.length === 12)
    await sawAll(t, log, events, [`${kinds[index]}1`, `${kinds[index]}2`])
  }
  for (const [index, { events }] of rest.entries()) {
    await until('its last event', () => events.length === 24)
    await sawAll(
      t,
      log,
      events,
      [kinds[index + 8], 'kinda-'].flatMap((kind) => [`${kind}1`, `${kind}2`]),
    )
  }
  t.equal(server.subscriptions.begun, begun)
  t.equal(server.subscriptions.passed - passed, 72, 'the server looked at each event once for all of them')
})

test('a follower slower than the ring is long reads by itself, without a hole, and rides along again', async (t) => {
  const { server, log } = await opened(t)
  let resume = (): void => undefined
  let holds = false
  const slow = watch(t, log, ['a-'], async () => {
    if (holds) await new Promise<void>((go) => (resume = go))
  })
  const quick = watch(t, log, ['a-', 'b-'])
  const quiet = watch(t, log, ['b-'])
  await append(log, 'a-1', 1)
  await until('both to ride', () => slow.events.length === 1 && quick.events.length === 1)
  await until('one subscription', () => server.subscriptions.open === 1)
  holds = true
  await append(log, 'a-1', 96, 100_000)
  await until('the quick one', () => quick.events.length === 97)
  t.equal(server.subscriptions.open, 1)
  const { begun } = server.subscriptions
  await append(log, 'b-1', 1)
  await until('the one whose events were not dropped', () => quiet.events.length === 1)
  t.equal(server.subscriptions.begun, begun, 'it rode on although most of the ring was not for it')
  holds = false
  resume()
  await until('the slow one', () => slow.events.length === 97)
  t.ok(server.subscriptions.begun > begun, 'it read by itself')
  await append(log, 'a-2', 3)
  await until('one subscription', () => server.subscriptions.open === 1)
  await until('the slow one', () => slow.events.length === 100)
  await sawAll(t, log, slow.events, ['a-1', 'a-2'])
  await sawAll(t, log, quick.events, ['a-1', 'a-2', 'b-1'])
})

test('the checkpoint of a follower moves on while only foreign events come', async (t) => {
  const { server, log } = await opened(t)
  const rare = watch(t, log, ['rare-'])
  await append(log, 'rare-1', 1)
  await until('it to ride', () => rare.isCaughtUp && server.subscriptions.open === 1)
  const before = rare.checkpoint
  await append(log, 'foreign-1', 3_500)
  await until('its checkpoint to move', () => rare.checkpoint > before)
  const { revision } = await log.append('rare-1', [newEvent()], 'any')
  await until('its next event', () => rare.events.at(-1)?.revision === revision)
  t.equal(rare.events.length, 2)
})

test('followers that come at random moments, from anywhere, at their own pace, over cut connections: all, once, in order', async (t) => {
  const { proxy, log } = await opened(t)
  const random = seeded(9)
  const streams = ['a-1', 'a-2', 'b-1', 'b-2']
  const choices = [['a-'], ['b-'], ['a-', 'b-'], ['b-2'], ['']]
  const positions: number[] = []
  const all: { prefixes: string[]; from: number | undefined; watched: ReturnType<typeof watch> }[] = []
  const join = (): void => {
    const prefixes = choices[Math.floor(random() * choices.length)]
    const from = random() < 0.3 ? undefined : positions[Math.floor(random() * positions.length)]
    const pauseMs = random() < 0.3 ? random() * 10 : 0
    const pace = (): Promise<void> => new Promise((go) => (pauseMs > 0 ? setTimeout(go, pauseMs) : go()))
    all.push({ prefixes, from, watched: watch(t, log, prefixes, pace, from) })
  }
  let left = 120
  const write = async (stream: string): Promise<void> => {
    while (left-- > 0) {
      const events = Array.from({ length: 1 + Math.floor(random() * 20) }, () => newEvent())
      positions.push((await log.append(stream, events, 'any')).position)
      if (random() < 0.1) proxy.cut()
      if (random() < 0.15) join()
    }
  }
  await Promise.all(streams.map(write))
  const events = (await Promise.all(streams.map((stream) => log.read(stream, 0, 20_000)))).flat()
  events.sort((a, b) => a.position - b.position)
  t.ok(all.length > 5)
  for (const { prefixes, from = -1, watched } of all) {
    const own = events.filter(
      ({ stream, position }) => position > from && prefixes.some((prefix) => stream.startsWith(prefix)),
    )
    await until(`${own.length} events of ${prefixes}`, () => watched.events.length >= own.length)
    t.strictSame(namesOf(watched.events), namesOf(own))
  }
})

test('the ring holds no more than it may, and knows what it dropped', async (t) => {
  const ring = new RecentEvents(0, { eventsMax: 100, bytesMax: 10_000 })
  const event = (stream: string, position: number, bytes: number) =>
    ({ stream, position, data: new Uint8Array(bytes) }) as RecordedEvent
  ring.cover(['a-', 'b-'], 0)
  ring.push([event('b-1', 1, 10)], 1)
  for (let position = 2; position <= 1_000; position++) ring.push([event('a-1', position, 10)], position)
  const held = (): RecordedEvent[] => ring.take(0, 10_000, () => true).events
  t.ok(held().length <= 100)
  t.notOk(ring.isWhole(['b-'], 0), 'one of these was dropped')
  t.ok(ring.isWhole(['b-'], 1))
  t.notOk(ring.isWhole(['a-'], 500))
  t.ok(ring.isWhole(['a-'], 950))
  t.same(
    ring.take(0, 5, ({ stream }) => stream === 'b-1'),
    { events: [], next: ring.end },
  )
  for (let position = 1_001; position <= 1_010; position++) ring.push([event('a-1', position, 4_000)], position)
  t.ok(held().reduce((sum, { data }) => sum + data.byteLength, 0) <= 10_000)
  ring.cover(['a-', 'b-', 'c-'], 1_010)
  t.notOk(ring.isWhole(['c-'], 1_009))
  t.ok(ring.isWhole(['c-1'], 1_010))
})

/** A subscription that brings what it is told to, as the client's does. */
class ToldSubscription extends Readable {
  constructor() {
    super({ objectMode: true, highWaterMark: 10_000, read: () => undefined })
  }

  bring(position: number): void {
    this.push(recordedAt(position))
  }

  async unsubscribe(): Promise<void> {}
}

const recordedAt = (position: number): RecordedEvent => ({
  ...newEvent(),
  id: String(position),
  stream: 'a-1',
  revision: position,
  position,
  loggedAt: 0,
})

/** Follows over such a subscription. `hint` tells how far it has come, as the server does between events. */
const toldFollowing = (from: number | undefined, first: () => Readable, eventsMax = 500) => {
  const subscription = new ToldSubscription()
  let hint = (_position: number): void => undefined
  const client = {
    subscribeToAll: ({ filter }: { filter: { checkpointReached(of: object, at: { commit: bigint }): void } }) => {
      hint = (position) => filter.checkpointReached(subscription, { commit: BigInt(position) })
      return subscription
    },
    readAll: first,
  }
  const connection = { client, credentials: {}, deadlineMs: 60_000 } as unknown as Connection
  const batches = followPrefixes(connection, ['a-'], from, new AbortController().signal, eventsMax)
  return { subscription, batches, hint: (position: number) => hint(position) }
}

test('a checkpoint never passes events that a full subscription leaves behind', async (t) => {
  const { subscription, batches, hint } = toldFollowing(undefined, () => Readable.from([]))
  const next = batches.next()
  subscription.emit('confirmation')
  for (let position = 1; position <= 520; position++) subscription.bring(position)
  const seen: FollowBatch[] = [(await next).value!]
  hint(5_000)
  hint(10_000)
  for await (const batch of batches) seen.push(batch)
  const events = seen.flatMap((batch) => batch.events)
  t.equal(events.length, 512, 'it was full')
  t.equal(seen.at(-1)?.checkpoint, events.at(-1)?.position, 'whoever goes on from there misses nothing')
})

test('a checkpoint never passes events that come while the event in front is looked for', async (t) => {
  const found = new Readable({ objectMode: true, read: () => undefined })
  const { subscription, batches, hint } = toldFollowing(50, () => found)
  const next = batches.next()
  subscription.emit('confirmation')
  subscription.emit('caughtUp')
  await new Promise((resume) => setImmediate(resume)) // until it waits for what is found
  subscription.bring(100)
  hint(5_000)
  hint(10_000)
  found.push(recordedAt(50))
  found.push(null)
  t.match(await next, { value: { events: [], checkpoint: 50 } })
  t.match(await batches.next(), { value: { events: [{ position: 100 }], checkpoint: 100 } })
  t.match(await batches.next(), { value: { events: [], checkpoint: 5_000 } }, 'what was passed counts once it was')
  await batches.return(undefined)
})

test('an event that was found in front and comes once more takes no others with it', async (t) => {
  const { subscription, batches, hint } = toldFollowing(50, () => Readable.from([recordedAt(100)]), 1)
  const next = batches.next()
  subscription.emit('confirmation')
  subscription.emit('caughtUp')
  t.match(await next, { value: { events: [{ position: 100 }], checkpoint: 100 } })
  t.match(await batches.next(), { value: { events: [], checkpoint: 100 } })
  for (const position of [100, 101, 102]) subscription.bring(position)
  hint(5_000)
  hint(10_000)
  t.match(await batches.next(), { value: { events: [], checkpoint: 100 } })
  for (const position of [101, 102])
    t.match(await batches.next(), { value: { events: [{ position }], checkpoint: position } })
  await batches.return(undefined)
})
