import { LatestPositions } from '../projections/latest-position.ts'
import type { LocationEntry } from '../src/features/locations/events.ts'
import { systemClock } from '../src/kernel/system-clock.ts'
import { batchOf } from '../test/support/batches.ts'
import { cpuMs } from './support/measure.ts'
import { noTables } from './support/no-tables.ts'

/**
 * Cost of a point in a small frame for the latest positions: processor time to handle it, and to copy its row for a
 * commit. The table itself answers at once. Usage: node dist/bench/latest-positions.bench.js
 */
const TRACKERS = 20_000
const PARTITIONS = 16
/** Approximate share of each partition in 20,000 points/s for 10 ms. */
const BATCH_POINTS = 13
const WARM_ROUNDS = 5
const ROUNDS = 11
const START = Date.UTC(2026, 0, 1)

const latest = new LatestPositions({
  tables: noTables,
  clock: { ...systemClock, after: () => () => undefined },
  partitions: PARTITIONS,
  onFailure: (error) => {
    throw error
  },
})
for (let partition = 0; partition < PARTITIONS; partition++) await latest.load(partition)

let revision = 0

/** One point of each tracker. */
const roundOf = (round: number): LocationEntry[] => {
  const entries: LocationEntry[] = []
  for (let first = 0; first < TRACKERS; first += BATCH_POINTS) {
    const recordedAt = START + round * 1_000
    const points = Array.from({ length: Math.min(BATCH_POINTS, TRACKERS - first) }, (_, i) => ({
      trackerId: `tracker-${String(first + i).padStart(12, '0')}`,
      recordedAt,
      lat: 52 + round / 1e4,
      lng: 21 + i / 1e4,
    }))
    const partition = (first / BATCH_POINTS) % PARTITIONS
    entries.push({ partition, revision, position: revision, kind: 'points', batch: batchOf(points, recordedAt + 5) })
    revision++
  }
  return entries
}

const handleUs: number[] = []
const commitUs: number[] = []
for (let round = 0; round < WARM_ROUNDS + ROUNDS; round++) {
  const entries = roundOf(round)
  const begun = process.cpuUsage()
  for (const entry of entries) await latest.handle(entry, entry.partition)
  const handled = cpuMs(begun)
  await latest.flush()
  if (round < WARM_ROUNDS) continue
  handleUs.push((handled * 1_000) / TRACKERS)
  commitUs.push(((cpuMs(begun) - handled) * 1_000) / TRACKERS)
}

const spread = (values: number[]): string => {
  values.sort((a, b) => a - b)
  return `${values[values.length >> 1].toFixed(2)} µs (${values[0].toFixed(2)} to ${values[values.length - 1].toFixed(2)})`
}
process.stdout.write(`a point of ${TRACKERS} trackers, handled:  ${spread(handleUs)}\n`)
process.stdout.write(`its row, copied for a commit:       ${spread(commitUs)}\n`)
