import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { PointBlock } from '../projections/location-history-block.ts'
import { POINTS } from '../src/engines/clickhouse-sql/history-tables.ts'
import { openSchema } from '../src/engines/clickhouse-sql/history-schema.ts'
import { openChdbHistoryStore, type ChdbHistoryStore } from '../src/engines/chdb/chdb-history.ts'
import { readHistory } from '../src/features/locations/history/query.ts'
import { HAS_SPEED, type PointBatch } from '../src/features/locations/events.ts'
import { readTrace, withoutData } from '../test/support/shared-data.ts'
import { entriesOf, uuidOf } from '../test/support/trace-batches.ts'

/**
 * Cost of the location history: `node dist/bench/history.bench.js [--rows 20000000]`. Inserted rows a second and CPU
 * for each, beside the same rows as JSON text in the same run; bytes a point by column on a real fleet; one tracker's
 * day at 1 Hz out of the rows, simplified to 20 m.
 */
const { values } = parseArgs({ options: { rows: { type: 'string', default: '2000000' } } })
const ORGANIZATION = uuidOf('organization')
const BLOCK_ROWS = 50_000
const DAY_POINTS = 86_400
const START = Date.parse('2026-05-01T00:00:00Z')
const trackerIds = Array.from({ length: 1_000 }, (_, i) => uuidOf(`tracker ${i}`))
const WALKER = uuidOf('the one with 1 Hz')

const folder = mkdtempSync(join(tmpdir(), 'history-bench-'))
const store = await openChdbHistoryStore({ path: join(folder, 'data'), scratchPath: join(folder, 'scratch') })
try {
  await openSchema(store, { days: 36_500, runDays: 36_500 })
  await bytesByColumn(store, 'fleet-warsaw-2024-02-19-sample')
  await store.command(`TRUNCATE TABLE ${POINTS}`)
  await insertJson(store, 100_000)
  await store.command(`TRUNCATE TABLE ${POINTS}`)
  await insertNative(store, Number(values.rows))
  await dayQuery(store)
} finally {
  await store.close()
  rmSync(folder, { recursive: true, force: true })
}

function print(name: string, figures: { [name: string]: string | number }): void {
  process.stdout.write(
    `${name}: ${Object.entries(figures)
      .map(([figure, value]) => `${figure} ${value}`)
      .join(', ')}\n`,
  )
}

async function bytesByColumn(store: ChdbHistoryStore, trace: string): Promise<void> {
  if (withoutData) return print('bytes a point', { skipped: withoutData })
  await store.command(`ALTER TABLE ${POINTS} MODIFY SETTING min_bytes_for_wide_part = 0, min_rows_for_wide_part = 0`)
  const block = new PointBlock(BLOCK_ROWS)
  for (const entry of entriesOf(readTrace(trace, ORGANIZATION)))
    if (entry.kind === 'points') block.add(entry.batch, 0, entry.revision)
  await store.insert(POINTS, block.encode(), 'trace')
  await store.command(`OPTIMIZE TABLE ${POINTS} FINAL`)
  const [{ rows, disk }] = await store.rows<{ rows: number; disk: number }>(
    'SELECT sum(rows) AS rows, sum(bytes_on_disk) AS disk FROM system.parts WHERE active AND table = {table:String}',
    { table: POINTS },
  )
  const columns = await store.rows<{ column: string; bytes: number }>(
    `SELECT column, sum(column_data_compressed_bytes) AS bytes FROM system.parts_columns WHERE active AND table = {table:String}
      GROUP BY column ORDER BY bytes DESC`,
    { table: POINTS },
  )
  print(`bytes a point (${trace}, ${rows} points)`, {
    'on disk': (disk / rows).toFixed(2),
    ...Object.fromEntries(columns.map(({ column, bytes }) => [column, (bytes / rows).toFixed(2)])),
  })
}

/** A batch of 1,000 points: 50 of 1,000 trackers, 20 points each; every tenth batch is of the one with 1 Hz until its day is over. */
function batch(number: number): PointBatch {
  const isWalker = number % 10 === 0 && number < (DAY_POINTS / 1_000) * 10
  const count = 1_000
  const trackers = Array.from({ length: isWalker ? 1 : 50 }, (_, i) => ({
    organizationId: ORGANIZATION,
    trackerId: isWalker ? WALKER : trackerIds[(number * 50 + i) % trackerIds.length],
  }))
  const each = count / trackers.length
  const column = (value: (tracker: number, i: number) => number): number[] =>
    Array.from({ length: count }, (_, i) => value(Math.floor(i / each), i % each))
  const first = isWalker ? START + number * 100_000 : START + Math.floor(number / 20) * each * 1_000
  const drift = (tracker: number, i: number): number =>
    Math.round(Math.sin((number + tracker) / 7) * 3_000 + i * 900 + Math.sin(i) * 200)
  return {
    loggedAt: first,
    count,
    trackers,
    tracker: Uint16Array.from(column((tracker) => tracker)),
    recordedAt: Float64Array.from(column((_tracker, i) => first + i * 1_000)),
    lat: Int32Array.from(column((tracker, i) => 520_000_000 + number * 100 + drift(tracker, i))),
    lng: Int32Array.from(column((tracker, i) => 210_000_000 + number * 150 + drift(tracker, i + 3))),
    flags: new Uint16Array(count).fill(HAS_SPEED),
    accuracy: new Int32Array(count),
    altitude: new Int32Array(count),
    speed: Int32Array.from(column((tracker, i) => 1_000 + ((tracker * 7 + i * 13) % 400))),
    heading: new Uint16Array(count),
    battery: new Uint8Array(count),
    attributes: new Map(),
  }
}

async function insertNative(store: ChdbHistoryStore, rows: number): Promise<void> {
  const block = new PointBlock(BLOCK_ROWS)
  const batches = Array.from({ length: Math.ceil(rows / 1_000) }, (_, number) => number)
  let ms = 0
  let cpu = 0
  for (const number of batches) {
    const made = batch(number)
    const from = { time: performance.now(), cpu: process.cpuUsage() }
    block.add(made, 0, number)
    if (block.rows >= BLOCK_ROWS) {
      await store.insert(POINTS, block.encode(), `native ${number}`)
      block.clear()
    }
    const used = process.cpuUsage(from.cpu)
    ms += performance.now() - from.time
    cpu += used.user + used.system
  }
  if (block.rows > 0) await store.insert(POINTS, block.encode(), 'native last')
  print('insert, Native blocks', {
    rows,
    'rows/s': Math.round((rows / ms) * 1000),
    'CPU µs/row with merges': (cpu / rows).toFixed(2),
  })
}

/** The same batches as JSON text, by the engine's own reader of it. */
async function insertJson(store: ChdbHistoryStore, rows: number): Promise<void> {
  let ms = 0
  let cpu = 0
  for (let number = 0; number * BLOCK_ROWS < rows; number++) {
    const batches = Array.from({ length: BLOCK_ROWS / 1_000 }, (_, i) => batch(number * 50 + i))
    const from = { time: performance.now(), cpu: process.cpuUsage() }
    const lines: string[] = []
    for (const { count, trackers, tracker, recordedAt, lat, lng, flags, speed } of batches) {
      for (let i = 0; i < count; i++) {
        lines.push(
          JSON.stringify({
            ...trackers[tracker[i]],
            recordedAt: recordedAt[i],
            latE7: lat[i],
            lngE7: lng[i],
            flags: flags[i],
            speedCms: speed[i],
            version: 1,
          }),
        )
      }
    }
    await store.command(
      `INSERT INTO ${POINTS} SELECT organizationId, trackerId, fromUnixTimestamp64Milli(recordedAt), latE7, lngE7, flags, 0, 0, speedCms, 0, 0, '', version
      FROM format(JSONEachRow, 'organizationId UUID, trackerId UUID, recordedAt Int64, latE7 Int32, lngE7 Int32, flags UInt16, speedCms Int32, version UInt64', {rows:String})`,
      { rows: lines.join('\n') },
    )
    const used = process.cpuUsage(from.cpu)
    ms += performance.now() - from.time
    cpu += used.user + used.system
  }
  print('insert, JSONEachRow', {
    rows,
    'rows/s': Math.round((rows / ms) * 1000),
    'CPU µs/row': (cpu / rows).toFixed(2),
  })
}

async function dayQuery(store: ChdbHistoryStore): Promise<void> {
  const [{ rows, parts }] = await store.rows<{ rows: number; parts: number }>(
    'SELECT sum(rows) AS rows, count() AS parts FROM system.parts WHERE active AND table = {table:String}',
    { table: POINTS },
  )
  for (const simplifyMeters of [undefined, 20]) {
    const times: number[] = []
    let bytes = 0
    for (let i = 0; i < 9; i++) {
      const from = performance.now()
      bytes = 0
      const answer = await readHistory(
        store,
        { organizationId: ORGANIZATION, trackerIds: 'all' },
        { trackerIds: [WALKER], from: START, to: START + DAY_POINTS * 1_000, format: 'ndjson', simplifyMeters },
        START,
      )
      for await (const chunk of answer.body) bytes += chunk.byteLength
      times.push(performance.now() - from)
    }
    times.sort((a, b) => a - b)
    print(
      `one tracker's day (${DAY_POINTS} points of ${rows} in ${parts} parts)${simplifyMeters === undefined ? '' : ', simplified to 20 m'}`,
      {
        'median ms': times[4].toFixed(0),
        'worst ms': times[8].toFixed(0),
        bytes,
      },
    )
  }
}
