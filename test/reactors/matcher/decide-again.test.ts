import { test } from 'tap'
import { DECIDED, transitionStream, type Decided } from '../../../src/features/transitions/events.ts'
import { decodeJson, encodeJson, type RecordedEvent } from '../../../src/kernel/event.ts'
import type { EventLog } from '../../../src/engines/event-log.ts'
import { decideAgain } from '../../../src/reactors/matcher/decide-again.ts'
import { FenceBook } from '../../../src/reactors/matcher/fence-book.ts'
import { MatcherWorld, ORG } from '../../support/matcher-world.ts'
import { batchOf, uuidOf } from '../../support/trace-batches.ts'
import { folderOf } from '../../support/folder-of.ts'
import { ringOf } from '../../support/ring.ts'

const fixOf = (tracker: number, i: number) => ({
  organizationId: ORG,
  trackerId: uuidOf(`tracker ${tracker}`),
  recordedAt: 1_000_000 + i * 10_000,
  latE7: 5_000 + tracker,
  lngE7: Math.round(Math.sin(i / 4 + tracker) * 20_000),
  flags: 0,
})

/** The log with another past: what each event of the transitions was is told otherwise. */
const retold = (log: EventLog, tell: (decided: Decided) => Decided): EventLog =>
  Object.create(log, {
    read: {
      value: async (...args: Parameters<EventLog['read']>): Promise<RecordedEvent[]> => {
        const events = await log.read(...args)
        if (args[0] !== transitionStream(0)) return events
        return events.map((event) =>
          event.type === DECIDED ? { ...event, data: encodeJson(tell(decodeJson<Decided>(event.data))) } : event,
        )
      },
    },
  })

test('what is decided again equals what was decided, from the beginning and from a snapshot; what differs is named', async (t) => {
  const world = await MatcherWorld.open(folderOf(t))
  t.teardown(() => world.close())
  const { log, tables, clock } = world
  const group = await world.putGroup('group', { debounce: { fixes: 2 } })
  const square = {
    type: 'Polygon' as const,
    coordinates: [ringOf(0, 0, 0.001, 0.01)],
  }
  const fence = await world.putFence(uuidOf('fence'), { shape: square, geofenceGroupId: 'group' })
  await world.announce(0, { sourcePosition: fence.position, geofences: [fence], groups: [group] })
  const write = async (from: number, to: number): Promise<void> => {
    for (let i = from; i < to; i++)
      await world.points(0, batchOf(Array.from({ length: 40 }, (_, tracker) => fixOf(tracker, i))))
  }
  const matcher = world.matcher()
  t.teardown(() => matcher.close())
  const signal = new AbortController().signal
  const again = async (from: EventLog = log) => {
    await matcher.save(0)
    return decideAgain({ log: from, tables, clock, book: new FenceBook(from) }, 0, matcher.storedThrough(0), signal)
  }
  await write(0, 60)
  await world.run(matcher, 0)
  const all = await again()
  t.ok(all.rows > 200, `${all.rows} decisions`)
  t.equal(all.rows, (await world.decisions(0)).length)
  t.same([all.differing, all.differences], [0, []])

  const through = await matcher.snapshot(0)
  await log.truncateBefore('locations-0', through + 1)
  t.match(await again(), { rows: 0, differing: 0 }, 'nothing came after the snapshot')
  await matcher.save(0)
  await write(60, 90)
  await world.run(matcher, 0)
  const later = await again()
  t.ok(later.rows > 50 && later.rows < all.rows, `${later.rows} decisions after the snapshot`)
  t.same([later.differing, later.differences], [0, []])

  const turned = await again(
    retold(log, (decided) => ({
      ...decided,
      decisions: decided.decisions.map((one, i) =>
        i === 0 && one.kind === 'transition' ? { ...one, at: one.at + 1 } : one,
      ),
    })),
  )
  t.ok(turned.differing > 5, `${turned.differing} transitions were at another time`)
  t.match(turned.differences[0], {
    table: 'transitions-0',
    scope: ORG,
    live: { kind: 'transition' },
    rebuilt: { kind: 'transition' },
  })
  const lacking = await again(retold(log, (decided) => ({ ...decided, decisions: decided.decisions.slice(0, -1) })))
  t.ok(
    lacking.differing > 5 && lacking.differences.every(({ live }) => live === undefined),
    'decisions that were not logged',
  )
  const invented = await again(
    retold(log, (decided) => ({ ...decided, decisions: [...decided.decisions, ...decided.decisions] })),
  )
  t.ok(
    invented.differing > 5 && invented.differences.every(({ rebuilt }) => rebuilt === undefined),
    'and logged ones that nobody decides',
  )
})
