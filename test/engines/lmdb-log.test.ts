import { test } from 'tap'
import type { EventLog } from '../../src/engines/event-log.ts'
import { openLmdbEventLog } from '../../src/engines/lmdb-log/lmdb-log.ts'
import type { RecordedEvent } from '../../src/kernel/event.ts'
import { HeldClock, realClock } from '../contracts/clocks.ts'
import { newEvent } from '../contracts/event-log.ts'
import { folderOf } from '../support/folder-of.ts'

const open = (path: string, mapBytesMax?: number): Promise<EventLog> =>
  openLmdbEventLog({ path, clock: realClock, ...(mapBytesMax && { mapBytesMax }) })

const readAll = async (log: EventLog, stream: string): Promise<RecordedEvent[]> => log.read(stream, 0, 1_000_000)

const followAll = async (log: EventLog, prefixes: string[]): Promise<RecordedEvent[]> => {
  const events: RecordedEvent[] = []
  const ended = new AbortController()
  for await (const batch of log.follow({ prefixes }, undefined, ended.signal)) {
    events.push(...batch.events)
    if (batch.caughtUp) ended.abort()
  }
  return events
}

test('a log is the same after it was opened again', async (t) => {
  const folder = folderOf(t)
  const first = await open(folder)
  const events = Array.from({ length: 50 }, () => newEvent('thing.v1', 3_000))
  const appended = await first.append('hub-1', events, 'none')
  await first.append('user-1', [newEvent()], 'none')
  await first.truncateBefore('hub-1', 10)
  const position = await first.headPosition()
  await first.close()
  const second = await open(folder)
  t.same(
    (await readAll(second, 'hub-1')).map(({ id }) => id),
    events.slice(10).map(({ id }) => id),
  )
  t.equal(await second.headPosition(), position)
  t.equal(await second.head('hub-1'), 49)
  t.same(await followAll(second, ['user-']).then((found) => found.length), 1)
  const next = await second.append('hub-1', [newEvent()], appended.revision)
  t.ok(next.position > position)
  await second.close()
})

test('a log that may hold no more bytes is down for appends, and works again when there is room', async (t) => {
  const log = await open(folderOf(t), 2 * 1024 * 1024)
  t.teardown(() => log.close())
  let stored = 0
  const failure = await (async () => {
    for (;;) {
      await log.append('locations-1', [newEvent('big', 100_000)], stored === 0 ? 'none' : stored - 1)
      stored += 1
    }
  })().catch((error: unknown) => error)
  t.match(failure, { name: 'Failure', code: 'engine_down' })
  t.ok(stored >= 15 && stored <= 20, `${stored} events of 100 kB`)
  t.equal(await log.head('locations-1'), stored - 1)
  t.equal((await readAll(log, 'locations-1')).length, stored)
  await log.truncateBefore('locations-1', stored - 1)
  for (let attempt = 0; ; attempt += 1) {
    const appended = await log.append('locations-1', [newEvent('big', 100_000)], stored - 1).catch(() => undefined)
    if (appended !== undefined) break
    t.ok(attempt < 100, 'the space comes back')
    await log.ping()
  }
  t.equal(await log.head('locations-1'), stored)
})

test('truncated events give their space back', async (t) => {
  const folder = folderOf(t)
  const log = await openLmdbEventLog({ path: folder, clock: new HeldClock(), mapBytesMax: 12 * 1024 * 1024 })
  t.teardown(() => log.close())
  for (let round = 0; round < 30; round += 1) {
    const { revision } = await log.append('locations-1', [newEvent('big', 900_000)], 'any')
    await log.truncateBefore('locations-1', revision + 1)
  }
  t.equal(await log.head('locations-1'), 29)
  const left = await followAll(log, ['locations-'])
  t.same(
    left.map(({ revision }) => revision),
    [29],
    'truncating keeps the last event',
  )
})
