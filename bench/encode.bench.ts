import { Bench } from 'tinybench'
import { buildBatch } from '../src/features/locations/ingest/build-batch.ts'
import { HAS_ACCURACY, HAS_HEADING, HAS_SPEED, type PointBatch } from '../src/features/locations/events.ts'
import { decodePointBatch, encodePointBatch } from '../src/features/locations/point-batch-codec.ts'
import { PointColumns } from '../src/features/locations/point-columns.ts'
import { idFrom } from '../src/kit/commands/ids.ts'

/** Batches of 1,000 points as stored in the log, built from a queue's rows: points a second and bytes a point. */
const POINTS = 1000
const START = Date.UTC(2026, 0, 1)

const rows = (trackersCount: number, flags: number): PointColumns => {
  const trackers = Array.from({ length: trackersCount }, (_, i) => ({
    trackerId: idFrom('bench', i),
    organizationId: idFrom('organization', 0),
    partition: 0,
    mark: 0,
    index: 0,
  }))
  const columns = new PointColumns(POINTS)
  for (let i = 0; i < POINTS; i++) {
    columns.tracker.push(trackers[i % trackersCount])
    columns.attributes.push('')
    columns.recordedAt[i] = START + i * 10
    columns.lat[i] = 522_000_000 + i * 137
    columns.lng[i] = 210_000_000 - i * 91
    columns.flags[i] = flags
    columns.accuracy[i] = 450
    columns.speed[i] = 1100 + (i % 50)
    columns.heading[i] = (i * 7) % 3600
  }
  columns.count = POINTS
  return columns
}

const bench = new Bench({ time: 500 })
const sizes = new Map<string, number>()
let sink = 0
for (const [name, flags] of [
  ['plain', 0],
  ['speed, heading, accuracy', HAS_SPEED | HAS_HEADING | HAS_ACCURACY],
] as const) {
  for (const trackersCount of [10, 200]) {
    const columns = rows(trackersCount, flags)
    const batch: PointBatch = buildBatch([{ columns, from: 0, to: POINTS }], START)
    const bytes = encodePointBatch(batch)
    const label = `${name}, ${trackersCount} trackers`
    sizes.set(label, bytes.length / POINTS)
    bench.add(`build   ${label}`, () => {
      sink += buildBatch([{ columns, from: 0, to: POINTS }], START).count
    })
    bench.add(`encode  ${label}`, () => {
      sink += encodePointBatch(batch).length
    })
    bench.add(`decode  ${label}`, () => {
      sink += decodePointBatch(bytes).count
    })
  }
}
await bench.run()
for (const { name, result } of bench.tasks) {
  const us = (result as { latency: { p50: number } }).latency.p50 * 1000
  const bytesPerPoint = sizes.get(name.slice(8)) as number
  process.stdout.write(
    `${name.padEnd(48)} ${(POINTS / us).toFixed(1).padStart(6)} M points/s  ${bytesPerPoint.toFixed(1)} bytes/point\n`,
  )
}
if (sink < 0) process.stdout.write('')
