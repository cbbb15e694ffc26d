import { test, type Test } from 'tap'
import { openGappedLog } from '../../support/gapped-log.ts'
import { encodeJson, type RecordedEvent } from '../../../src/kernel/event.ts'
import { PartitionFeed } from '../../../src/kit/consumers/partition-feed.ts'
import { defer } from '../../../src/kit/consumers/deferred.ts'
import { PageSize } from '../../../src/kit/consumers/pages.ts'
import { ConsumerTurn } from '../../../src/kit/consumers/consumer-turn.ts'
import { FedConsumer, type PartitionConsumer } from '../../../src/kit/consumers/partition-consumer.ts'
import { until } from '../../support/service.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { folderOf } from '../../support/folder-of.ts'
import { keepErrors } from '../../support/open-services.ts'
import { seeded } from '../../support/random.ts'

const STREAM = 'locations-0'

const open = async (t: Test) => {
  const log = await openGappedLog({ path: folderOf(t), clock: new FakeClock() })
  let decoded = 0
  const failures: unknown[] = []
  const feed = new PartitionFeed<number>({
    log,
    streamOf: (partition) => `locations-${partition}`,
    decode: (event: RecordedEvent) => {
      decoded++
      return JSON.parse(Buffer.from(event.data).toString()).n
    },
    logger: keepErrors(failures),
  })
  t.teardown(async () => {
    await feed.close()
    await log.close()
  })
  let n = 0
  const append = async (padding?: string): Promise<{ revision: number; n: number }> => {
    const mine = n++
    const id = `00000000-0000-7000-8000-${String(mine).padStart(12, '0')}`
    const { revision } = await log.append(
      STREAM,
      [{ id, type: 'x', data: encodeJson({ n: mine, padding }), isJson: true, metadata: {} }],
      'any',
    )
    return { revision, n: mine }
  }
  /** Of this process, which offers it. */
  const appendOwn = async (loggedAt = 0): Promise<void> => {
    const { revision, n } = await append()
    feed.offer(0, revision, loggedAt, n)
  }
  return { log, feed, append, appendOwn, failures, decodedCount: () => decoded }
}

const collector = (
  name: string,
  from = -1,
  slow?: () => Promise<void> | undefined,
): PartitionConsumer<number> & { seen: number[] } => {
  const seen: number[] = []
  return {
    name,
    seen,
    load: async () => from,
    handle: (entry) => {
      seen.push(entry)
      return slow?.()
    },
  }
}

test('a consumer has caught up when it has handled what was logged before it came', async (t) => {
  const { feed, append } = await open(t)
  for (let i = 0; i < 100; i++) await append()
  const gate = defer()
  const slow = collector('slow', -1, () => gate.promise)
  await feed.add(slow, 0)
  let seen: number | undefined
  const caughtUp = feed.caughtUp(slow, 0).then(() => (seen = slow.seen.length))
  await until('it to begin', () => slow.seen.length > 0)
  t.equal(seen, undefined)
  gate.resolve()
  await caughtUp
  t.equal(seen, 100)
  const fresh = collector('fresh', 99)
  await feed.add(fresh, 0)
  await feed.caughtUp(fresh, 0)
  t.same(fresh.seen, [], 'nothing was to be handled')
})

test('a page while catching up has many small events, and few large ones', async (t) => {
  const { log, feed, append } = await open(t)
  const read = t.capture(log, 'read', log.read)
  const pages = (): number[] =>
    read()
      .filter(({ args }) => args[1] !== 'end')
      .map(({ args }) => args[2])
  const caughtUp = async (name: string, from: number): Promise<number[]> => {
    const consumer = collector(name, from)
    await feed.add(consumer, 0)
    await feed.caughtUp(consumer, 0)
    return consumer.seen
  }
  for (let i = 0; i < 100; i++) await append()
  await caughtUp('small', -1)
  t.same(pages(), [1, 64, 64], 'nothing is known of the sizes at first')
  const padding = 'x'.repeat(100_000)
  for (let i = 0; i < 20; i++) await append(padding)
  await caughtUp('large', 99)
  pages()
  t.same(await caughtUp('another', 99), upTo(120).slice(100))
  t.same(pages(), [5, 5, 5, 5], 'it has learned from the others')
})

const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n)

test('each consumer gets every entry once and in order, offered or read, whoever appended', async (t) => {
  const { feed, append } = await open(t)
  for (let i = 0; i < 100; i++) await append()
  const random = seeded(7)
  const fast = collector('fast')
  const slow = collector('slow', -1, () =>
    random() < 0.2 ? new Promise((resume) => setTimeout(resume, random() * 5)) : undefined,
  )
  await feed.add(fast, 0)
  await feed.add(slow, 0)
  for (let i = 100; i < 1_000; i++) {
    const { revision, n } = await append()
    if (random() < 0.7) feed.offer(0, revision, 0, n, random() < 0.1 ? 40_000 : 1) // the rest another process appended
    if (random() < 0.05) await new Promise((resume) => setTimeout(resume, random() * 10))
  }
  await until('all to be handled', () => fast.seen.length >= 1_000 && slow.seen.length >= 1_000)
  t.same(fast.seen, upTo(1_000))
  t.same(slow.seen, upTo(1_000))
})

test('a consumer that keeps up is given what was appended without reading it again', async (t) => {
  const { feed, appendOwn, decodedCount } = await open(t)
  const slow = collector('slow', -1, () => new Promise((resume) => setImmediate(resume)))
  await feed.add(slow, 0)
  for (let i = 0; i < 300; i++) await appendOwn()
  await until('all to be handled', () => slow.seen.length === 300)
  t.same(slow.seen, upTo(300))
  t.equal(decodedCount(), 0, 'nothing was decoded, also while an entry was being handled')
})

/** How often the log was followed, and how often that has ended. */
const watchFollowing = ({ log }: Awaited<ReturnType<typeof open>>): { begun: number; ended: number } => {
  const counts = { begun: 0, ended: 0 }
  const follow = log.follow.bind(log)
  log.follow = (source, checkpoint, signal, eventsMax) => {
    counts.begun++
    signal.addEventListener('abort', () => counts.ended++)
    return follow(source, checkpoint, signal, eventsMax)
  }
  return counts
}

test('what this process alone appends is not read back, and what another one appends is heard all the same', async (t) => {
  const opened = await open(t)
  const { feed, append, appendOwn } = opened
  const following = watchFollowing(opened)
  const one = collector('one')
  await feed.add(one, 0)
  let count = 0
  const own = async (): Promise<void> => {
    await appendOwn()
    count++
  }
  await until('its following to end', async () => {
    await own()
    return following.ended > 0
  })
  await append() // of another process, between two own appends
  await own()
  await until('the one between', () => one.seen.length === count + 1)
  t.same(following, { begun: 2, ended: 1 }, 'it is followed again at the gap')
  await until('its following to end again', async () => {
    await own()
    return following.ended > 1
  })
  await append() // of another process, while this one is quiet
  await until('the one after it', () => one.seen.length === count + 2)
  t.same(one.seen, upTo(count + 2))
})

test('a partition that another process appends to as well goes on being followed', async (t) => {
  const opened = await open(t)
  const { feed, append, appendOwn } = opened
  const following = watchFollowing(opened)
  const one = collector('one')
  await feed.add(one, 0)
  for (let round = 1; round <= 20; round++) {
    await append()
    await until('what another process appended', () => one.seen.length === 4 * round - 3)
    for (let i = 0; i < 3; i++) await appendOwn()
    await until('what this one appended', () => one.seen.length === 4 * round)
  }
  t.same(following, { begun: 1, ended: 0 })
})

test('a consumer that is behind reads what it missed, and is given what comes meanwhile', async (t) => {
  const { log, feed, append } = await open(t)
  for (let i = 0; i < 100; i++) await append()
  const gate = defer()
  const slow = collector('slow', -1, () => (slow.seen.length === 1 ? gate.promise : undefined))
  let read = 0
  const readOf = log.read.bind(log)
  log.read = async (...question) => {
    const events = await readOf(...question)
    read += events.length
    return events
  }
  await feed.add(slow, 0)
  const quick = collector('quick', 99)
  await feed.add(quick, 0)
  await until('the slow one to begin', () => slow.seen.length === 1)
  for (let i = 0; i < 100; i++) await append() // of another process
  await until('the quick one to be given all', () => quick.seen.length === 100)
  gate.resolve()
  await until('all to be handled', () => slow.seen.length === 200)
  t.same(slow.seen, upTo(200))
  t.equal(read, 101, 'the last one when it came, and those that it missed')
})

test('own entries wait for those of another process before them: nothing is read for each consumer', async (t) => {
  const { log, feed, append, appendOwn, decodedCount } = await open(t)
  const consumers = [collector('one'), collector('two')]
  for (const consumer of consumers) await feed.add(consumer, 0)
  let reads = 0
  const read = log.read.bind(log)
  log.read = (...question) => {
    reads++
    return read(...question)
  }
  for (let i = 0; i < 150; i++) await Promise.all([append(), appendOwn()])
  await until('all to be handled', () => consumers.every(({ seen }) => seen.length === 300))
  for (const { seen } of consumers) t.same(seen, upTo(300))
  t.equal(reads, 0)
  t.equal(decodedCount(), 150, 'own ones are not decoded')
})

test('own entries are read with those before them where the log cannot be followed', async (t) => {
  const { log, feed, append, appendOwn } = await open(t)
  const one = collector('one')
  log.follow = async function* (_source, _checkpoint, signal) {
    if (!signal.aborted) await new Promise<void>((resume) => signal.addEventListener('abort', () => resume()))
  }
  await feed.add(one, 0)
  await append()
  for (let i = 0; i < 3; i++) await appendOwn()
  await until('all to be handled', () => one.seen.length === 4)
  t.same(one.seen, upTo(4))
})

test('entries that were truncated before they were read are told of, and those in memory are handled all the same', async (t) => {
  const { log, feed, append, appendOwn } = await open(t)
  for (let i = 0; i < 3; i++) await append()
  let skipped = 0
  const one = { ...collector('one', 0), skipped: () => void skipped++ }
  const gate = defer()
  let isReading = false
  const { read } = log
  log.read = async (stream, from, ...rest) => {
    if (from === 1) {
      isReading = true
      await gate.promise
    }
    return read.call(log, stream, from, ...rest)
  }
  await feed.add(one, 0)
  await until('it to read', () => isReading)
  for (let i = 0; i < 2; i++) await appendOwn()
  await log.truncateBefore(STREAM, 4)
  gate.resolve()
  await until('the last to be handled', () => one.seen.at(-1) === 4)
  t.same(one.seen, [3, 4])
  t.equal(skipped, 1)
})

test('a consumer that cannot go on without truncated entries is loaded anew', async (t) => {
  const { log, feed, append } = await open(t)
  for (let i = 0; i < 5; i++) await append()
  await log.truncateBefore(STREAM, 3)
  let loads = 0
  const one = {
    ...collector('one'),
    load: async () => [0, 2][loads++],
    skipped: () => {
      throw new Error('they are in a snapshot')
    },
  }
  await feed.add(one, 0)
  await until('the last to be handled', () => one.seen.at(-1) === 4)
  t.same(one.seen, [3, 4])
  t.equal(loads, 2)
})

test('a consumer that fails is loaded anew and goes on from its checkpoint', async (t) => {
  const { feed, appendOwn, failures } = await open(t)
  const seen: number[] = []
  let stored = -1
  let failsAt = 40
  const failing: PartitionConsumer<number> = {
    name: 'failing',
    load: async () => stored,
    handle: (entry) => {
      if (entry === failsAt) {
        failsAt = -1
        throw new Error('no room')
      }
      seen.push(entry)
      if (entry % 10 === 9) stored = entry
    },
  }
  await feed.add(failing, 0)
  for (let i = 0; i < 100; i++) await appendOwn()
  await until('all to be handled', () => seen.at(-1) === 99)
  t.match(failures, [{ consumer: 'failing', partition: 0, error: 'Error: no room' }])
  t.same(seen, upTo(100), 'it failed right behind its checkpoint, so nothing came twice')
})

test('lag counts what is in the log and not handled', async (t) => {
  const { feed, appendOwn } = await open(t)
  let release = (): void => {}
  const stuck = collector('stuck', -1, () => new Promise((resume) => (release = resume)))
  await feed.add(stuck, 0)
  for (let i = 0; i < 5; i++) await appendOwn(1_000)
  await until('the first to be under way', () => stuck.seen.length === 1)
  t.match(await feed.lags(3_000), [{ consumer: 'stuck', partition: '0', events: 5, seconds: 2 }])
  while (stuck.seen.length < 5) {
    release()
    await new Promise((resume) => setImmediate(resume))
  }
  release()
  await until('no lag', async () => (await feed.lags(9_000))[0].events === 0)
  t.equal((await feed.lags(9_000))[0].seconds, 0)
})

test('lag counts what is stored, where a consumer stores later than it handles', async (t) => {
  const { feed, append } = await open(t)
  let stored = -1
  const lazy = { ...collector('lazy'), storedThrough: () => stored }
  await feed.add(lazy, 0)
  for (let i = 0; i < 5; i++) {
    const { revision, n } = await append()
    feed.offer(0, revision, 1_000 + 500 * i, n)
  }
  await until('all to be handled', () => lazy.seen.length === 5)
  t.match(await feed.lags(4_000), [{ events: 5, seconds: 3 }])
  stored = 2
  t.match(await feed.lags(4_000), [{ events: 2, seconds: 1.5 }])
  stored = 4
  t.match(await feed.lags(4_000), [{ events: 0, seconds: 0 }])
})

test('lag knows what another process appended, heard of or not', async (t) => {
  const { feed, append } = await open(t)
  let release = (): void => {}
  const stuck = collector('stuck', -1, () => new Promise((resume) => (release = resume)))
  await feed.add(stuck, 0)
  await append()
  t.match(await feed.lags(0), [{ events: 1 }])
  await until('it to be under way', () => stuck.seen.length === 1)
  release()
})

test('a partition that goes is stored and forgotten, and goes on where it comes again', async (t) => {
  const { feed, append } = await open(t)
  const stored: number[] = []
  let at = -1
  const seen: number[] = []
  const consumer: PartitionConsumer<number> = {
    name: 'moving',
    load: async () => at,
    handle: (entry) => void seen.push(entry),
    leave: async () => {
      at = seen.length - 1
      stored.push(at)
    },
  }
  const other = collector('staying')
  await feed.add(consumer, 0)
  await feed.add(other, 0)
  const appendSome = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i++) {
      const { revision, n } = await append()
      feed.offer(0, revision, 0, n)
    }
  }
  await appendSome(10)
  await until('the first to be handled', () => seen.length === 10)
  await feed.remove(consumer, 0)
  await appendSome(10)
  await until('the other to go on', () => other.seen.length === 20)
  t.same([seen.length, stored], [10, [9]], 'nothing is handed over after it has gone')
  await feed.add(consumer, 0)
  await until('the rest', () => seen.length === 20)
  t.same(seen, upTo(20))
  await feed.remove(consumer, 0)
  await feed.remove(other, 0)
  t.same(await feed.lags(0), [], 'nobody is left')
  await appendSome(1)
  await feed.add(other, 0)
  await until('it begins anew from its checkpoint', () => other.seen.length === 41)
})

test('a consumer stops when what it loads has ended, which would bring back what is left', async (t) => {
  const { log, append, failures } = await open(t)
  const loading = defer<number>()
  let loads = 0
  const consumer: PartitionConsumer<number> = {
    name: 'failing',
    load: () => {
      loads++
      return loading.promise
    },
    handle: () => {
      throw new Error('not loaded')
    },
  }
  const options = { log, logger: keepErrors(failures), streamOf: () => STREAM, decode: () => 0 }
  const fed = new FedConsumer<number>({ ...options, page: new PageSize() }, 0, consumer, -1, new ConsumerTurn())
  const { revision } = await append()
  fed.start(revision)
  await until('it to be loaded anew', () => loads === 1)
  const order: string[] = []
  const begunMs = performance.now()
  const stopped = fed.stop(0).then(() => order.push('stopped'))
  await until('a handler to have had its time', () => order.length > 0 || performance.now() > begunMs + 50)
  order.push('loaded')
  loading.resolve(-1)
  await stopped
  t.same(order, ['loaded', 'stopped'])
})

test('a log that cannot be followed for a while is followed again', async (t) => {
  const { log, append } = await open(t)
  let follows = 0
  const failing: typeof log = Object.create(log, {
    follow: {
      value: (...args: Parameters<typeof log.follow>) => {
        if (follows++ < 2) throw new Error('the log is away')
        return log.follow(...args)
      },
    },
  })
  const failures: unknown[] = []
  const feed = new PartitionFeed<number>({
    log: failing,
    streamOf: (partition) => `locations-${partition}`,
    decode: ({ data }) => JSON.parse(Buffer.from(data).toString()).n,
    logger: keepErrors(failures),
  })
  t.teardown(() => feed.close())
  const consumer = collector('patient')
  await feed.add(consumer, 0)
  for (let i = 0; i < 3; i++) await append()
  await until('what others appended', () => consumer.seen.length === 3)
  t.same(consumer.seen, upTo(3))
  t.match(failures, [{ error: 'Error: the log is away' }, { error: 'Error: the log is away' }])
})

test('a partition whose end cannot be looked up is followed once it can', async (t) => {
  const { log, feed, append } = await open(t)
  const read = log.read.bind(log)
  log.read = async () => {
    throw new Error('the log is away')
  }
  const consumer = collector('patient')
  await append()
  await t.rejects(feed.add(consumer, 0), { message: 'the log is away' })
  log.read = read
  await feed.add(consumer, 0)
  await until('what was there', () => consumer.seen.length === 1)
  await append() // of another process
  await until('what comes', () => consumer.seen.length === 2)
})

test('who comes back while another one still leaves stays in the partition', async (t) => {
  const { feed, append, appendOwn } = await open(t)
  const leaving = defer()
  const slow = { ...collector('slow'), leave: () => leaving.promise }
  const quick = collector('quick')
  await feed.add(slow, 0)
  await feed.add(quick, 0)
  const left = feed.remove(slow, 0)
  await feed.remove(quick, 0)
  await feed.add(quick, 0)
  leaving.resolve()
  await left
  await appendOwn()
  await until('what was offered', () => quick.seen.length === 1)
  t.same(
    (await feed.lags(0)).map(({ consumer }) => consumer),
    ['quick'],
  )
  await feed.remove(quick, 0)
  await append()
  await feed.add(collector('another'), 0)
  await until('the end to be known', async () => (await feed.lags(0))[0].events === 0)
  t.same(quick.seen, [0], 'nothing is handed to who has left')
})

test('nothing is followed that was still being looked up when the feed was closed', async (t) => {
  const opened = await open(t)
  const following = watchFollowing(opened)
  const { log, feed } = opened
  const end = defer<RecordedEvent[]>()
  log.read = () => end.promise
  const adding = feed.add(collector('late'), 0)
  await feed.close()
  end.resolve([])
  await t.rejects(adding, { message: 'the feed is closed' })
  t.equal(following.begun, 0)
})

test('what another owner took is loaded anew though no entry comes, while it is still ours', async (t) => {
  const { feed, appendOwn, failures } = await open(t)
  const taken = collector('taken')
  let isOurs = false
  let loads = 0
  taken.load = async () => (loads++ === 0 ? -1 : 0)
  await feed.add(taken, 0, async () => isOurs)
  await appendOwn()
  await until('the first entry', () => taken.seen.length === 1)
  taken.onLost?.(0)
  await until('it to be refused', () => failures.some((one) => JSON.stringify(one).includes('another process has')))
  t.equal(loads, 1, 'whoever has it now is left alone')
  isOurs = true
  await until('it to be loaded', () => loads === 2)
  await appendOwn()
  await until('what comes then', () => taken.seen.length === 2)
  t.same(taken.seen, [0, 1], 'and nothing twice')
})

/** Consumers of several partitions that say what they handle, in the order in which they do. */
const ofPartitions = async (
  t: Test,
  partitions: readonly number[],
  handleOf: (name: string) => void | Promise<void>,
) => {
  const { log, feed, failures } = await open(t)
  const order: string[] = []
  const consumers = ['first', 'second'].map(
    (name): PartitionConsumer<number> => ({
      name,
      load: async () => -1,
      handle: (entry, partition) => {
        order.push(`${name} ${partition} ${entry}`)
        return handleOf(`${name} ${partition} ${entry}`)
      },
    }),
  )
  for (const partition of partitions) for (const consumer of consumers) await feed.add(consumer, partition)
  let made = 0
  /** One entry for each partition, offered together. */
  const beat = async (n: number): Promise<void> => {
    const appended = await Promise.all(
      partitions.map((partition) => {
        const id = `00000000-0000-7000-9000-${String(made++).padStart(12, '0')}`
        const event = { id, type: 'x', data: encodeJson({ n }), isJson: true, metadata: {} }
        return log.append(`locations-${partition}`, [event], 'any')
      }),
    )
    for (const [i, { revision }] of appended.entries()) feed.offer(partitions[i], revision, 0, n)
  }
  return { feed, order, beat, failures }
}

test('what several partitions got together is handled in one turn, consumer by consumer', async (t) => {
  const { order, beat } = await ofPartitions(t, [0, 1, 2], () => undefined)
  await beat(0)
  await until('the beat to be handled', () => order.length === 6)
  await beat(1)
  await until('the next one to be handled', () => order.length === 12)
  t.same(order.slice(6), ['first 0 1', 'first 1 1', 'first 2 1', 'second 0 1', 'second 1 1', 'second 2 1'])
})

test('a partition that takes long or fails in a turn holds up no other, and goes on where it was', async (t) => {
  const long = defer()
  let isFailing = true
  const { feed, order, beat, failures } = await ofPartitions(t, [0, 1, 2], (what) => {
    if (what === 'first 0 1') return long.promise
    if (what === 'first 1 1' && isFailing) {
      isFailing = false
      throw new Error('for once')
    }
  })
  await beat(0)
  await until('the beat to be handled', () => order.length === 6)
  await beat(1)
  await beat(2)
  await until('all others to be handled', () => order.filter((what) => what.endsWith('2')).length >= 4)
  t.notOk(order.includes('first 0 2'), 'what is under way comes first')
  long.resolve()
  await until('everything to be handled', async () => (await feed.lags(0)).every(({ events }) => events === 0))
  for (const partition of [0, 2]) {
    const seen = order.filter((what) => what.startsWith(`first ${partition}`))
    t.same(
      seen,
      [0, 1, 2].map((n) => `first ${partition} ${n}`),
    )
  }
  // From its checkpoint, as after any failure.
  const seen = order.filter((what) => what.startsWith('first 1'))
  t.same(seen, ['first 1 0', 'first 1 1', 'first 1 0', 'first 1 1', 'first 1 2'])
  t.match(failures, [{ error: 'Error: for once' }])
})
