import { test } from 'tap'
import {
  ASIDE_BYTES_MAX,
  ASIDE_MAX,
  ASIDE_RETRY_MS,
  type InboxOptions,
  MqttInbox,
  UNDER_WAY_MAX,
} from '../../src/features/devices/mqtt-inbox.ts'
import { Failure } from '../../src/kernel/errors.ts'
import { FakeClock } from '../support/fake-clock.ts'

/** An inbox whose store does as told, by topic. */
const openInbox = () => {
  const clock = new FakeClock()
  const failures = new Map<string, Error>()
  const held = new Map<string, () => void>()
  const tries: string[] = []
  const acknowledged: string[] = []
  let isHolding = false
  const store: InboxOptions['store'] = async ({ topic }) => {
    tries.push(topic)
    if (isHolding) await new Promise<void>((go) => held.set(topic, go))
    const failure = failures.get(topic) ?? failures.get('*')
    if (failure !== undefined) throw failure
  }
  const inbox = new MqttInbox({
    store,
    clock,
    onFailure: () => undefined,
  })
  let room = 0
  const bring = (topic: string, sender = topic): void => {
    const acknowledge = (): void => void acknowledged.push(topic)
    inbox.take({ topic, sender, payload: Buffer.alloc(0), acknowledge }, () => void room++)
  }
  /** With QoS 0. */
  const bringUnkept = (topic: string, sender = topic): void =>
    inbox.take({ topic, sender, payload: Buffer.alloc(0) }, () => void room++)
  const settled = async (): Promise<void> => {
    for (let i = 0; i < 20; i++) await Promise.resolve()
  }
  return {
    inbox,
    clock,
    failures,
    tries,
    acknowledged,
    bring,
    bringUnkept,
    settled,
    room: () => room,
    hold: (holds: boolean) => {
      isHolding = holds
    },
    letGo: (topic: string) => held.get(topic)?.(),
  }
}

test('messages are acknowledged in their order, each once it is stored', async (t) => {
  const { bring, acknowledged, hold, letGo, settled } = openInbox()
  hold(true)
  for (const topic of ['a', 'b', 'c']) bring(topic)
  letGo('c')
  letGo('b')
  await settled()
  t.same(acknowledged, [], 'b and c wait for a')
  letGo('a')
  await settled()
  t.same(acknowledged, ['a', 'b', 'c'])
})

test('messages of one sender are stored one after the other, also where the first has to be tried again', async (t) => {
  const { bring, acknowledged, failures, clock, settled, tries } = openInbox()
  failures.set('van 1', new Failure('overloaded'))
  bring('van 1', 'van')
  bring('van 2', 'van')
  bring('bus 1', 'bus')
  await settled()
  t.same(tries, ['van 1', 'bus 1'])
  t.same(acknowledged, [])
  failures.clear()
  clock.advance(100)
  await settled()
  t.same(tries, ['van 1', 'bus 1', 'van 1', 'van 2'])
  t.same(acknowledged, ['van 1', 'van 2', 'bus 1'])
})

test('what a sender without a tracker sends later is put aside at once', async (t) => {
  const { bring, acknowledged, failures, clock, settled, tries } = openInbox()
  failures.set('new 1', new Failure('unknown_tracker'))
  bring('new 1', 'new')
  bring('new 2', 'new')
  await settled()
  bring('new 3', 'new')
  bring('known')
  await settled()
  t.same(acknowledged, ['known'])
  failures.clear()
  clock.advance(ASIDE_RETRY_MS)
  await settled()
  t.same(tries, ['new 1', 'known', 'new 1', 'new 2', 'new 3'])
  t.same(acknowledged, ['known', 'new 1', 'new 2', 'new 3'])
})

test('no more are taken than may be under way', async (t) => {
  const { bring, hold, letGo, settled, room, inbox } = openInbox()
  hold(true)
  for (let i = 0; i < UNDER_WAY_MAX; i++) bring(`m${i}`)
  t.equal(room(), UNDER_WAY_MAX - 1, 'after the last there is no room')
  letGo('m0')
  await settled()
  t.equal(room(), UNDER_WAY_MAX)
  t.equal(inbox.waiting, UNDER_WAY_MAX - 1)
})

test('while an engine does not answer, all wait and are tried again', async (t) => {
  const { bring, acknowledged, failures, clock, tries, settled } = openInbox()
  failures.set('*', new Failure('engine_down'))
  bring('a')
  bring('b')
  await settled()
  for (const code of ['overloaded', 'rate_limited', 'unauthenticated'] as const) {
    failures.set('*', new Failure(code))
    clock.advance(5_000)
    await settled()
  }
  t.same(acknowledged, [])
  t.ok(tries.length >= 6)
  failures.clear()
  clock.advance(5_000)
  await settled()
  t.same(acknowledged, ['a', 'b'])
})

test('a message whose tracker does not exist holds up no other, and is stored once the tracker does', async (t) => {
  const { bring, acknowledged, failures, clock, settled, inbox } = openInbox()
  failures.set('new', new Failure('unknown_tracker'))
  bring('new')
  bring('known')
  await settled()
  t.same(acknowledged, ['known'])
  t.equal(inbox.waiting, 1)
  failures.clear()
  clock.advance(ASIDE_RETRY_MS)
  await settled()
  t.same(acknowledged, ['known', 'new'])
  t.equal(inbox.waiting, 0)
})

test('with too many that wait for a tracker no more is taken, and none is acknowledged unstored', async (t) => {
  const { bring, acknowledged, failures, clock, settled, inbox, room } = openInbox()
  failures.set('*', new Failure('unknown_tracker'))
  for (let i = 0; i < ASIDE_MAX; i++) {
    bring(`m${i}`)
    if (i % 10 === 0) await settled()
  }
  await settled()
  t.same(acknowledged, [])
  t.same([inbox.waiting, inbox.isFull], [ASIDE_MAX, true])
  const before = room()
  bring('last')
  await settled()
  t.equal(room(), before, 'the next one stays with the broker')
  failures.delete('*')
  for (let i = 1; i < ASIDE_MAX; i++) failures.set(`m${i}`, new Failure('unknown_tracker'))
  clock.advance(ASIDE_RETRY_MS)
  await settled()
  t.same([...acknowledged].sort(), ['last', 'm0'])
  t.same([inbox.isFull, room() > before], [false, true])
})

test('messages of QoS 0 wait for their tracker too, and make room for the others, the oldest first', async (t) => {
  const { bring, bringUnkept, acknowledged, failures, clock, settled, inbox, tries } = openInbox()
  const unknown = new Failure('unknown_tracker')
  const later = 10
  const topics = [...Array(ASIDE_MAX + later).keys()].map((i) => `m${i}`)
  for (const [i, topic] of topics.entries()) {
    failures.set(topic, unknown)
    bringUnkept(topic, `sender ${i % 5}`)
    await settled()
  }
  t.equal(inbox.isFull, false)
  bring('known')
  await settled()
  t.same(acknowledged, ['known'])

  failures.clear()
  tries.length = 0
  for (let i = 0; inbox.waiting > 0 && i < ASIDE_MAX; i++) {
    clock.advance(ASIDE_RETRY_MS)
    await settled()
  }
  const ofSender = (sender: number, all: readonly string[]): string[] =>
    all.filter((topic) => Number(topic.slice(1)) % 5 === sender)
  for (const sender of [0, 1, 2, 3, 4])
    t.same(ofSender(sender, tries), ofSender(sender, topics.slice(later + 1)), 'all but the oldest, in their order')
  t.equal(inbox.waiting, 0)
})

test('long messages that wait for a tracker fill it sooner', async (t) => {
  const { failures, settled, inbox } = openInbox()
  failures.set('*', new Failure('unknown_tracker'))
  const message = { topic: 'a', sender: 'a', payload: Buffer.alloc(ASIDE_BYTES_MAX / 2), acknowledge: () => undefined }
  inbox.take(message, () => undefined)
  await settled()
  t.equal(inbox.isFull, false)
  inbox.take(message, () => undefined)
  await settled()
  t.equal(inbox.isFull, true)
})

test('a failure nobody foresaw is the message’s own: the others go on', async (t) => {
  const { bring, acknowledged, failures, settled } = openInbox()
  failures.set('bad', new TypeError('x is not a function'))
  bring('bad')
  bring('good')
  await settled()
  t.same(acknowledged, ['good'])
})

test('what belongs to a connection that is gone is neither acknowledged nor tried again', async (t) => {
  const { bring, acknowledged, failures, clock, hold, letGo, settled, inbox, tries } = openInbox()
  failures.set('b', new Failure('engine_down'))
  bring('b')
  await settled()
  hold(true)
  bring('a')
  inbox.end()
  letGo('a')
  clock.advance(60_000)
  await settled()
  t.same(acknowledged, [])
  t.equal(tries.filter((topic) => topic === 'b').length, 1)
})
