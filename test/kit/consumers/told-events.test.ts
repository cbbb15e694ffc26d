import { test, type Test } from 'tap'
import type { Broadcast } from '../../../src/engines/broadcast.ts'
import { encodeJson, type NewEvent, type RecordedEvent } from '../../../src/kernel/event.ts'
import { PartitionFeed } from '../../../src/kit/consumers/partition-feed.ts'
import { ToldEvents } from '../../../src/kit/consumers/told-events.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { FaultyBroadcast } from '../../support/faulty-broadcast.ts'
import { folderOf } from '../../support/folder-of.ts'
import { openGappedLog } from '../../support/gapped-log.ts'
import { keepErrors } from '../../support/open-services.ts'
import { seeded } from '../../support/random.ts'
import { until } from '../../support/service.ts'

const STREAM = 'locations-0'

/** Two processes that follow one stream of one log, append to it, and tell each other what. */
const open = async (t: Test) => {
  const clock = new FakeClock()
  const log = await openGappedLog({ path: folderOf(t), clock })
  const counts = { read: 0, followed: 0, unfollowed: 0, decoded: 0 }
  const { read, follow } = log
  log.read = (...question) => {
    counts.read++
    return read(...question)
  }
  log.follow = (source, checkpoint, signal, eventsMax) => {
    counts.followed++
    signal.addEventListener('abort', () => counts.unfollowed++)
    return follow(source, checkpoint, signal, eventsMax)
  }
  const broadcast = new FaultyBroadcast()
  const failures: unknown[] = []
  let n = 0
  const open = async (name: string) => {
    const told = new ToldEvents({ broadcast: broadcast.of(name), clock }, ['x'])
    const feed = new PartitionFeed<number>({
      log,
      told,
      streamOf: (partition) => `locations-${partition}`,
      decode: ({ data }) => {
        counts.decoded++
        return JSON.parse(Buffer.from(data).toString()).n
      },
      logger: keepErrors(failures),
    })
    const own = told.telling(log)
    /** Revisions, by what was handled. */
    const seen: number[] = []
    await feed.add({ name, load: async () => -1, handle: (entry) => void seen.push(entry) }, 0)
    const append = async (): Promise<void> => {
      const mine = n++
      const event = eventOf(mine)
      const { revision } = await own.append(STREAM, [event], 'any')
      appended.set(revision, mine)
      feed.offer(0, revision, 0, mine)
    }
    return { feed, seen, append }
  }
  const appended = new Map<number, number>()
  const [a, b] = [await open('a'), await open('b')]
  t.teardown(async () => {
    await Promise.all([a.feed.close(), b.feed.close()])
    await log.close()
  })
  const inOrder = (): number[] => [...appended].sort(([one], [other]) => one - other).map(([, mine]) => mine)
  return { a, b, broadcast, counts, failures, inOrder }
}

const eventOf = (n: number): NewEvent => ({
  id: `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`,
  type: 'x',
  data: encodeJson({ n }),
  isJson: true,
  metadata: {},
})

test('each process handles every entry once and in order, however much of what is told is lost, late or comes twice', async (t) => {
  const { a, b, broadcast, failures, inOrder } = await open(t)
  const random = seeded(11)
  broadcast.wayOf = () => ({
    times: random() < 0.1 ? 0 : random() < 0.1 ? 2 : 1,
    turns: Math.floor(random() * (random() < 0.05 ? 40 : 3)),
  })
  for (let i = 0; i < 400; i++) {
    const both = [a, b].filter(() => random() < 0.8)
    await Promise.all(both.map(({ append }) => append()))
  }
  await until('all to be handled', () => [a, b].every(({ seen }) => seen.length >= inOrder().length))
  t.ok(inOrder().length > 500)
  for (const { seen } of [a, b]) t.same(seen, inOrder())
  t.same(failures, [])
})

test('while all is told, the log is neither followed nor read, and each entry is decoded once where it was not appended', async (t) => {
  const { a, b, counts, inOrder } = await open(t)
  await until('following to end', async () => {
    await Promise.all([a.append(), b.append()])
    return counts.unfollowed === 2
  })
  const count = inOrder().length
  await until('all so far to be handled', () => [a, b].every(({ seen }) => seen.length === count))
  const before = { ...counts }
  for (let i = 0; i < 200; i++) await Promise.all([a.append(), b.append()])
  await until('all to be handled', () => [a, b].every(({ seen }) => seen.length === count + 400))
  for (const { seen } of [a, b]) t.same(seen, inOrder())
  t.same([counts.followed, counts.read], [before.followed, before.read])
  t.equal(counts.decoded - before.decoded, 400)
})

test('the last entry is handled though nobody told it and nothing comes after it', async (t) => {
  const { a, b, broadcast, counts, inOrder } = await open(t)
  await until('following to end', async () => {
    await Promise.all([a.append(), b.append()])
    return counts.unfollowed === 2
  })
  broadcast.wayOf = () => ({ times: 0, turns: 0 })
  await a.append()
  await until('it to be handled', () => b.seen.length === inOrder().length)
  t.same(b.seen, inOrder())
})

test('events are told as they stand in the log, but for their ids and metadata, and only those of the named types', async (t) => {
  const log = await openGappedLog({ path: folderOf(t), clock: new FakeClock() })
  t.teardown(() => log.close())
  const broadcast = new FaultyBroadcast()
  const toldBy = (name: string, of: Broadcast): ToldEvents =>
    new ToldEvents({ broadcast: of, clock: new FakeClock() }, [name, 'ż'])
  const heard: RecordedEvent[] = []
  toldBy('x', broadcast.of('b')).hear(STREAM, (event) => heard.push(event))
  const events = [eventOf(1), { ...eventOf(2), type: 'y' }, { ...eventOf(3), type: 'ż', isJson: false }]
  await toldBy('x', broadcast.of('a'))
    .telling(log)
    .append(STREAM, [eventOf(0)], 'none')
  const { position } = await toldBy('x', broadcast.of('a')).telling(log).append(STREAM, events, 0)
  await until('them to be heard', () => heard.length === 3)
  const logged = await log.read(STREAM, 1, 3)
  t.same(
    heard.slice(1).map(({ id: _id, metadata: _metadata, ...rest }) => rest),
    [logged[0], logged[2]].map(({ id: _id, metadata: _metadata, ...rest }) => ({
      ...rest,
      position,
      data: new Uint8Array(rest.data),
    })),
  )
  t.equal(heard[2].data.byteOffset % 8, 0, 'numbers in it can be read where they stand')
})
