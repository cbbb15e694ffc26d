import { test } from 'tap'
import type { EventLog } from '../../../src/engines/event-log.ts'
import { RUNS_OWED, type RunsOwed, runsStream } from '../../../src/features/automations/events.ts'
import { automationFeed } from '../../../src/features/automations/live-feed.ts'
import { encodeJson, type RecordedEvent } from '../../../src/kernel/event.ts'
import type { FeedHub } from '../../../src/live/feed.ts'
import { reachOf } from '../../../src/live/log-feed.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { keepErrors } from '../../support/open-services.ts'
import { until } from '../../support/service.ts'

/** Three runs about one task. */
const OWED: RunsOwed = {
  ...{ source: 'log', sourceAt: 1, complete: true, owedAt: 1, firstSequence: 1 },
  owed: [
    {
      trigger: {
        ...{ sourceId: 's', event: 'onTaskCreated', organizationId: 'o', at: 1 },
        subject: { type: 'task', id: 't', hubId: 'h' },
      },
      runs: ['a', 'b', 'c'].map((automationId) => ({ automationId })),
    },
  ],
}

const owedAt = (position: number): RecordedEvent => ({
  ...{ id: `e${position}`, type: RUNS_OWED, data: encodeJson(OWED), isJson: true, metadata: {} },
  ...{ stream: runsStream(0), revision: position, position, loggedAt: 1 },
})

test('the task of many runs is read once for an event; a resume keeps tasks for one page of the log', async (t) => {
  const clock = new FakeClock()
  let asked = 0
  const log = {
    read: async (stream: string) => {
      if (stream === 'task-t') asked++
      return []
    },
    headPosition: async () => 0,
    follow: async function* (_source: unknown, _from: unknown, signal: AbortSignal) {
      for (const position of [1, 2])
        yield { events: [owedAt(position)], checkpoint: position, caughtUp: position === 2 }
      if (!signal.aborted) await new Promise((resume) => signal.addEventListener('abort', resume))
    },
  } as unknown as EventLog
  const options = { log, partitions: 1, clock, logger: keepErrors([]) }
  const feed = automationFeed({ log, clock } as never)
  const told: unknown[] = []
  const { signal } = new AbortController()
  const question = { organizationId: 'o', from: reachOf(0), to: reachOf(2), signal }
  for await (const one of feed.replay(options, question)) told.push(one)
  t.same([told.length, asked], [6, 2])

  asked = 0
  const offered: unknown[] = []
  const hub = { options, asksFor: () => true, seen: () => undefined, offer: (...one: unknown[]) => offered.push(one) }
  const follower = await feed.follow(hub as unknown as FeedHub)
  await until('both events', () => offered.length === 6)
  t.equal(asked, 2)
  await follower.close()
})
