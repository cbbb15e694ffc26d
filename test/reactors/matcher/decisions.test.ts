import { test } from 'tap'
import type { Decided, Decision } from '../../../src/features/transitions/events.ts'
import { DecisionOutbox } from '../../../src/reactors/matcher/decisions.ts'
import { FakeClock } from '../../support/fake-clock.ts'

test('what is appended together is told with revisions of its own and the position of the append', async (t) => {
  const told: [revision: number, position: number, ordinal: number][] = []
  const appends: number[] = []
  const outbox = new DecisionOutbox({
    // Positions say nothing but what comes before what: this log's are far apart.
    log: {
      append: async (_stream, events, expected) => {
        appends.push(events.length)
        return { revision: (expected as number) + events.length, position: appends.length * 1_000_000 }
      },
    },
    clock: new FakeClock(),
    partition: 0,
    revision: 7,
    onDecided: (_partition, revision, position, { ordinal }: Decided) => told.push([revision, position, ordinal]),
    onFailure: (error) => t.fail(String(error)),
  })
  const decisions = Array.from({ length: 300 }, (_, i): Decision => ({ _id: `${i}` }) as Decision)
  outbox.add(1, 0, 0, decisions)
  outbox.add(2, 0, 0, decisions.slice(0, 1))
  await outbox.settled()
  outbox.add(3, 4, 0, decisions.slice(0, 1))
  await outbox.settled()
  t.same(appends, [4, 1])
  t.same(told, [
    [8, 1_000_000, 0],
    [9, 1_000_000, 128],
    [10, 1_000_000, 256],
    [11, 1_000_000, 0],
    [12, 2_000_000, 4],
  ])
})
