import { randomUUID } from 'node:crypto'
import { type Test, test } from 'tap'
import { LateSteps } from '../../projections/late-steps.ts'
import { PointBuffer } from '../../projections/location-history.ts'
import { PointSteps } from '../../projections/point-steps.ts'
import { Erased } from '../../projections/erasures.ts'
import { HistoryComparison } from '../../projections/history-comparison.ts'
import { POINTS } from '../../src/engines/clickhouse-sql/history-tables.ts'
import type { HistoryStore } from '../../src/engines/history-store.ts'
import { readStepState, STEPS } from '../../src/engines/clickhouse-sql/point-steps.ts'
import { dayIn, slowSummary } from '../features/reports/slow-reports.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { demoTrace, GAP_MS, openReports } from '../support/reports-world.ts'
import { seeded } from '../support/random.ts'
import { entriesOf, type PlainPoint } from '../support/trace-batches.ts'

const HOUR_MS = 3_600_000

/** Every eighth bus of the demo. */
const busesOf = (): PlainPoint[] => {
  const points = demoTrace()
  const ids = [...new Set(points.map(({ trackerId }) => trackerId))].filter((_, i) => i % 8 === 0)
  return points.filter(({ trackerId }) => ids.includes(trackerId))
}
const END = Date.parse('2024-02-19T16:00:00Z')

/** A history whose points come as the projection inserts them, and a clock for who rolls them up. */
const open = async (t: Test) => {
  const world = await openReports(t)
  const { history, organizationId } = world
  const clock = new FakeClock(END)
  const logger = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
  const rollerOf = (gapMs: number, over: HistoryStore = history, pointsMax?: number): PointSteps =>
    new PointSteps({ history: over, clock, logger, gapMs, ...(pointsMax && { pointsMax }) })
  let revision = 0
  const bufferOf = (points: readonly PlainPoint[]): PointBuffer => {
    const buffer = new PointBuffer(0, new Erased(), 1_000_000, new LateSteps(() => clock.now()))
    const own = points.map((point) => ({ ...point, organizationId }))
    for (const entry of entriesOf(own, 1, 10_000, Number.POSITIVE_INFINITY)) {
      if (entry.kind === 'points') buffer.add({ ...entry, revision: revision++ })
    }
    return buffer
  }
  const insert = async (points: readonly PlainPoint[]): Promise<void> => {
    for (const { table, block } of await bufferOf(points).blocks()) await history.insert(table, block, randomUUID())
  }
  const check = async (
    points: readonly PlainPoint[],
    what: string,
    span: readonly [number, number] = [END - 24 * HOUR_MS, END],
  ) => {
    const [from, to] = span
    const expected = slowSummary(points, { from, to, gapMs: GAP_MS, periodOf: dayIn('UTC') })
    const found = await world.rows(`summary?from=${from}&to=${to}`)
    t.equal(found.length, expected.size, `${what}: rows`)
    const wrong = found.filter((row) => {
      const slow = expected.get(`${row.trackerId} ${row.period}`)
      return (
        slow === undefined ||
        Math.abs(row.distanceMeters - slow.distanceMeters) > 0.02 ||
        Math.abs(row.drivingSeconds - slow.drivingSeconds) > 0.001 ||
        Math.abs(row.stoppedSeconds - slow.stoppedSeconds) > 0.001 ||
        Math.abs((row.maxSpeed ?? -1) - slow.maxSpeed) > 0.02 ||
        Date.parse(row.firstAt) !== slow.firstAt ||
        Date.parse(row.lastAt) !== slow.lastAt
      )
    })
    t.same(wrong.slice(0, 2), [], `${what}: sums`)
  }
  const steps = async (): Promise<number> => {
    const [{ rows }] = await history.rows<{ rows: number }>(`SELECT count() AS rows FROM ${STEPS} FINAL`)
    return rows
  }
  return { ...world, clock, rollerOf, roller: rollerOf(GAP_MS), insert, bufferOf, check, steps }
}

test('reports are the same before, while and after points are rolled up, whatever the bounds', async (t) => {
  const points = busesOf()
  const { insert, check, roller, clock, steps, history } = await open(t)
  await roller.rollUpDue()
  t.equal(await readStepState(history), undefined, 'nothing to roll up')
  await insert(points)
  await check(points, 'from points')
  // The trace ends within the hour that is not rolled up yet.
  await roller.rollUpDue()
  t.ok((await steps()) > 0)
  await check(points, 'half of it rolled up')
  const some = await steps()
  clock.advance(3 * HOUR_MS)
  await roller.rollUpDue()
  t.ok((await steps()) > some)
  await check(points, 'all of it rolled up')
  const next = seeded(11)
  const times = points.map(({ recordedAt }) => recordedAt)
  const [first, last] = [Math.min(...times), Math.max(...times)]
  for (let i = 0; i < 5; i++) {
    const bounds = [first + next() * (last - first), first + next() * (last - first)].map(Math.floor).sort()
    await check(points, `from ${bounds[0]} to ${bounds[1]}`, [bounds[0], bounds[1]])
  }
})

test('no statement rolls up more points than fit into memory, and a rebuild gives the same', async (t) => {
  const points = busesOf()
  const { insert, check, rollerOf, clock, history, steps } = await open(t)
  await insert(points)
  clock.advance(6 * HOUR_MS)
  const pointsMax = 300
  const parts: number[] = []
  const counting = Object.create(history) as HistoryStore
  counting.command = async (sql, parameters) => {
    const [, condition] = /FROM points (?:FINAL )?WHERE (.+?) AND version/s.exec(sql) ?? []
    if (condition !== undefined) {
      const own = Object.entries(parameters ?? {}).filter(([name]) => condition.includes(`{${name}:`))
      const question = `SELECT count() AS points FROM ${POINTS} WHERE ${condition}`
      parts.push((await history.rows<{ points: number }>(question, Object.fromEntries(own)))[0].points)
    }
    await history.command(sql, parameters)
  }
  const roller = rollerOf(GAP_MS, counting, pointsMax)
  await roller.rollUpDue()
  t.ok(parts.length > (2 * points.length) / pointsMax, `${parts.length} statements`)
  const largest = Math.max(...parts)
  t.ok(largest <= 2 * pointsMax, `${largest} points in one: trackers share out unevenly`)
  await check(points, 'rolled up in parts')
  const whole = await steps()
  await history.command(`TRUNCATE TABLE ${STEPS} SYNC`)
  t.equal(await rollerOf(GAP_MS).rebuild(), whole, 'steps that were lost are back')
  await check(points, 'rebuilt')
})

test('points that come late, twice or in parts count at once, and are rolled up in the end', async (t) => {
  const points = busesOf()
  const { insert, check, roller, clock, history } = await open(t)
  const next = seeded(5)
  const isLate = points.map(() => next() < 0.1)
  const early = points.filter((_, i) => !isLate[i])
  const late = points.filter((_, i) => isLate[i])
  await insert(early)
  clock.advance(6 * HOUR_MS)
  await roller.rollUpDue()
  await check(early, 'without the late ones')
  await insert(late.slice(0, 30))
  await insert(early.slice(0, 100))
  await check([...early, ...late.slice(0, 30)], 'some late ones')
  await roller.rollUpDue()
  await check([...early, ...late.slice(0, 30)], 'marks are too young to be worked off')
  await insert(late.slice(30))
  await check(points, 'so many that all are summed from points')
  clock.advance(HOUR_MS)
  await roller.rollUpDue()
  const [{ marks }] = await history.rows<{ marks: number }>('SELECT count() AS marks FROM point_steps_late')
  t.equal(marks, 0)
  await check(points, 'rolled up')
})

test('an insert that is tried again marks again what was worked off meanwhile', async (t) => {
  const points = busesOf()
  const { insert, bufferOf, check, roller, clock, history } = await open(t)
  await insert(points.slice(0, 1_000))
  clock.advance(6 * HOUR_MS)
  await roller.rollUpDue()
  const buffer = bufferOf(points.slice(1_000))
  const [mark] = await buffer.blocks()
  await history.insert(mark.table, mark.block, mark.token ?? '')
  // The insert of the points fails; the mark is worked off, then they are inserted.
  clock.advance(HOUR_MS)
  await roller.rollUpDue()
  for (const { table, block, token } of await buffer.blocks()) await history.insert(table, block, token ?? 'points')
  await check(points, 'tried again')
})

test('what is erased leaves the sums: of a tracker, up to a time, of an organization', async (t) => {
  const points = busesOf()
  const { insert, check, roller, clock, history, organizationId, steps } = await open(t)
  await insert(points)
  clock.advance(6 * HOUR_MS)
  await roller.rollUpDue()
  const [one, other] = [points[0].trackerId, points[1].trackerId]
  const through = Date.parse('2024-02-19T15:05:00Z')
  await history.erase([{ organizationId, trackerId: one }, { organizationId, trackerId: other, through }]) // biome-ignore format: one thing
  const left = points.filter(
    ({ trackerId, recordedAt }) => trackerId !== one && (trackerId !== other || recordedAt > through),
  )
  await check(left, 'at once')
  await roller.rollUpDue()
  await check(left, 'rolled up anew')
  const [{ kept }] = await history.rows<{ kept: number }>(
    `SELECT count() AS kept FROM ${STEPS} WHERE trackerId = {one:UUID}`,
    { one },
  )
  t.equal(kept, 0)
  await history.erase([{ organizationId }])
  await check([], 'nothing is left')
  t.equal(await steps(), 0)
})

test('a roll that is cut short is done again, other rules roll up all anew, and a rebuild marks what it puts right', async (t) => {
  const points = busesOf()
  const { insert, check, roller, rollerOf, clock, history, bufferOf, rows } = await open(t)
  await insert(points)
  clock.advance(6 * HOUR_MS)
  let died = 0
  const failing: HistoryStore = {
    query: history.query.bind(history),
    rows: history.rows.bind(history),
    insert: history.insert.bind(history),
    erase: history.erase.bind(history),
    ping: history.ping.bind(history),
    close: history.close.bind(history),
    command: async (sql, parameters) => {
      if (sql.includes('INTO point_rollup_state') && ++died === 2) throw new Error('killed')
      await history.command(sql, parameters)
    },
  }
  const dying = rollerOf(GAP_MS, failing)
  await t.rejects(dying.rollUpDue(), { message: 'killed' })
  await check(points, 'after rows, before the note of them')
  await roller.rollUpDue()
  await check(points, 'done again')
  await rollerOf(60_000).rollUpDue()
  await check(points, 'a service with other rules sums points')
  await roller.rollUpDue()
  await check(points, 'and rolls up anew')
  // What stands in the log is put into the table again, with points that it lacked.
  await history.command(`DELETE FROM ${POINTS} WHERE recordedAt < toDateTime64('2024-02-19 15:00:00', 3, 'UTC')`)
  const comparison = new HistoryComparison(history, POINTS, 0)
  await comparison.begin()
  const [{ block }] = (await bufferOf(points).blocks()).filter(({ table }) => table === POINTS)
  await comparison.take(block, randomUUID())
  await comparison.end()
  await check(points, 'rebuilt')
  t.ok((await rows(`summary?from=${END - 24 * HOUR_MS}&to=${END}&per=total`)).length > 0)
})
