import { test } from 'tap'
import { openGappedLog } from '../../support/gapped-log.ts'
import { resultStream, type BacktestPage } from '../../../src/features/backtests/events.ts'
import type { Transition } from '../../../src/features/transitions/events.ts'
import { decodeJson } from '../../../src/kernel/event.ts'
import { systemClock } from '../../../src/kernel/system-clock.ts'
import { ResultWriter } from '../../../src/reactors/backtests/result-writer.ts'
import { folderOf } from '../../support/folder-of.ts'
import { seeded } from '../../support/random.ts'

const BOUNDS = { runTransitions: 70, pageBytes: 1_500, transitionsMax: 2_000 }

/** Transitions by tracker, each one's in the order of time; many at equal times. */
const found = (trackers: number, each: number): Transition[] => {
  const random = seeded(11)
  return Array.from({ length: trackers }, (_, tracker) => {
    let at = Math.floor(random() * 50)
    return Array.from({ length: each }, (_, i): Transition => {
      at += 1 + Math.floor(random() * 5)
      const ids = {
        _id: `${tracker}.${i}`,
        organizationId: 'o',
        trackerId: `t${tracker}`,
        geofenceId: 'f',
        geofenceGroupId: 'g',
      }
      return {
        kind: 'transition',
        ...ids,
        type: i % 2 === 0 ? 'entry' : 'leave',
        at,
        cause: 'point',
        point: { recordedAt: at, lat: 1, lng: 2 },
      }
    })
  }).flat()
}

const write = async (writer: ResultWriter, transitions: readonly Transition[]) => {
  for (let i = 0; i < transitions.length; i += 9) await writer.add(transitions.slice(i, i + 9))
  return writer.end()
}

test('a result of many runs is one sorted sequence, and nothing else is left of them', async (t) => {
  const log = await openGappedLog({ path: folderOf(t), clock: systemClock })
  t.teardown(() => log.close())
  const job = { backtestId: 'b', organizationId: 'o' }
  const kept = async (attempt: number) =>
    (await log.read(resultStream('b', attempt), 0, 10_000)).map(({ revision, data }) => ({
      revision,
      bytes: data.byteLength,
      page: decodeJson<BacktestPage>(data),
    }))
  const interrupted = await ResultWriter.open(log, { ...job, attempt: 1 }, BOUNDS)
  await interrupted.add(found(3, 40))
  t.ok((await kept(1)).length > 0)

  const transitions = found(20, 60)
  const result = await write(await ResultWriter.open(log, { ...job, attempt: 2 }, BOUNDS), transitions)
  t.same(await kept(1), [], 'what an attempt before left is gone')
  const pages = await kept(2)
  t.strictSame(
    pages.flatMap(({ page }) => page.transitions),
    [...transitions].sort((a, b) => a.at - b.at),
    'equal times in the order in which they came',
  )
  t.strictSame(
    result,
    { attempt: 2, first: pages[0].revision, last: pages.at(-1)?.revision, transitions: transitions.length },
    'runs are gone',
  )
  t.ok(
    pages.every(({ bytes }) => bytes < BOUNDS.pageBytes + 100),
    'no page is larger than it may be',
  )
  await t.rejects(
    interrupted.add(found(3, 40)),
    { name: 'WrongRevision' },
    'whoever was overtaken while it wrote is refused by the log',
  )
  const late = await write(await ResultWriter.open(log, { ...job, attempt: 1 }, BOUNDS), found(3, 40))
  t.equal(late.attempt, undefined)
  t.equal((await kept(2)).length, pages.length, 'and who had not yet begun to write leaves the result as it is')

  const few = await write(await ResultWriter.open(log, { ...job, attempt: 3 }, BOUNDS), found(1, 5))
  t.match(few, { attempt: 3, transitions: 5 })
  t.same([...(await kept(1)), ...(await kept(2))], [])
  t.equal((await kept(3)).flatMap(({ page }) => page.transitions).length, 5, 'one run is the result')
  const none = await write(await ResultWriter.open(log, { ...job, attempt: 4 }, BOUNDS), [])
  t.ok(none.last < none.first)
  t.same(await kept(4), [])
  await t.rejects(write(await ResultWriter.open(log, { ...job, attempt: 5 }, BOUNDS), found(50, 60)), {
    code: 'too_large',
  })
})
