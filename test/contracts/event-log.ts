import { randomUUID } from 'node:crypto'
import { type Test, test } from 'tap'
import {
  APPEND_BYTES_MAX,
  type EventLog,
  type FollowBatch,
  type Source,
  WrongRevision,
} from '../../src/engines/event-log.ts'
import { Failure } from '../../src/kernel/errors.ts'
import { encodeJson, type NewEvent, type RecordedEvent } from '../../src/kernel/event.ts'

/** An engine under test. The log may hold other streams already; every test uses names of its own. */
export interface EventLogEngine {
  /** Opens a log; the suite closes it. */
  open(t: Test): Promise<EventLog>
  /** Promises that this engine cannot keep, each with the reason. */
  skip?: { promise: string; reason: string }[]
}

type Check = (t: Test, log: EventLog) => Promise<void>

/** Proves the promises of `EventLog` against one engine. */
export const eventLogContract = (name: string, engine: EventLogEngine): void => {
  for (const [promise, check] of Object.entries(PROMISES)) {
    const skipped = engine.skip?.find((entry) => entry.promise === promise)
    test(`${name}: ${promise}`, { skip: skipped?.reason ?? false, timeout: 900_000 }, async (t) => {
      const log = await engine.open(t)
      t.teardown(() => log.close())
      await check(t, log)
    })
  }
}

/** A new event of a type, with data of so many bytes. */
export const newEvent = (type = 'thingDone.v1', bytes = 20): NewEvent => ({
  id: randomUUID(),
  type,
  data: new Uint8Array(bytes).fill(bytes % 251),
  isJson: false,
  metadata: {},
})

const newEvents = (count: number): NewEvent[] => Array.from({ length: count }, () => newEvent())

/** A category that no other test uses. */
const newCategory = (): string => `c${randomUUID().replaceAll('-', '')}`

const written = ({ id, type, data, isJson, metadata }: NewEvent) => ({
  id,
  type,
  data: Buffer.from(data).toString('hex'),
  isJson,
  metadata,
})

const idsOf = (events: readonly { id: string }[]): string[] => events.map(({ id }) => id)

/** Follows until `enough` says so of everything seen so far. */
const followUntil = async (
  log: EventLog,
  source: Source,
  checkpoint: number | undefined,
  enough: (events: readonly RecordedEvent[], batch: FollowBatch) => boolean,
  batchEventsMax?: number,
): Promise<{ events: RecordedEvent[]; batches: FollowBatch[] }> => {
  const events: RecordedEvent[] = []
  const batches: FollowBatch[] = []
  const ended = new AbortController()
  for await (const batch of log.follow(source, checkpoint, ended.signal, batchEventsMax)) {
    batches.push(batch)
    events.push(...batch.events)
    if (enough(events, batch)) ended.abort()
  }
  return { events, batches }
}

const isRising = (numbers: readonly number[]): boolean =>
  numbers.every((number, index) => index === 0 || number > (numbers[index - 1] as number))

const PROMISES: { [promise: string]: Check } = {
  'an event is read as it was appended': async (t, log) => {
    const stream = `${newCategory()}-${randomUUID()}`
    const events: NewEvent[] = [
      {
        id: randomUUID(),
        type: 'hubCreated.v1',
        data: encodeJson({ name: 'Zürich 🚚' }),
        isJson: true,
        metadata: { actor: 'user:1', organizationId: 'o' },
      },
      {
        id: randomUUID(),
        type: 'pointsRecorded.v1',
        data: new Uint8Array([0, 255, 1, 254]),
        isJson: false,
        metadata: { $correlationId: 'c' },
      },
      { id: randomUUID(), type: 'nothing', data: new Uint8Array(0), isJson: false, metadata: {} },
    ]
    const before = Date.now()
    const appended = await log.append(stream, events, 'none')
    const read = await log.read(stream, 0, 10)
    t.same(read.map(written), events.map(written))
    t.same(
      read.map((event) => [event.stream, event.revision]),
      [0, 1, 2].map((revision) => [stream, revision]),
    )
    t.equal(appended.revision, 2)
    t.equal(appended.position, read[2]?.position)
    t.ok(isRising(read.map(({ position }) => position)))
    for (const { loggedAt } of read) t.ok(Math.abs(loggedAt - before) < 600_000, 'loggedAt is a time in ms')
  },

  'reads page forwards and backwards': async (t, log) => {
    const stream = `${newCategory()}-1`
    const events = newEvents(25)
    await log.append(stream, events, 'none')
    const revisions = async (...question: [number | 'end', number, ('forwards' | 'backwards')?]) =>
      (await log.read(stream, ...question)).map(({ revision }) => revision)
    t.same(await revisions(0, 3), [0, 1, 2])
    t.same(await revisions(23, 10), [23, 24])
    t.same(await revisions(25, 10), [])
    t.same(await revisions('end', 3, 'backwards'), [24, 23, 22])
    t.same(await revisions(1, 10, 'backwards'), [1, 0])
    t.same(await revisions(0, 1, 'backwards'), [0])
    t.same(await log.read(`${stream}-unknown`, 0, 10), [])
    t.same(await log.read(`${stream}-unknown`, 'end', 10, 'backwards'), [])
  },

  'an expected revision that is not there is refused with the one that is': async (t, log) => {
    const stream = `${newCategory()}-1`
    await t.rejects(log.append(stream, [newEvent()], 0), { name: 'WrongRevision', actual: -1, stream })
    await log.append(stream, newEvents(2), 'none')
    await t.rejects(log.append(stream, [newEvent()], 'none'), { name: 'WrongRevision', actual: 1 })
    await t.rejects(log.append(stream, [newEvent()], 0), { name: 'WrongRevision', actual: 1 })
    await t.rejects(log.append(stream, [newEvent()], 2), { name: 'WrongRevision', actual: 1 })
    await log.append(stream, [newEvent()], 1)
    await log.append(stream, [newEvent()], 'any')
    t.equal(await log.head(stream), 3)
  },

  'of appends with one expected revision one wins': async (t, log) => {
    const stream = `${newCategory()}-1`
    await log.append(stream, [newEvent()], 'none')
    for (let round = 0; round < 5; round += 1) {
      const rivals = Array.from({ length: 12 }, () => newEvents(2))
      const outcomes = await Promise.allSettled(rivals.map((events) => log.append(stream, events, round * 2)))
      const won = outcomes.flatMap((outcome, index) => (outcome.status === 'fulfilled' ? [index] : []))
      t.equal(won.length, 1, 'one append wins')
      for (const outcome of outcomes) {
        if (outcome.status === 'rejected') t.match(outcome.reason, { actual: round * 2 + 2 })
        if (outcome.status === 'rejected') t.ok(outcome.reason instanceof WrongRevision)
      }
      t.same(idsOf(await log.read(stream, round * 2 + 1, 10)), idsOf(rivals[won[0] as number] as NewEvent[]))
    }
  },

  'a repeated append answers what the first one answered': async (t, log) => {
    const stream = `${newCategory()}-1`
    const first = newEvents(3)
    const appended = await log.append(stream, first, 'none')
    t.same(await log.append(stream, first, 'none'), appended)
    const second = newEvents(2)
    const later = await log.append(stream, second, 2)
    t.same(await log.append(stream, first, 'none'), appended, 'although more was appended since')
    t.same(await log.append(stream, second, 2), later)
    await t.rejects(
      log.append(stream, [...first.slice(0, 2), newEvent()], 'none'),
      { name: 'WrongRevision', actual: 4 },
      'one other id is another append',
    )
    await t.rejects(
      log.append(stream, second, 1),
      { name: 'WrongRevision', actual: 4 },
      'another expected revision is another append',
    )
    await t.rejects(
      log.append(stream, [...second, newEvent()], 2),
      { name: 'WrongRevision', actual: 4 },
      'one more event is another append',
    )
    t.same(idsOf(await log.read(stream, 0, 10)), idsOf([...first, ...second]))
  },

  'an append that is repeated while the first is under way is stored once': async (t, log) => {
    const stream = `${newCategory()}-1`
    const events = newEvents(2)
    const answers = await Promise.all([1, 2, 3].map(() => log.append(stream, events, 'none')))
    t.same(answers[1], answers[0])
    t.same(answers[2], answers[0])
    t.equal(await log.head(stream), 1)
  },

  'an append takes APPEND_BYTES_MAX, and nothing of one that is larger': async (t, log) => {
    const stream = `${newCategory()}-1`
    await log.append(stream, [newEvent('big', APPEND_BYTES_MAX)], 'none')
    const half = APPEND_BYTES_MAX / 2
    await log.append(stream, [newEvent('big', half), newEvent('big', half)], 0)
    await t.rejects(log.append(stream, [newEvent('big', half), newEvent('big', half + 1)], 2), {
      name: 'Failure',
      code: 'too_large',
    })
    const read = await log.read(stream, 0, 10)
    t.same(
      read.map(({ data }) => data.byteLength),
      [APPEND_BYTES_MAX, half, half],
    )
    t.equal(await log.head(stream), 2)
  },

  'revisions have no gaps and positions rise under concurrent appends': async (t, log) => {
    const category = newCategory()
    const streams = Array.from({ length: 8 }, (_, index) => `${category}-${index}`)
    const appends = streams.flatMap((stream) =>
      Array.from({ length: 30 }, (_, index) => log.append(stream, newEvents(1 + (index % 3)), 'any')),
    )
    const answers = await Promise.all(appends)
    t.equal(new Set(answers.map(({ position }) => position)).size, answers.length, 'no position twice')
    for (const stream of streams) {
      const events = await log.read(stream, 0, 1000)
      t.same(
        events.map(({ revision }) => revision),
        events.map((_, index) => index),
      )
      t.equal(events.length, 60)
      t.ok(isRising(events.map(({ position }) => position)))
    }
  },

  'appends of one stream keep the order in which they were asked for': async (t, log) => {
    const stream = `${newCategory()}-1`
    const events = newEvents(100)
    const appended = await Promise.all(
      events.map((event, index) => log.append(stream, [event], index === 0 ? 'none' : index - 1)),
    )
    t.same(
      appended.map(({ revision }) => revision),
      events.map((_, index) => index),
    )
    t.same(idsOf(await log.read(stream, 0, 200)), idsOf(events))
  },

  'head and headPosition': async (t, log) => {
    const stream = `${newCategory()}-1`
    t.equal(await log.head(stream), -1)
    const { position } = await log.append(stream, newEvents(3), 'none')
    t.equal(await log.head(stream), 2)
    const head = await log.headPosition()
    t.ok(head >= position)
    const next = await log.append(stream, [newEvent()], 2)
    t.ok(next.position > head)
  },

  'a stream that was asked for while it was made is there once its append resolved': async (t, log) => {
    const category = newCategory()
    const wrong: string[] = []
    await Promise.all(
      Array.from({ length: 50 }, async (_, i) => {
        const stream = `${category}-${i}`
        const asking = Array.from({ length: 3 }, () => log.read(stream, 0, 1))
        const appending = log.append(stream, [newEvent()], 'none')
        asking.push(log.read(stream, 0, 1), log.read(stream, 'end', 1, 'backwards'))
        await appending
        const isThere = (await log.head(stream)) === 0 && (await log.read(stream, 0, 1)).length === 1
        await Promise.all(asking)
        if (!isThere || (await log.read(stream, 'end', 1, 'backwards')).length !== 1) wrong.push(stream)
      }),
    )
    t.same(wrong, [])
  },

  'more than ten thousand events of a stream are paged and followed': async (t, log) => {
    const stream = `${newCategory()}-1`
    const ids: string[] = []
    for (let append = 0; append < 24; append += 1) {
      const events = newEvents(500)
      ids.push(...idsOf(events))
      await log.append(stream, events, append === 0 ? 'none' : append * 500 - 1)
    }
    const forwards: string[] = []
    for (let from = 0; ; from += 1_000) {
      const page = await log.read(stream, from, 1_000)
      forwards.push(...idsOf(page))
      if (page.length < 1_000) break
    }
    t.strictSame(forwards, ids)
    const backwards = await log.read(stream, 'end', ids.length + 1, 'backwards')
    t.strictSame(idsOf(backwards).reverse(), ids)
    const { events, batches } = await followUntil(log, { stream }, undefined, (seen) => seen.length >= ids.length, 700)
    t.strictSame(idsOf(events), ids)
    t.ok(batches.every((batch) => batch.events.length <= 700))
  },

  'a follower of a stream sees what is there and what comes, once and in order': async (t, log) => {
    const stream = `${newCategory()}-1`
    await log.append(stream, newEvents(5), 'none')
    const live = (async () => {
      for (let append = 0; append < 40; append += 1) await log.append(stream, newEvents(1 + (append % 4)), 'any')
    })()
    const { events, batches } = await followUntil(log, { stream }, undefined, (seen) => seen.length >= 105, 7)
    await live
    t.strictSame(
      events.map(({ revision }) => revision),
      Array.from({ length: 105 }, (_, revision) => revision),
    )
    t.strictSame(idsOf(events), idsOf(await log.read(stream, 0, 200)))
    for (const batch of batches) if (batch.events.length > 0) t.equal(batch.checkpoint, batch.events.at(-1)?.revision)
    t.ok(batches.every((batch) => batch.events.length <= 7))
  },

  'a follower is told when it is caught up, also of a stream without events': async (t, log) => {
    const stream = `${newCategory()}-1`
    const empty = await followUntil(log, { stream }, undefined, (_, batch) => batch.caughtUp)
    t.same(empty.events, [])
    await log.append(stream, newEvents(10), 'none')
    const all = await followUntil(log, { stream }, undefined, (_, batch) => batch.caughtUp, 4)
    t.equal(all.events.length, 10)
    const rest = await followUntil(log, { stream }, 6, (_, batch) => batch.caughtUp)
    t.same(
      rest.events.map(({ revision }) => revision),
      [7, 8, 9],
    )
    const none = await followUntil(log, { stream }, 9, (_, batch) => batch.caughtUp)
    t.same(none.events, [])
    t.equal(none.batches.at(-1)?.checkpoint, 9)
    const prefixed = await followUntil(log, { prefixes: [`${stream}-none`] }, undefined, (_, batch) => batch.caughtUp)
    t.same(prefixed.events, [])
  },

  'a follower goes on from any checkpoint': async (t, log) => {
    const category = newCategory()
    for (let append = 0; append < 30; append += 1) await log.append(`${category}-${append % 4}`, newEvents(2), 'any')
    const source = { prefixes: [`${category}-`] }
    const { events, batches } = await followUntil(log, source, undefined, (seen) => seen.length >= 60, 9)
    let seen = 0
    for (const batch of batches) {
      seen += batch.events.length
      if (seen === 60) continue
      const rest = await followUntil(log, source, batch.checkpoint, (more) => more.length >= 60 - seen)
      t.strictSame(idsOf(rest.events), idsOf(events.slice(seen)))
    }
    const middle = events[20] as RecordedEvent
    const rest = await followUntil(log, source, middle.position, (more) => more.length >= 39)
    t.strictSame(idsOf(rest.events), idsOf(events.slice(21)), 'the position of an event is a checkpoint')
  },

  'a follower of prefixes sees every stream that begins with one, in the order of the log, and no other': async (
    t,
    log,
  ) => {
    const category = newCategory()
    const wanted = [`${category}a-1`, `${category}a-2`, `${category}b-runs-1`, `${category}b-runs-2`]
    const foreign = [`${category}-1`, `${category}aa-1`, `${category}b-1`, `${category}b-run`, `x${category}a-1`]
    const source = { prefixes: [`${category}a-`, `${category}b-runs-`] }
    const append = async (stream: string) => {
      const ids: string[] = []
      for (let count = 0; count < 20; count += 1) {
        const events = newEvents(1 + (count % 2))
        ids.push(...idsOf(events))
        await log.append(stream, events, 'any')
      }
      return ids
    }
    await Promise.all([...wanted, ...foreign].map(append))
    const following = followUntil(log, source, undefined, (seen) => seen.length >= 4 * 60, 11)
    await Promise.all([...wanted, ...foreign].map(append))
    const { events, batches } = await following
    t.ok(isRising(events.map(({ position }) => position)))
    t.equal(events.length, 240)
    for (const stream of wanted) {
      const own = events.filter((event) => event.stream === stream)
      t.strictSame(idsOf(own), idsOf(await log.read(stream, 0, 100)), stream)
    }
    t.same([...new Set(events.map(({ stream }) => stream))].sort(), [...wanted].sort())
    t.ok(
      batches.every(
        (batch, index) => index === 0 || batch.checkpoint >= (batches[index - 1] as FollowBatch).checkpoint,
      ),
    )
  },

  'a stream of a new category reaches a follower that waits': async (t, log) => {
    const prefix = newCategory()
    let wake = () => {}
    const asleep = new Promise<void>((resolve) => {
      wake = resolve
    })
    const following = followUntil(log, { prefixes: [prefix] }, undefined, (seen, batch) => {
      if (batch.caughtUp) wake()
      return seen.length >= 2
    })
    await asleep
    await log.append(`${prefix}one-1`, [newEvent()], 'none')
    await log.append(`${prefix}two-1`, [newEvent()], 'none')
    t.same(
      (await following).events.map(({ stream }) => stream),
      [`${prefix}one-1`, `${prefix}two-1`],
    )
  },

  'what a follower sees can be read, and an append is seen soon after it resolved': async (t, log) => {
    const stream = `${newCategory()}-1`
    const ended = new AbortController()
    const seen = new Map<string, number>()
    const unreadable: number[] = []
    const following = (async () => {
      for await (const { events } of log.follow({ stream }, undefined, ended.signal)) {
        for (const event of events) {
          seen.set(event.id, performance.now())
          const [read] = await log.read(stream, event.revision, 1)
          if (read?.id !== event.id) unreadable.push(event.revision)
        }
        if (seen.size === 50) ended.abort()
      }
    })()
    const resolved = new Map<string, number>()
    for (let count = 0; count < 50; count += 1) {
      const event = newEvent()
      await log.append(stream, [event], 'any')
      resolved.set(event.id, performance.now())
    }
    await following
    t.same(unreadable, [])
    const delays = [...resolved].map(([id, at]) => (seen.get(id) as number) - at).sort((a, b) => a - b)
    t.ok((delays[25] as number) < 2_000, `half of the events are seen within ${delays[25]} ms, whatever else runs`)
  },

  'a follower ends by its signal alone': async (t, log) => {
    const stream = `${newCategory()}-1`
    await log.append(stream, newEvents(50), 'none')
    const gone = new AbortController()
    gone.abort()
    for await (const _ of log.follow({ stream }, undefined, gone.signal)) t.fail('a signal that was aborted before')

    const waiting = new AbortController()
    let batches = 0
    for await (const batch of log.follow({ stream }, undefined, waiting.signal)) {
      batches += 1
      // Aborted from outside while the follower waits for more.
      if (batch.caughtUp) setImmediate(() => waiting.abort())
    }
    t.ok(batches >= 1)

    const busy = new AbortController()
    let seen = 0
    for await (const { events } of log.follow({ prefixes: [stream] }, undefined, busy.signal, 5)) {
      seen += events.length
      if (seen >= 10) busy.abort()
    }
    t.ok(seen < 50, 'no batch follows the abort')
    for await (const _ of log.follow({ stream }, undefined, new AbortController().signal)) break
    await log.append(stream, [newEvent()], 'any')
  },

  'several followers each see everything': async (t, log) => {
    const category = newCategory()
    const followers = Array.from({ length: 5 }, (_, index) =>
      followUntil(
        log,
        index % 2 === 0 ? { prefixes: [category] } : { stream: `${category}-1` },
        undefined,
        (seen) => seen.length >= 60,
      ),
    )
    for (let count = 0; count < 30; count += 1) await log.append(`${category}-1`, newEvents(2), 'any')
    const expected = idsOf(await log.read(`${category}-1`, 0, 100))
    for (const follower of followers) t.strictSame(idsOf((await follower).events), expected)
  },

  'a follower that does not read holds up neither appends nor other followers': async (t, log) => {
    const [slow, quick] = [`${newCategory()}-1`, `${newCategory()}-1`]
    const large = (): NewEvent => newEvent('large', 100_000)
    for (let i = 0; i < 60; i++) await log.append(slow, [large()], i === 0 ? 'none' : i - 1)
    const ended = new AbortController()
    const following = log.follow({ stream: slow }, undefined, ended.signal, 1)[Symbol.asyncIterator]()
    await following.next()
    for (let i = 0; i < 20; i++) await log.append(quick, [large()], i === 0 ? 'none' : i - 1)
    const { events } = await followUntil(log, { stream: quick }, undefined, (seen) => seen.length === 20)
    t.equal(events.length, 20)
    const seen = [0]
    while (seen.length < 60) {
      const { value } = await following.next()
      seen.push(...(value as FollowBatch).events.map(({ revision }) => revision))
    }
    t.same(seen, [...Array(60).keys()], 'and it goes on where it stood, without a hole')
    ended.abort()
    await following.return?.()
  },

  'truncated events are gone at once, the others keep their revisions': async (t, log) => {
    const category = newCategory()
    const stream = `${category}-1`
    await log.append(stream, newEvents(30), 'none')
    await log.append(`${category}-2`, newEvents(3), 'none')
    await log.truncateBefore(stream, 20)
    const revisions = (events: readonly RecordedEvent[]) => events.map(({ revision }) => revision)
    const left = [20, 21, 22, 23, 24, 25, 26, 27, 28, 29]
    t.same(revisions(await log.read(stream, 0, 100)), left)
    t.same(revisions(await log.read(stream, 5, 2)), [20, 21])
    t.same(revisions(await log.read(stream, 'end', 100, 'backwards')), [...left].reverse())
    t.same(await log.read(stream, 10, 5, 'backwards'), [])
    t.same(revisions((await followUntil(log, { stream }, undefined, (seen) => seen.length >= 10)).events), left)
    t.same(revisions((await followUntil(log, { stream }, 3, (seen) => seen.length >= 10)).events), left)
    const isLast = ({ stream: name, revision }: RecordedEvent) => name === `${category}-2` && revision === 2
    const prefixed = await followUntil(log, { prefixes: [category] }, undefined, (seen) => seen.some(isLast))
    const ofStream = revisions(prefixed.events.filter((event) => event.stream === stream))
    t.same(
      ofStream.slice(-left.length),
      left,
      'by prefixes what is hidden may be seen for a while, what is left always is',
    )
    t.equal(await log.head(stream), 29)
    await log.truncateBefore(stream, 10)
    t.same(revisions(await log.read(stream, 0, 100)), left, 'an earlier truncation brings nothing back')
    const { revision } = await log.append(stream, [newEvent()], 29)
    t.equal(revision, 30)
    for (const before of [25, 28]) {
      await log.truncateBefore(stream, before)
      t.equal((await log.read(stream, 0, 1))[0].revision, before, 'and a later one hides more')
    }
  },

  'truncating keeps the last event': async (t, log) => {
    const stream = `${newCategory()}-1`
    await log.append(stream, newEvents(5), 'none')
    for (const before of [5, 4, 1_000]) {
      await log.truncateBefore(stream, before)
      t.same(
        (await log.read(stream, 0, 10)).map(({ revision }) => revision),
        [4],
      )
      t.equal(await log.head(stream), 4)
    }
    await t.rejects(log.append(stream, [newEvent()], 'none'), { name: 'WrongRevision', actual: 4 })
    await log.append(stream, [newEvent()], 4)
    t.same(
      (await log.read(stream, 0, 10)).map(({ revision }) => revision),
      [4, 5],
      'what was kept is not hidden by what comes later',
    )
    await log.truncateBefore(`${stream}-unknown`, 5)
    t.equal(await log.head(`${stream}-unknown`), -1)
  },

  'an erased stream has no events, and may be written anew above them': async (t, log) => {
    const category = newCategory()
    const stream = `${category}-1`
    const others = await log.append(`${category}-2`, newEvents(3), 'none')
    const first = newEvents(5)
    await log.append(stream, first, 'none')
    const ended = new AbortController()
    const seen: RecordedEvent[] = []
    const following = (async () => {
      for await (const { events } of log.follow({ stream }, 4, ended.signal)) {
        seen.push(...events)
        if (seen.length >= 2) ended.abort()
      }
    })()
    await log.erase(stream)
    await log.erase(stream)
    t.same([await log.read(stream, 0, 10), await log.read(stream, 'end', 10, 'backwards')], [[], []])
    t.equal(await log.head(stream), -1)
    const empty = await followUntil(log, { stream }, undefined, (_, batch) => batch.caughtUp)
    t.same(empty.events, [])
    await t.rejects(log.append(stream, [newEvent()], 4), { name: 'WrongRevision', actual: -1 })
    const again = newEvents(2)
    const appended = await log.append(stream, again, 'none')
    t.same(await log.append(stream, again, 'none'), appended, 'a repeated append is known')
    await t.rejects(log.append(stream, first, 'none'), { name: 'WrongRevision', actual: appended.revision })
    t.ok(appended.revision >= 6, 'revisions go on')
    const read = await log.read(stream, 0, 10)
    t.same(idsOf(read), idsOf(again))
    t.equal(await log.head(stream), appended.revision)
    await following
    t.same(idsOf(seen), idsOf(again), 'who followed goes on')
    await log.append(stream, [newEvent()], appended.revision)
    t.equal((await log.read(`${category}-2`, 0, 10)).length, others.revision + 1, 'no other stream is touched')
    await log.erase(`${stream}-unknown`)
    t.equal(await log.head(`${stream}-unknown`), -1)
    await log.append(`${stream}-unknown`, [newEvent()], 'none')
    for (const expected of ['none', 'any'] as const) {
      await log.erase(stream)
      const event = newEvent()
      const { revision } = await log.append(stream, [event], expected)
      t.same(idsOf(await log.read(stream, revision, 10)), [event.id], 'what was written is there to be read')
    }
  },

  'a long truncation meanwhile lets appends and reads through': async (t, log) => {
    const stream = `${newCategory()}-1`
    for (let append = 0; append < 10; append += 1) await log.append(stream, newEvents(400), 'any')
    await log.truncateBefore(stream, 3_990)
    const { revision } = await log.append(stream, [newEvent()], 3_999)
    t.equal(revision, 4_000)
    const { events } = await followUntil(log, { stream }, undefined, (seen) => seen.length >= 11)
    t.equal(events[0]?.revision, 3_990)
  },

  'ping answers, and a closed log is down': async (t, log) => {
    await log.ping()
    const stream = `${newCategory()}-1`
    await log.append(stream, [newEvent()], 'none')
    await log.close()
    const calls: (() => Promise<unknown>)[] = [
      () => log.ping(),
      () => log.append(stream, [newEvent()], 0),
      () => log.read(stream, 0, 1),
      () => log.head(stream),
    ]
    for (const call of calls) {
      await t.rejects(call, { code: 'engine_down' })
      await t.rejects(call, Failure)
    }
    await log.close()
  },
}
