import { type Test, test } from 'tap'
import type { EventLog } from '../../src/engines/event-log.ts'
import { openLmdbEventLog } from '../../src/engines/lmdb-log/lmdb-log.ts'
import { openLmdbTableStore } from '../../src/engines/lmdb-tables/lmdb-tables.ts'
import type { StoredRow, TableStore } from '../../src/engines/table-store.ts'
import type { RecordedEvent } from '../../src/kernel/event.ts'
import type { Row } from '../../src/kernel/table.ts'
import { realClock } from '../contracts/clocks.ts'
import { newEvent } from '../contracts/event-log.ts'
import { bruteForce, questions, THINGS } from '../contracts/table-store-rows.ts'
import { folderOf } from '../support/folder-of.ts'
import { runUntilKilled } from './killed-child.ts'

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

/** Streams without gaps, and an index that names exactly their events. */
const checkConsistent = async (t: Test, log: EventLog, streams: Iterable<string>): Promise<void> => {
  const byPosition: RecordedEvent[] = []
  for (const stream of streams) {
    const events = await readAll(log, stream)
    byPosition.push(...events)
    const first = events[0]?.revision ?? 0
    t.ok(
      events.every(({ revision }, index) => revision === first + index),
      `${stream} has no gap`,
    )
    t.equal(events.at(-1)?.revision, await log.head(stream), `${stream} ends at its head`)
  }
  byPosition.sort((a, b) => a.position - b.position)
  const followed = await followAll(log, ['hub-', 'locations-'])
  t.strictSame(
    followed.map(({ id }) => id),
    byPosition.map(({ id }) => id),
  )
  t.equal(new Set(followed.map(({ position }) => position)).size, followed.length)
}

const scanned = async (store: TableStore): Promise<Map<string, Row>> => {
  const rows: StoredRow[] = []
  for await (const row of store.scan('things', 's')) rows.push(row)
  return new Map(rows.map(({ id, row }) => [id, row]))
}

const idsOf = (rows: readonly { id: string }[]): string[] => rows.map(({ id }) => id)

test('SIGKILL at any moment: the log loses no acknowledged event', { timeout: 900_000 }, async (t) => {
  const folder = folderOf(t)
  const acknowledged = new Map<string, Map<number, string>>()
  const truncated = new Map<string, number>()
  for (const moreMs of [0, 20, 45, 90, 160]) {
    const lines = await runUntilKilled('append-until-killed', folder, 300, moreMs)
    for (const line of lines) {
      const [stream = '', revision = '', id = ''] = line.split(' ')
      if (revision === 'truncated') truncated.set(stream, Math.max(truncated.get(stream) ?? 0, Number(id) || 0))
      else if (id.length === 36)
        acknowledged.set(stream, (acknowledged.get(stream) ?? new Map()).set(Number(revision), id))
    }
    const log = await openLmdbEventLog({ path: folder, clock: realClock })
    let missing = 0
    let count = 0
    for (const [stream, ids] of acknowledged) {
      const events = new Map((await readAll(log, stream)).map((event) => [event.revision, event.id]))
      for (const [revision, id] of ids) {
        // The last truncation may have been done without being acknowledged.
        if (revision < (events.keys().next().value ?? 0)) continue
        count += 1
        if (events.get(revision) !== id) missing += 1
      }
      t.ok((events.keys().next().value as number) >= (truncated.get(stream) ?? 0), 'what was truncated stays so')
    }
    t.ok(count > 100)
    t.equal(missing, 0, `all of ${count} are there`)
    await checkConsistent(t, log, acknowledged.keys())
    await log.append('hub-0', [newEvent()], await log.head('hub-0'))
    acknowledged.get('hub-0')?.delete(await log.head('hub-0'))
    await log.close()
  }
})

test('SIGKILL at any moment: tables have rows, indexes and checkpoint of one commit', {
  timeout: 900_000,
}, async (t) => {
  const folder = folderOf(t)
  let acknowledged = 0
  for (const moreMs of [0, 15, 40, 90]) {
    for (const line of await runUntilKilled('commit-until-killed', folder, 20, moreMs)) {
      if (line.endsWith(' end')) acknowledged = Math.max(acknowledged, Number(line.split(' ')[0]))
    }
    const store = await openLmdbTableStore({ path: folder, clock: realClock })
    await store.declare(THINGS)
    const generation = (await store.checkpoint('generations'))?.all ?? -1
    t.ok(generation >= acknowledged, `generation ${generation} of at least ${acknowledged}`)
    const rows = await scanned(store)
    t.equal(rows.size, 48)
    t.ok([...rows.values()].every(({ status }) => status === `g${generation}`))
    for (const [index, question] of questions().entries()) {
      if (index % 60 !== 0) continue
      const found = await store.find('things', 's', { ...question, limit: 100, total: true })
      t.strictSame(idsOf(found.rows), bruteForce(rows, question))
      t.equal(found.total, found.rows.length)
    }
    await store.close()
  }
})
