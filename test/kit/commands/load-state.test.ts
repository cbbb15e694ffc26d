import { test } from 'tap'
import type { EventLog } from '../../../src/engines/event-log.ts'
import { openLmdbEventLog } from '../../../src/engines/lmdb-log/lmdb-log.ts'
import { encodeJson } from '../../../src/kernel/event.ts'
import { loadState } from '../../../src/kit/commands/handle-command.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { folderOf } from '../../support/folder-of.ts'

const sum = {
  initial: 0,
  decide: () => [],
  evolve: (state: number, { data }: { data: unknown }) => state + (data as { add: number }).add,
}

test('a long stream is read whole once; what follows, is truncated or erased counts', async (t) => {
  const log = await openLmdbEventLog({ path: folderOf(t), clock: new FakeClock() })
  t.teardown(() => log.close())
  let events = 0
  const read: EventLog['read'] = async (...asked) => {
    const found = await log.read(...asked)
    events += found.length
    return found
  }
  const counted: EventLog = Object.assign(Object.create(log), { read })
  const add = async (amount: number, times = 1): Promise<void> => {
    for (let i = 0; i < times; i++) {
      const event = { id: crypto.randomUUID(), type: 'added', data: encodeJson({ add: amount }), isJson: true }
      await log.append('sum-1', [{ ...event, metadata: {} }], 'any')
    }
  }
  const load = async (): Promise<{ state: number; version: number; events: number }> => {
    events = 0
    return { ...(await loadState(counted, 'sum-1', sum)), events }
  }
  await add(1, 2)
  await load()
  t.match(await load(), { state: 2, version: 2, events: 2 }, 'a short one is read anew')
  await add(1, 28)
  t.match(await load(), { state: 30, version: 30, events: 30 })
  t.match(await load(), { state: 30, version: 30, events: 1 }, 'a long one is not')
  await add(10)
  t.match(await load(), { state: 40, version: 31, events: 2 }, 'what others append counts')
  t.match(await loadState(counted, 'sum-1', { ...sum, initial: 5 }), { state: 45 }, 'each decider folds for itself')
  await log.truncateBefore('sum-1', 30)
  t.match(await load(), { state: 40, version: 31, events: 1 })
  await log.erase('sum-1')
  t.match(await load(), { state: 0, version: 0, events: 0 }, 'nothing is left of what was erased')
  await add(7)
  t.equal((await load()).state, 7)
})
