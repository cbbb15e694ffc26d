import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { LogCopy } from '../../src/cli/transfer/copy-log.ts'
import { CarriedLog, COPY_STREAM, readCopyState } from '../../src/engines/carried-log.ts'
import { type EventLog, type Source, WrongRevision } from '../../src/engines/event-log.ts'
import { openEventstoredbLog } from '../../src/engines/eventstoredb-log/eventstoredb-log.ts'
import { openLmdbEventLog } from '../../src/engines/lmdb-log/lmdb-log.ts'
import { encodeJson, type NewEvent, type RecordedEvent } from '../../src/kernel/event.ts'
import { realClock } from '../contracts/clocks.ts'
import { openEventstoredbServer } from '../support/eventstoredb/server.ts'
import { folderOf } from '../support/folder-of.ts'
import { openGappedLog } from '../support/gapped-log.ts'

const ALL: Source = { prefixes: ['fact-', 'other-', 'late-', 'erased-', 'locations-'] }

const json = (n: number): NewEvent => ({
  id: randomUUID(),
  type: 'happened.v1',
  data: encodeJson({ n, text: 'żółć' }),
  isJson: true,
  metadata: { organizationId: 'o', actor: `user:${n}` },
})

const binary = (n: number): NewEvent => ({
  id: randomUUID(),
  type: 'points.v1',
  data: new Uint8Array(n % 700).fill(n),
  isJson: false,
  metadata: {},
})

/** Facts of many streams, streams that begin late, one that was erased and written anew, one that was erased for good. */
const fill = async (log: EventLog, count: number): Promise<void> => {
  for (let n = 0; n < count; n++) {
    await log.append(`fact-${n % 37}`, [json(n)], 'any')
    await log.append(`locations-${n % 4}`, [binary(n), binary(n + 1)], 'any')
    if (n % 3 === 0) await log.append(`other-${n % 5}`, [json(n)], 'any')
    await log.append('late-1', [json(n)], 'any')
    if (n === count / 2) for (const id of [1, 2]) await log.append(`erased-${id}`, [json(n), json(n)], 'none')
  }
  for (const id of [1, 2]) await log.erase(`erased-${id}`)
  await log.append('erased-1', [json(0)], 'none')
  await log.truncateBefore('late-1', count - 3)
  await log.truncateBefore('locations-2', 20)
}

const openSource = async (t: Test, count = 300, open = openLmdbEventLog): Promise<EventLog> => {
  const from = await open({ path: join(folderOf(t), 'from'), clock: realClock })
  t.teardown(() => from.close())
  await fill(from, count)
  return from
}

const openTarget = async (t: Test): Promise<EventLog> => {
  const server = await openEventstoredbServer({ path: join(folderOf(t), randomUUID()) })
  t.teardown(() => server.close())
  const to = await openEventstoredbLog({ url: server.url, newId: randomUUID, now: Date.now })
  t.teardown(() => to.close())
  return to
}

const copied = async (from: EventLog, to: EventLog): Promise<EventLog> => {
  const copy = await LogCopy.begin({ from, to, logId: 'one', newId: randomUUID, windowEventsMax: 100 })
  await copy.run()
  await copy.verify()
  await copy.end()
  return viewOf(to)
}

const viewOf = async (log: EventLog): Promise<EventLog> => {
  const state = await readCopyState(log)
  if (state?.endedAt === undefined) throw new Error('the copy has not ended')
  return new CarriedLog(log, state)
}

/** All that comes behind a checkpoint until nothing more is there, and the checkpoints that were told. */
const followed = async (log: EventLog, source: Source, after?: number, max?: number) => {
  const end = new AbortController()
  const events: RecordedEvent[] = []
  const checkpoints: number[] = []
  for await (const batch of log.follow(source, after, end.signal, max)) {
    events.push(...batch.events)
    checkpoints.push(batch.checkpoint)
    if (batch.caughtUp) end.abort()
  }
  return { events, checkpoints }
}

const plain = (events: readonly RecordedEvent[]) =>
  events.map((event) => ({ ...event, data: Buffer.from(event.data).toString('hex') }))

const isSame = async (t: Test, from: EventLog, to: EventLog): Promise<void> => {
  const wanted = await followed(from, ALL)
  const { events, checkpoints } = await followed(to, ALL)
  t.same(plain(events), plain(wanted.events), 'the same events in the same order, with their places and times')
  t.same(
    checkpoints,
    [...checkpoints].sort((one, other) => one - other),
    'checkpoints rise',
  )
  const heads = await Promise.all(
    ['late-1', 'locations-2', 'erased-1', 'erased-2', 'none-1'].map((stream) => to.head(stream)),
  )
  t.same(
    heads,
    await Promise.all(['late-1', 'locations-2', 'erased-1', 'erased-2', 'none-1'].map((stream) => from.head(stream))),
  )
  t.ok((await to.headPosition()) >= (await from.headPosition()))
  for (const at of [0, 7, 100, 500, wanted.events[wanted.events.length >> 1].position, await from.headPosition()]) {
    const expected = plain(wanted.events.filter(({ position }) => position > at))
    t.same(plain((await followed(to, ALL, at, 50)).events), expected, `behind position ${at}`)
  }
  for (const stream of ['late-1', 'locations-2', 'fact-3']) {
    t.same(plain(await to.read(stream, 'end', 3, 'backwards')), plain(await from.read(stream, 'end', 3, 'backwards')))
    t.same(plain(await to.read(stream, 0, 1000)), plain(await from.read(stream, 0, 1000)))
    t.same(plain(await to.read(stream, 60, 1000)), plain(await from.read(stream, 60, 1000)))
    t.same(plain(await to.read(stream, 5, 1000, 'backwards')), plain(await from.read(stream, 5, 1000, 'backwards')))
    t.same(plain((await followed(to, { stream }, 70)).events), plain((await followed(from, { stream }, 70)).events))
  }
}

test('a copied log answers as the one that it came from, and goes on', async (t) => {
  const from = await openSource(t)
  const to = await copied(from, await openTarget(t))
  await isSame(t, from, to)
  const end = await followed(to, ALL)
  const appended = await to.append('late-1', [json(1), json(2)], await from.head('late-1'))
  t.equal(appended.revision, (await from.head('late-1')) + 2)
  t.ok(appended.position > (end.checkpoints.at(-1) ?? 0))
  const later = await followed(to, ALL, end.checkpoints.at(-1))
  t.same(later.events.map(({ revision, position, stream }) => [stream, revision, position]).at(-1), [
    'late-1',
    appended.revision,
    appended.position,
  ])
  t.equal(later.events.length, 2)
  await t.rejects(to.append('late-1', [json(3)], 4), new WrongRevision('late-1', appended.revision))
  await to.truncateBefore('late-1', appended.revision)
  t.same(
    (await to.read('late-1', 0, 10)).map(({ revision }) => revision),
    [appended.revision],
  )
})

test('the way back, and a copy of a copy', async (t) => {
  const from = await openSource(t, 60, openGappedLog)
  const once = await copied(from, await openTarget(t))
  await once.append('fact-1', [json(7)], 'any')
  await once.append('other-secret', [json(8)], 'none')
  await once.erase('other-secret')
  const back = await openLmdbEventLog({ path: join(folderOf(t), 'back'), clock: realClock })
  t.teardown(() => back.close())
  const again = await copied(once, back)
  t.same((await followed(again, { prefixes: ['other-secret'] })).events, [], 'what was erased is not copied')
  for (const stream of ['fact-1', 'late-1', 'erased-1', 'locations-2'])
    t.same(plain(await again.read(stream, 0, 1000)), plain(await once.read(stream, 0, 1000)), stream)
})

test('a copy that is cut off at any moment goes on where it was, and puts nothing twice', async (t) => {
  const from = await openSource(t, 120)
  const to = await openTarget(t)
  let cuts = 0
  for (let limit = 1; ; limit += 9) {
    let left = limit
    const dying = new Proxy(to, {
      get: (log, name: keyof EventLog) =>
        name !== 'append'
          ? (log[name] as () => unknown).bind(log)
          : async (...args: Parameters<EventLog['append']>) => {
              // Every other death comes after the append that nobody heard of.
              if (--left < 0) throw new Error('killed')
              const answer = await log.append(...args)
              if (left === 0 && limit % 2 === 0) throw new Error('killed')
              return answer
            },
    })
    try {
      await copied(from, dying)
      break
    } catch (error) {
      t.equal((error as Error).message, 'killed')
      cuts++
    }
  }
  t.ok(cuts > 5, `${cuts} times`)
  await isSame(t, from, await viewOf(to))
})

test('a log that has something else is not filled, and one that went wrong is found out', async (t) => {
  const from = await openSource(t, 30)
  const tried = await openTarget(t)
  await tried.append('waymark-doctor', [json(1)], 'any')
  await tried.erase('waymark-doctor')
  await copied(from, tried) // the server tells of it until it scavenges

  const taken = await openTarget(t)
  await taken.append('log-origin', [json(1)], 'none')
  await t.rejects(copied(from, taken), { message: /not empty/ })

  const other = await openTarget(t)
  await other.append('fact-3', [json(1)], 'none')
  await t.rejects(copied(from, other), { message: /stream fact-3 .* has other events/ })

  const spoilt = await openTarget(t)
  const begun = { from, to: spoilt, newId: randomUUID }
  const copy = await LogCopy.begin({ ...begun, logId: 'one' })
  await t.rejects(LogCopy.begin({ ...begun, logId: 'two' }), { message: /copy of another log/ })
  await copy.run()
  await spoilt.append('fact-3', [json(1)], 'any')
  await t.rejects(copy.verify(), { message: /differs in streams fact-…: 30 events were read and 31 are there/ })
  t.equal((await readCopyState(spoilt))?.endedAt, undefined)
  t.ok((await spoilt.head(COPY_STREAM)) > 0)
})
