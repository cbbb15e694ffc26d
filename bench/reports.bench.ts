import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { PointSteps } from '../projections/point-steps.ts'
import { openChdbHistoryStore } from '../src/engines/chdb/chdb-history.ts'
import { noteStepState, STEP_MS, STEPS } from '../src/engines/clickhouse-sql/point-steps.ts'
import { openSchema } from '../src/engines/clickhouse-sql/history-schema.ts'
import { POINTS } from '../src/engines/clickhouse-sql/history-tables.ts'
import type { Row } from '../src/kernel/table.ts'
import { stopRows } from '../src/features/reports/stops.ts'
import { summaryRows } from '../src/features/reports/summary.ts'
import { FakeClock } from '../test/support/fake-clock.ts'

/**
 * Cost of reports: `node dist/bench/reports.bench.js [--trackers 10] [--days 30] [--full]`. Trackers at 1 Hz for 8 hours a day;
 * `--full` is a month of 100 trackers, 86.4 million points, and `--rolled` makes the steps that they are rolled up to, without
 * points, for as many trackers as it takes to see the cost of a report beside a large fleet. Points are made in the engine, then
 * summed by day before and after they are rolled up, by the code that serves the report. Time of the processor includes the engine's.
 */
const { values } = parseArgs({
  options: {
    trackers: { type: 'string', default: '4' },
    days: { type: 'string', default: '30' },
    full: { type: 'boolean', default: false },
    rolled: { type: 'boolean', default: false },
  },
})
const TRACKERS = values.full ? 100 : Number(values.trackers)
const DAYS = values.full ? 30 : Number(values.days)
const DAY_POINTS = 8 * 3_600
const DAY_MS = 86_400_000
const START = Date.parse('2026-03-01T00:00:00Z')
const GAP_MS = 1_800_000
const ORGANIZATION = '01900000-0000-7000-8000-0000000000a1'
const idOf = (tracker: number): string => `01900000-0000-7000-8000-${tracker.toString(16).padStart(12, '0')}`
const AT_ONCE = 8_640_000
const DAY_STEPS = (DAY_POINTS * 1_000) / STEP_MS
const ASKED = 40
const STEPS_AT_ONCE = 480_000

const folder = mkdtempSync(join(tmpdir(), 'reports-bench-'))
const history = await openChdbHistoryStore({ path: join(folder, 'data'), scratchPath: join(folder, 'scratch') })
try {
  await openSchema(history, { days: 36_500, runDays: 36_500 })
  if (values.rolled) await rolledAlone()
  else await fromPoints()
} finally {
  await history.close()
  rmSync(folder, { recursive: true, force: true })
}

/** A month of trackers not requested before, one after the other, and of a hundred at once. */
async function rolledAlone(): Promise<void> {
  await timed(`${TRACKERS * DAYS * DAY_STEPS} steps are made`, makeSteps)
  const times: number[] = []
  const before = process.cpuUsage()
  for (let asked = 0; asked < ASKED; asked++) {
    const begunMs = performance.now()
    await sum([idOf(Math.floor(((asked + 0.5) * TRACKERS) / ASKED))])
    times.push(performance.now() - begunMs)
  }
  const { user, system } = process.cpuUsage(before)
  times.sort((a, b) => a - b)
  process.stdout.write(
    `a tracker's month, ${ASKED} of them: median ${Math.round(times[ASKED >> 1])} ms, at most ${Math.round(times[ASKED - 1])} ms, ${Math.round((user + system) / 1_000 / ASKED)} ms of processor each\n`,
  )
  const hundred = Array.from({ length: Math.min(100, TRACKERS) }, (_, n) => idOf(Math.floor((n * TRACKERS) / 100)))
  for (let again = 0; again < 3; again++) await timed('the month of 100 trackers, by day', () => sum(hundred))
  for (let again = 0; again < 2; again++) await timed('the month of all, by day', () => sum('all'))
}

async function fromPoints(): Promise<void> {
  const points = TRACKERS * DAYS * DAY_POINTS
  await timed(`${points} points are made`, async () => {
    for (let from = 0; from < points; from += AT_ONCE) await make(from, Math.min(AT_ONCE, points - from))
  })
  const one = [idOf(TRACKERS >> 1)]
  await timed("a tracker's month from points", () => sum(one))
  const clock = new FakeClock(START + DAYS * DAY_MS + 2 * 3_600_000)
  const logger = { debug: () => undefined, info: () => undefined, warn: console.error, error: console.error }
  await timed('all are rolled up', () => new PointSteps({ history, clock, logger, gapMs: GAP_MS }).rollUpDue())
  for (let again = 0; again < 3; again++) {
    await timed("a tracker's month", () => sum(one))
    await timed('the month of all, by day', () => sum('all'))
  }
  await timed("a tracker's stops of a month", () => stops(one))
}

async function timed(name: string, work: () => Promise<unknown>): Promise<void> {
  const begunMs = performance.now()
  const before = process.cpuUsage()
  const answer = await work()
  const { user, system } = process.cpuUsage(before)
  process.stdout.write(
    `${name}: ${Math.round(performance.now() - begunMs)} ms, ${Math.round((user + system) / 1_000)} ms of processor${answer === undefined ? '' : `, ${answer} rows`}\n`,
  )
}

/** Each drives around a town of its own, at 0 to 20 m/s. */
async function make(from: number, count: number): Promise<void> {
  await history.command(
    `INSERT INTO ${POINTS} (organizationId, trackerId, recordedAt, latE7, lngE7, flags, speedCms, version)
    SELECT {organization:UUID}, toUUID(concat('01900000-0000-7000-8000-', lower(leftPad(hex(toUInt32(intDiv(n, {own:UInt64}))), 12, '0')))),
      fromUnixTimestamp64Milli(toInt64({start:Int64} + intDiv(n % {own:UInt64}, {day:UInt64}) * ${DAY_MS} + 21600000 + (n % {day:UInt64}) * 1000), 'UTC'),
      toInt32(520000000 + 1000000 * sin(n % {day:UInt64} / 700) + cityHash64(n) % 20),
      toInt32(130000000 + 1500000 * cos(n % {day:UInt64} / 900) + cityHash64(n, 1) % 20),
      4, toInt32(1000 + 1000 * sin(n % {day:UInt64} / 300)), bitOr(9223372036854775808, toUInt64(100000000000 - intDiv(n, 1000)))
    FROM (SELECT number + {from:UInt64} AS n FROM numbers({count:UInt64}))`,
    { organization: ORGANIZATION, own: DAYS * DAY_POINTS, day: DAY_POINTS, start: START, from, count },
  )
}

/** Makes the steps of such points: their values do not change the cost of a report. */
async function makeSteps(): Promise<void> {
  const steps = TRACKERS * DAYS * DAY_STEPS
  for (let from = 0; from < steps; from += STEPS_AT_ONCE)
    await makeSomeSteps(from, Math.min(STEPS_AT_ONCE, steps - from))
  await noteStepState(history, { number: 1, through: START + DAYS * DAY_MS, gapMs: GAP_MS })
}

async function makeSomeSteps(from: number, count: number): Promise<void> {
  await history.command(
    `INSERT INTO ${STEPS} SELECT {organization:UUID} AS organizationId,
      toUUID(concat('01900000-0000-7000-8000-', lower(leftPad(hex(toUInt32(intDiv(n, {own:UInt64}))), 12, '0')))) AS trackerId,
      fromUnixTimestamp64Milli(begun, 'UTC') AS at, begun AS firstAt, begun + ${STEP_MS - 1_000} AS lastAt, 520000000 AS firstLat,
      130000000 AS firstLng, 520100000 AS lastLat, 130100000 AS lastLng, 1 AS firstHasSpeed, 9000.5 AS meters,
      8000.5 AS drivenMeters, 700000 AS drivingMs, 199000 AS stoppedMs, 19.5 AS maxSpeed, 1 AS version
    FROM (SELECT n, toInt64({start:Int64} + intDiv(n % {own:UInt64}, ${DAY_STEPS}) * ${DAY_MS} + 21600000
      + (n % ${DAY_STEPS}) * ${STEP_MS}) AS begun
      FROM (SELECT number + {from:UInt64} AS n FROM numbers({count:UInt64})))`,
    { organization: ORGANIZATION, own: DAYS * DAY_STEPS, start: START, from, count },
  )
}

async function sum(trackerIds: 'all' | string[]): Promise<number> {
  const scope = { organizationId: ORGANIZATION, trackerIds, from: START, to: START + DAYS * DAY_MS - 1 }
  const question = { per: 'day' as const, timeZone: 'Europe/Berlin', gapMs: GAP_MS }
  const names = async (_id: string, ids: readonly string[]) => ids.map(() => 'Van')
  let rows = 0
  for await (const some of summaryRows(history, names, scope, question, undefined, new AbortController().signal))
    rows += some.length
  return rows
}

async function stops(trackerIds: string[]): Promise<number> {
  const scope = { organizationId: ORGANIZATION, trackerIds, from: START, to: START + DAYS * DAY_MS }
  const found: Row[] = []
  const question = { minSeconds: 60, radiusMeters: 100 }
  for await (const some of stopRows(history, undefined, scope, question, undefined, new AbortController().signal))
    found.push(...some.map(({ row }) => row))
  return found.length
}
