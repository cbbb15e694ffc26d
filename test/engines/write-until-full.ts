import { OwnedCheckpoint } from '../../src/kit/consumers/checkpoint.ts'
import { once } from 'node:events'
import { openLmdbEventLog } from '../../src/engines/lmdb-log/lmdb-log.ts'
import { openLmdbTableStore } from '../../src/engines/lmdb-tables/lmdb-tables.ts'
import { Failure } from '../../src/kernel/errors.ts'
import { realClock } from '../contracts/clocks.ts'
import { newEvent } from '../contracts/event-log.ts'

/*
 * A process whose files may not grow over a limit: it writes until it is refused, says how, waits until the limit was
 * lifted, writes again and says what is there. Each line that it prints is JSON.
 */
const [, , kind, folder = ''] = process.argv
const say = (line: object): boolean => process.stdout.write(`${JSON.stringify(line)}\n`)

const untilRefused = async (write: (count: number) => Promise<unknown>): Promise<{ count: number; error: unknown }> => {
  for (let count = 0; ; count += 1) {
    try {
      await write(count)
    } catch (error) {
      return { count, error }
    }
  }
}

const codeOf = (error: unknown): string => (error instanceof Failure ? error.code : String(error))

const untilUp = async (engine: { ping(): Promise<void> }): Promise<void> => {
  for (let isUp = false; !isUp; ) {
    isUp = await engine.ping().then(
      () => true,
      () => false,
    )
    if (!isUp) await new Promise((resume) => setTimeout(resume, 50))
  }
}

const room = once(process.stdin, 'data')

const fillLog = async (): Promise<void> => {
  const log = await openLmdbEventLog({ path: folder, clock: realClock })
  const { count, error } = await untilRefused((no) =>
    log.append('hub-1', [newEvent('big', 50_000)], no === 0 ? 'none' : no - 1),
  )
  const waiting = await Promise.allSettled(
    [1, 2, 3].map((no) => log.append(`hub-${no}`, [newEvent('big', 500_000)], 'any')),
  )
  const ping = await log.ping().then(() => 'up', codeOf)
  const small = await log.append('hub-1', [newEvent('small', 10)], 'any').then(() => 'stored', codeOf)
  say({
    count,
    code: codeOf(error),
    head: await log.head('hub-1'),
    waiting: waiting.map(({ status }) => status),
    ping,
    small,
  })
  await room
  await untilUp(log)
  const { revision } = await log.append('hub-1', [newEvent('big', 500_000)], count - 1)
  const read = await log.read('hub-1', 0, 10_000)
  say({
    revision,
    read: read.length,
    isWhole: read.every((event, index) => event.revision === index),
    other: await log.head('hub-2'),
  })
  await log.close()
}

const fillTables = async (): Promise<void> => {
  const store = await openLmdbTableStore({ path: folder, clock: realClock })
  await store.declare({ name: 'things', version: 1, equality: ['kind'] })
  const rows = (no: number) =>
    Array.from({ length: 20 }, (_, row) => ({
      table: 'things',
      scope: 's',
      id: `${no}-${row}`,
      row: { kind: 'x', text: 'y'.repeat(5_000) },
    }))
  const owned = await OwnedCheckpoint.take(store, 'c')
  const { count, error } = await untilRefused((no) => owned.commit(rows(no), { all: no }))
  const state = async () => ({
    at: (await store.checkpoint('c'))?.all,
    total: (await store.find('things', 's', { where: { kind: 'x' }, limit: 1, total: true })).total,
  })
  const small = () =>
    store.commit([{ table: 'things', scope: 's', id: 'small', row: { kind: 'y' } }]).then(() => 'stored', codeOf)
  say({
    count,
    code: codeOf(error),
    ...(await state()),
    ping: await store.ping().then(() => 'up', codeOf),
    small: await small(),
  })
  await room
  await untilUp(store)
  await owned.commit(rows(count), { all: count })
  say({ ...(await state()), small: await small() })
  await store.close()
}

await (kind === 'log' ? fillLog() : fillTables())
process.stdin.destroy()
