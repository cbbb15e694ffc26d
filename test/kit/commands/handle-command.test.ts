import { test } from 'tap'
import type { EventLog } from '../../../src/engines/event-log.ts'
import { openLmdbEventLog } from '../../../src/engines/lmdb-log/lmdb-log.ts'
import { Failure } from '../../../src/kernel/errors.ts'
import type { Fact } from '../../../src/kernel/event.ts'
import { handleCommand } from '../../../src/kit/commands/handle-command.ts'
import { idSource } from '../../../src/kit/commands/ids.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { folderOf } from '../../support/folder-of.ts'

/** Can be opened once; a second opening is refused. */
const door = {
  initial: false,
  decide: (_command: object, isOpen: boolean) => {
    if (isOpen) throw new Failure('conflict', { message: 'It is open.' })
    return [{ type: 'opened', data: {} }]
  },
  evolve: () => true,
}

test('a request that is handled again after its process ended is not refused for what it did itself', async (t) => {
  const log = await openLmdbEventLog({ path: folderOf(t), clock: new FakeClock() })
  t.teardown(() => log.close())
  const request = (name: string) => ({ ids: idSource(1_000, Buffer.alloc(32, name)), metadata: {} })
  const open = (name: string) => handleCommand(log, 'door-1', door, {}, request(name))
  const first = await open('a')
  t.match(await open('a'), { state: true, version: 1, wrote: { position: first.wrote?.position, types: ['opened'] } })
  await t.rejects(open('b'), { code: 'conflict' }, "another's is")
  const stale = { ...request('a'), expectedVersion: 0 }
  t.match(await handleCommand(log, 'door-1', door, {}, stale), { version: 1 }, 'nor for the version that it made')
  t.equal((await log.read('door-1', 0, 10)).length, 1)
})

/** Is set to any text. */
const board = {
  initial: '',
  decide: ({ text }: { text: string }) => [{ type: 'written', data: { text } }],
  evolve: (_before: string, fact: Fact) => (fact.data as { text: string }).text,
}

test('a repeated request is answered what it left, however much others have changed since, and does nothing again', async (t) => {
  const log = await openLmdbEventLog({ path: folderOf(t), clock: new FakeClock() })
  t.teardown(() => log.close())
  const write = (
    seed: string,
    command: Parameters<typeof handleCommand<string, { text: string }>>[3],
    isRepeat = false,
  ) =>
    handleCommand(log, 'board-1', board, command, {
      ids: idSource(1_000, Buffer.alloc(32, seed), isRepeat),
      metadata: {},
    })
  for (let i = 0; i < 3; i++) await write(`before${i}`, { text: `${i}` })
  const first = await write('own', { text: 'mine' })
  for (let i = 0; i < 600; i++) await write(`after${i}`, { text: `${i}` })
  const refuse = async (): Promise<never> => {
    throw new Failure('forbidden')
  }
  t.same(await write('own', refuse, true), first)
  t.match(first, { state: 'mine', version: 4 })
  t.equal(await log.head('board-1'), 603)
  await t.rejects(write('another', refuse, true), { code: 'forbidden' }, 'what was not done before is decided')
})

test('a request that two processes carry out at once is done once, whatever one reads when the other one writes', async (t) => {
  const log = await openLmdbEventLog({ path: folderOf(t), clock: new FakeClock() })
  t.teardown(() => log.close())
  for (const overtakenAt of [1, 2, 3, 4]) {
    const stream = `board-${overtakenAt}`
    const write = (through: EventLog, seed: string) => {
      const ids = idSource(1_000, Buffer.alloc(32, `${seed}${overtakenAt}`), true)
      return handleCommand(through, stream, board, { text: seed }, { ids, metadata: {} })
    }
    await write(log, 'before')
    let reads = 0
    const overtaken: EventLog = Object.assign(Object.create(log) as EventLog, {
      append: log.append.bind(log),
      read: async (...args: Parameters<EventLog['read']>) => {
        reads += 1
        if (reads === overtakenAt) await write(log, 'own')
        return log.read(...args)
      },
    })
    await write(overtaken, 'own')
    const own = (await log.read(stream, 0, 10)).filter(({ data }) => Buffer.from(data).includes('own'))
    t.equal(own.length, 1, `before its read ${overtakenAt}`)
  }
})

test('a stream that is said to be new is not read first, and what others wrote to it meanwhile is found by the append', async (t) => {
  const log = await openLmdbEventLog({ path: folderOf(t), clock: new FakeClock() })
  t.teardown(() => log.close())
  let reads = 0
  const counting: EventLog = Object.assign(Object.create(log) as EventLog, {
    append: log.append.bind(log),
    read: (...args: Parameters<EventLog['read']>) => {
      reads += 1
      return log.read(...args)
    },
  })
  const open = () => handleCommand(counting, 'door-2', door, {}, { ids: idSource(1_000), metadata: {}, isNew: true })
  t.match(await open(), { state: true, version: 1 })
  t.equal(reads, 0)
  await t.rejects(open(), { code: 'conflict' }, 'it is decided again on what is there')
  t.equal((await log.read('door-2', 0, 10)).length, 1)
})

test('many commands that go on at once leave turns of the event loop to others', async (t) => {
  const log = await openLmdbEventLog({ path: folderOf(t), clock: new FakeClock() })
  t.teardown(() => log.close())
  let turn = 0
  let isOver = false
  const count = (): void => {
    turn += 1
    if (!isOver) setImmediate(count)
  }
  const decider = { initial: 0, decide: () => [{ type: 'made', data: {} }], evolve: (made: number) => made + 1 }
  const context = { ids: idSource(1_000), metadata: {}, isNew: true, isOneOfMany: true }
  const answeredIn = new Set<number>()
  count()
  // The log answers all of them at once, and what follows takes longer than the longest turn.
  await Promise.all(
    Array.from({ length: 100 }, async (_, i) => {
      await handleCommand(log, `made-${i}`, decider, {}, context)
      for (const end = performance.now() + 5; performance.now() < end; );
      answeredIn.add(turn)
    }),
  )
  isOver = true
  t.ok(answeredIn.size > 1)
})
