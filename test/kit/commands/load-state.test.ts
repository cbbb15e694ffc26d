import { isDeepStrictEqual } from 'node:util'
import { test } from 'tap'
import type { EventLog } from '../../../src/engines/event-log.ts'
import { openLmdbEventLog } from '../../../src/engines/lmdb-log/lmdb-log.ts'
import { encodeJson } from '../../../src/kernel/event.ts'
import { handleCommand } from '../../../src/kit/commands/handle-command.ts'
import { loadState } from '../../../src/kit/commands/load-state.ts'
import { idSource } from '../../../src/kit/commands/ids.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { folderOf } from '../../support/folder-of.ts'
import { seeded } from '../../support/random.ts'

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
  const large = () => ({
    ...{ id: crypto.randomUUID(), type: 'added', isJson: true, metadata: {} },
    data: encodeJson({ add: 1, note: 'x'.repeat(20_000) }),
  })
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
  await log.append('sum-1', [large()], 'any')
  await add(1, 2)
  t.match(await load(), { state: 43, events: 4 })
  t.match(await load(), { state: 43, events: 4 }, 'a state that a large event is in is not kept')
  await log.erase('sum-1')
  t.match(await load(), { state: 0, version: 0, events: 0 }, 'nothing is left of what was erased')
  await add(7)
  t.equal((await load()).state, 7)
})

test('a state that a command left is what a plain fold of the stream makes of it, whatever others do to it', async (t) => {
  const log = await openLmdbEventLog({ path: folderOf(t), clock: new FakeClock() })
  t.teardown(() => log.close())
  interface State {
    sum: number
    /** What the last event said. */
    last?: unknown
  }
  const initial: State = { sum: 0 }
  const adding = {
    initial,
    // The second member is none in JSON.
    decide: ({ amounts }: { amounts: number[] }) =>
      amounts.map((add) => ({ type: 'added', data: { add, note: undefined } })),
    evolve: ({ sum: before }: State, { data }: { data: unknown }): State => ({
      sum: before + (data as { add: number }).add,
      last: data,
    }),
  }
  const ids = idSource(1_000, Buffer.alloc(32, 'seed'))
  const random = seeded(7)
  const draw = (below: number): number => Math.floor(random() * below)
  const others = async (stream: string): Promise<unknown> => {
    const chance = draw(12)
    if (chance === 0) return log.erase(stream)
    const event = { id: ids.next(), type: 'added', data: encodeJson({ add: draw(9) }), isJson: true, metadata: {} }
    return chance < 5 ? log.append(stream, [event], 'any') : undefined
  }
  const differ: unknown[] = []
  for (let i = 0; i < 150; i++) {
    const stream = `sum-${draw(2)}`
    const amounts = Array.from({ length: 1 + draw(3) }, () => draw(9))
    const handled = await handleCommand(log, stream, adding, { amounts }, { ids, metadata: {} })
    // One that nothing is kept for.
    const plain = await loadState(log, stream, { ...adding })
    const kept = await loadState(log, stream, adding)
    if (!isDeepStrictEqual(kept, plain) || handled.state.sum !== plain.state.sum)
      differ.push({ i, handled, kept, plain })
    await others(stream)
  }
  t.strictSame(differ, [])
})
