import { test, type Test } from 'tap'
import type { EventLog } from '../../../src/engines/event-log.ts'
import { Failure } from '../../../src/kernel/errors.ts'
import { encodeJson, type NewEvent } from '../../../src/kernel/event.ts'
import { idFrom } from '../../../src/kit/commands/ids.ts'
import { defer } from '../../../src/kit/consumers/deferred.ts'
import { OwnedStream, StreamLost, takeStream } from '../../../src/kit/consumers/owned-stream.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { folderOf } from '../../support/folder-of.ts'
import { openGappedLog } from '../../support/gapped-log.ts'
import { until } from '../../support/service.ts'

const STREAM = 'notes-1'

const eventOf = (n: number): NewEvent => ({
  id: idFrom('note', n),
  type: 'noted',
  data: encodeJson({ n }),
  isJson: true,
  metadata: {},
})

const open = async (t: Test) => {
  const clock = new FakeClock()
  const log = await openGappedLog({ path: folderOf(t), clock })
  t.teardown(() => log.close())
  let owners = 0
  const take = async (over: Pick<EventLog, 'append'> = log, bytesMax = 1_000) => {
    const appended: number[] = []
    const lost: number[] = []
    const failures: unknown[] = []
    const revision = await takeStream(log, STREAM, { ...eventOf(-1), id: idFrom('taken', ++owners), type: 'taken' })
    const stream = new OwnedStream<number>({
      log: over,
      clock,
      stream: STREAM,
      revision,
      bytesMax,
      eventsOf: (entries) => entries.map(eventOf),
      onAppended: (entries, first) => appended.push(...entries.map((n, i) => (first + i) * 100 + n)),
      onLost: (entries) => lost.push(...entries),
      onFailure: (error) => failures.push(error),
    })
    return { stream, appended, lost, failures }
  }
  const noted = async () => (await log.read(STREAM, 0, 100)).filter(({ type }) => type === 'noted').length
  return { log, clock, take, noted }
}

test('entries are told in order with their revisions, as many in one append as fit', async (t) => {
  const { log, take } = await open(t)
  const appends: number[] = []
  const counting = {
    append: (...args: Parameters<EventLog['append']>) => {
      appends.push(args[1].length)
      return log.append(...args)
    },
  }
  const { stream, appended } = await take(counting, 200)
  for (const n of [1, 2, 3]) stream.push(n, 100)
  stream.push(4, 500)
  await stream.settled()
  t.same(appends, [2, 1, 1], 'one that is larger than an append goes alone')
  t.same(appended, [101, 202, 303, 404])
  t.equal(stream.head, 4)
})

test('whoever takes the stream fences the owner before off: nothing of it is appended any more', async (t) => {
  const { take, noted } = await open(t)
  const before = await take()
  const after = await take()
  before.stream.push(1, 1)
  await t.rejects(before.stream.settled(), StreamLost)
  before.stream.push(2, 1)
  t.same(before.lost, [1, 2])
  after.stream.push(3, 1)
  await after.stream.settled()
  t.equal(await noted(), 1)
})

test('an engine that is down is tried again with the same events', async (t) => {
  const { log, clock, take, noted } = await open(t)
  const ids: string[][] = []
  let failures = 2
  const failing = {
    append: async (...args: Parameters<EventLog['append']>) => {
      ids.push(args[1].map(({ id }) => id))
      const done = await log.append(...args)
      if (failures-- > 0) throw new Failure('engine_down') // it is there, and the answer was lost
      return done
    },
  }
  const { stream, appended } = await take(failing)
  stream.push(1, 1)
  await until('it to come through', () => {
    clock.advance(500)
    return appended.length > 0
  })
  t.same(ids, [ids[0], ids[0], ids[0]])
  t.equal(await noted(), 1)
})

test('what is in flight at the end goes through, and what waits is lost', async (t) => {
  const { log, take, noted } = await open(t)
  const held = defer<void>()
  let isHeld = false
  const slow = {
    append: async (...args: Parameters<EventLog['append']>) => {
      isHeld = true
      await held.promise
      return log.append(...args)
    },
  }
  const { stream, appended, lost } = await take(slow)
  stream.push(1, 1)
  await until('the append', () => isHeld)
  stream.push(2, 1)
  stream.close()
  t.same(lost, [2])
  held.resolve()
  await t.rejects(stream.settled(), StreamLost, 'nobody takes what is lost for stored')
  stream.push(3, 1)
  t.same([appended, lost], [[101], [2, 3]])
  t.equal(await noted(), 1)
})
