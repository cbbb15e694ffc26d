import { test, type Test } from 'tap'
import { randomUUID } from 'node:crypto'
import { encodeJson, decodeJson, type RecordedEvent } from '../../../src/kernel/event.ts'
import type { Row } from '../../../src/kernel/table.ts'
import { settling } from '../../../src/kit/consumers/settle.ts'
import type { Projection, Rows } from '../../../src/kit/consumers/projection.ts'
import { RowsOverlay } from '../../../src/kit/consumers/projection-overlay.ts'
import { openServices, runProjections, type TestServices } from '../../support/open-services.ts'
import { folderOf } from '../../support/folder-of.ts'

interface Counted {
  group: string
  by: number
}

/** Counts by group, and keeps who is in it: reads its own rows, also by a field. */
const counters = (version = 1, apply: (event: RecordedEvent, rows: Rows) => Promise<void> = count): Projection => ({
  name: 'counters',
  version,
  tables: [{ name: 'counters', version, equality: ['group'] }],
  prefixes: ['count-'],
  inputs: ['counted'],
  apply,
})

const count = async (event: RecordedEvent, rows: Rows): Promise<void> => {
  const { group, by } = decodeJson<Counted>(event.data)
  const before = await rows.get<{ sum: number }>('counters', 'all', event.stream)
  rows.put('counters', 'all', event.stream, { group, sum: (before?.sum ?? 0) + by })
  const others = await rows.findBy('counters', 'all', 'group', group)
  rows.put('counters', 'groups', group, { size: others.length })
}

const append = async ({ log }: TestServices, stream: string, data: object, type = 'counted') => ({
  position: (
    await log.append(stream, [{ id: randomUUID(), type, data: encodeJson(data), isJson: true, metadata: {} }], 'any')
  ).position,
  types: [type],
})

const rowsOf = async ({ tables }: TestServices, table = 'counters'): Promise<Record<string, Row>> => {
  const rows: Record<string, Row> = {}
  for await (const { scope, id, row } of tables.scanAll(table)) rows[`${scope}/${id}`] = row
  return rows
}

const open = async (t: Test, folder = folderOf(t)) => {
  const services = await openServices(folder)
  t.teardown(() => services.close())
  return services
}

const run = async (t: Test, services: TestServices, ...projections: Projection[]) => {
  const runner = await runProjections(services, projections)
  t.teardown(() => runner.close())
  return { runner, settle: settling(services, projections) }
}

test('follows from the beginning, and sees its own rows within a batch', async (t) => {
  const services = await open(t)
  for (let i = 0; i < 1_200; i++) void append(services, `count-${i % 7}`, { group: i % 7 < 3 ? 'a' : 'b', by: 1 })
  await append(services, 'foreign-1', {})
  const { runner, settle } = await run(t, services, counters())
  await runner.ready()
  t.match(await rowsOf(services), {
    'all/count-0': { sum: 172, group: 'a' },
    'groups/a': { size: 3 },
    'groups/b': { size: 4 },
  })
  t.ok(await settle(await append(services, 'count-0', { group: 'b', by: 1 }), 60_000))
  t.same((await rowsOf(services))['groups/b'], { size: 5 }, 'a row that left its group in the same batch counts once')
  t.same(runner.lags(), [{ consumer: 'counters', partition: 'all', events: 0, seconds: 0 }])
})

test('stores its rows also where the end of the log is told by an empty batch', async (t) => {
  const services = await open(t)
  await append(services, 'count-1', { group: 'a', by: 1 })
  const { log } = services
  const follow: typeof log.follow = async function* (...asked) {
    for await (const batch of log.follow(...asked)) {
      yield { ...batch, caughtUp: false }
      if (batch.caughtUp) yield { ...batch, events: [] }
    }
  }
  const { runner } = await run(t, { ...services, log: Object.assign(Object.create(log), { follow }) }, counters())
  await runner.ready()
  t.match(await rowsOf(services), { 'all/count-1': { sum: 1 } })
})

test('goes on from its checkpoint after a restart', async (t) => {
  const folder = folderOf(t)
  const one = await openServices(folder)
  const first = await runProjections(one, [counters()])
  await append(one, 'count-1', { group: 'a', by: 1 })
  await first.ready()
  await settling(one, [counters()])(await append(one, 'count-1', { group: 'a', by: 1 }), 2_000)
  await first.close()
  await append(one, 'count-1', { group: 'a', by: 5 })
  await one.close()
  const two = await open(t, folder)
  const seen: number[] = []
  const { runner } = await run(
    t,
    two,
    counters(1, async (event, rows) => {
      seen.push(event.revision)
      await count(event, rows)
    }),
  )
  await runner.ready()
  t.same(seen, [2])
  t.match(await rowsOf(two), { 'all/count-1': { sum: 7 } })
})

test('a failure is retried with growing pauses, and nothing of the batch is seen before', async (t) => {
  const services = await open(t)
  let failures = 3
  const { runner, settle } = await run(
    t,
    services,
    counters(1, async (event, rows) => {
      await count(event, rows)
      if (failures-- > 0) throw new Error('not today')
    }),
  )
  const waiting = settle(await append(services, 'count-1', { group: 'a', by: 1 }), 60_000)
  for (const delayMs of [100, 500, 2_000]) {
    await until(() => services.lines.length > 0)
    services.lines.length = 0
    t.same(await rowsOf(services), {})
    services.clock.advance(delayMs)
  }
  t.ok(await waiting)
  t.match(await rowsOf(services), { 'all/count-1': { sum: 1 } })
  t.equal(runner.lags()[0].events, 0)
})

test('a wait that is not fulfilled in time says so', async (t) => {
  const services = await open(t)
  const stuck: (() => void)[] = []
  const { settle } = await run(
    t,
    services,
    counters(1, () => new Promise((resolve) => stuck.push(resolve))),
  )
  const wrote = await append(services, 'count-1', { group: 'a', by: 1 })
  t.ok(await settle({ position: wrote.position, types: ['nobody follows this'] }, 1_000))
  const waiting = settle({ position: wrote.position, types: ['other'], before: [wrote] }, 1_000)
  services.clock.advance(1_000)
  t.notOk(await waiting)
  await until(() => stuck.length > 0)
  stuck[0]()
})

test('rebuilding gives the same rows, reports those that differ, and swaps', async (t) => {
  const services = await open(t)
  const { runner, settle } = await run(t, services, counters())
  for (let i = 0; i < 900; i++) void append(services, `count-${i % 5}`, { group: i % 2 ? 'a' : 'b', by: i })
  await settle(await append(services, 'count-1', { group: 'a', by: 1 }), 60_000)
  const before = await rowsOf(services)
  t.same(await runner.rebuild('counters'), {
    projection: 'counters',
    rows: 7,
    differing: 0,
    differences: [],
  })
  t.same(await rowsOf(services), before, 'a rebuilt table equals the live one')

  await services.tables.commit([
    { table: 'counters', scope: 'all', id: 'count-1', row: { group: 'a', sum: -1 } },
    { table: 'counters', scope: 'all', id: 'count-9', row: { group: 'z' } },
    { table: 'counters', scope: 'groups', id: 'b', row: null },
  ])
  const report = await runner.rebuild('counters')
  t.equal(report.differing, 3)
  t.match(report.differences, [
    { id: 'count-1', live: { sum: -1 } },
    { id: 'count-9', rebuilt: undefined },
    { id: 'b', live: undefined },
  ])
  t.same(await rowsOf(services), before, 'and mends what differed')
  await settle(await append(services, 'count-1', { group: 'a', by: 10 }), 60_000)
  t.equal(
    (await rowsOf(services))['all/count-1'].sum,
    (before['all/count-1'].sum as number) + 10,
    'the live loop goes on',
  )
})

test('a writer that never stops does not keep a rebuild from ending', async (t) => {
  const services = await open(t)
  const { runner } = await run(t, services, counters())
  let writing = true
  const writer = (async () => {
    while (writing) await append(services, 'count-1', { group: 'a', by: 1 })
  })()
  t.equal((await runner.rebuild('counters')).differing, 0)
  writing = false
  await writer
})

test('another version is built anew beside the live rows, then takes their place', async (t) => {
  const folder = folderOf(t)
  const one = await openServices(folder)
  const first = await runProjections(one, [counters()])
  for (let i = 0; i < 600; i++) void append(one, `count-${i % 3}`, { group: 'a', by: 1 })
  await settling(one, [counters()])(await append(one, 'count-0', { group: 'a', by: 1 }), 2_000)
  await first.close()
  await one.close()

  const two = await open(t, folder)
  const second = counters(2, async (event, rows) => {
    const { by } = decodeJson<Counted>(event.data)
    const before = await rows.get<{ total: number }>('counters', 'all', event.stream)
    rows.put('counters', 'all', event.stream, { total: (before?.total ?? 0) + by })
  })
  const { runner, settle } = await run(t, two, second)
  await runner.ready()
  t.same(await rowsOf(two), {
    'all/count-0': { total: 201 },
    'all/count-1': { total: 200 },
    'all/count-2': { total: 200 },
  })
  t.ok(await settle(await append(two, 'count-0', { group: 'a', by: 1 }), 60_000))
  t.match(await rowsOf(two), { 'all/count-0': { total: 202 } })
})

test('while it is behind it applies what follows on top of what is being stored, and loses nothing to a portion that fails', async (t) => {
  const services = await open(t)
  for (let i = 0; i < 3_000; i++) void append(services, `count-${i % 7}`, { group: i % 7 < 3 ? 'a' : 'b', by: 1 })
  await append(services, 'count-0', { group: 'a', by: 1 })
  const applied = { events: 0 }
  const counting = counters(1, async (event, rows) => {
    applied.events++
    await count(event, rows)
  })
  let commits = 0
  const tables = {
    ...services.tables,
    catchUpRowsMax: 1,
    commit: async (...commit: Parameters<typeof services.tables.commit>) => {
      commits++
      if (commits === 1) await until(() => applied.events >= 1_000)
      if (commits === 2) throw new Error('not today')
      return services.tables.commit(...commit)
    },
  }
  const { runner } = await run(t, { ...services, tables }, counting)
  await until(() => services.lines.length > 0)
  services.clock.advance(100)
  await runner.ready()
  t.match(await rowsOf(services), {
    'all/count-0': { sum: 430, group: 'a' },
    'all/count-6': { sum: 428, group: 'b' },
    'groups/a': { size: 3 },
    'groups/b': { size: 4 },
  })
  t.ok(applied.events > 3_001, 'what was not stored was applied again')
})

test('who catches up stores as much at once as the engine likes, and each batch after that', async (t) => {
  const services = await open(t)
  for (let i = 0; i < 1_999; i++) void append(services, `count-${i}`, { group: 'a', by: 1 })
  await append(services, 'count-1999', { group: 'a', by: 1 })
  const stored: number[] = []
  const tables = {
    ...services.tables,
    catchUpRowsMax: 1_500,
    commit: (...commit: Parameters<typeof services.tables.commit>) => {
      stored.push(commit[0].length)
      return services.tables.commit(...commit)
    },
  }
  const apply = async (event: RecordedEvent, rows: Rows): Promise<void> =>
    rows.put('counters', 'all', event.stream, decodeJson<Counted>(event.data) as unknown as Row)
  const { runner, settle } = await run(t, { ...services, tables }, counters(1, apply))
  await runner.ready()
  t.same(stored, [1_536, 464], 'three batches of 512, then the rest')
  t.ok(await settle(await append(services, 'count-0', { group: 'a', by: 1 }), 60_000))
  t.same(stored, [1_536, 464, 1])
})

test('who catches up passes over a stretch without inputs once, and does not keep it for the end', async (t) => {
  const services = await open(t)
  const positions = await Promise.all(
    Array.from({ length: 3_000 }, async (_, i) => (await append(services, `count-${i % 7}`, {}, 'other')).position),
  )
  const stored: number[] = []
  const { tables } = services
  const commit = tables.commit.bind(tables)
  tables.commit = async (changes, move) => {
    await commit(changes, move)
    if (move?.consumer === 'counters' && move.at !== undefined) stored.push(move.at.all)
  }
  const { runner } = await run(t, services, counters())
  await runner.ready()
  t.ok(stored[0] < Math.max(...positions), `stored at ${stored.join()}`)
})

test('the overlay answers what a batch has written so far', async (t) => {
  const { tables } = await open(t)
  await tables.declare({ name: 'x', version: 1, equality: ['tags'] })
  await tables.commit([
    { table: 'x', scope: 's', id: '1', row: { tags: ['a', 'b'] } },
    { table: 'x', scope: 's', id: '2', row: { tags: ['a'] } },
  ])
  const under = new RowsOverlay(tables)
  under.put('x', 's', '2', { tags: ['b'] })
  under.put('x', 's', '4', { tags: ['a'] })
  const upper = new RowsOverlay(tables, '', under)
  t.same((await upper.findBy('x', 's', 'tags', 'a')).map(({ id }) => id).sort(), ['1', '4'])
  upper.delete('x', 's', '4')
  t.same(await upper.get('x', 's', '2'), { tags: ['b'] })
  t.equal(await upper.get('x', 's', '4'), undefined)
  t.same(
    (await upper.findBy('x', 's', 'tags', 'a')).map(({ id }) => id),
    ['1'],
  )
  const rows = new RowsOverlay(tables)
  rows.delete('x', 's', '1')
  rows.put('x', 's', '3', { tags: ['a', 'c'] })
  t.equal(await rows.get('x', 's', '1'), undefined)
  t.same((await rows.findBy('x', 's', 'tags', 'a')).map(({ id }) => id).sort(), ['2', '3'])
  t.same(await rows.findBy('x', 's', 'tags', 'b'), [])
  t.same(
    rows.take().map(({ id, row }) => [id, row === null]),
    [
      ['1', true],
      ['3', false],
    ],
  )
})

const until = async (isSo: () => boolean): Promise<void> => {
  while (!isSo()) await new Promise((resume) => setImmediate(resume))
}
