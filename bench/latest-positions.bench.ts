import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LatestPositions } from '../projections/latest-position.ts'
import { openLmdbTableStore } from '../src/engines/lmdb-tables/lmdb-tables.ts'
import type { TableStore } from '../src/engines/table-store.ts'
import type { LocationEntry } from '../src/features/locations/events.ts'
import { systemClock } from '../src/kernel/system-clock.ts'
import { batchOf } from '../test/support/batches.ts'
import { cpuMs } from './support/measure.ts'
import { noTables } from './support/no-tables.ts'

/**
 * Cost of a point in a small frame for the latest positions: processor time to handle it, and to copy its row for a
 * commit to a table that answers at once. Then the same commit to LMDB, whose writer is a thread of its own: the time of
 * the main thread, and the processor time of both. Usage: node dist/bench/latest-positions.bench.js
 */
const TRACKERS = 20_000
const PARTITIONS = 16
/** Approximate share of each partition in 20,000 points/s for 10 ms. */
const BATCH_POINTS = 13
const WARM_ROUNDS = 5
const ROUNDS = 11
const START = Date.UTC(2026, 0, 1)

const open = async (tables: TableStore): Promise<LatestPositions> => {
  const latest = new LatestPositions({
    tables,
    clock: { ...systemClock, after: () => () => undefined },
    partitions: PARTITIONS,
    onFailure: (error) => {
      throw error
    },
  })
  for (let partition = 0; partition < PARTITIONS; partition++) await latest.load(partition)
  return latest
}

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

interface Costs {
  handledUs: number[]
  /** Processor time of a row, and how long it kept the event loop. */
  committedUs: number[]
  loopUs: number[]
}

/** A row for each tracker, in each round. */
const measure = async (tables: TableStore): Promise<Costs> => {
  const latest = await open(tables)
  const costs: Costs = { handledUs: [], committedUs: [], loopUs: [] }
  for (let round = 0; round < WARM_ROUNDS + ROUNDS; round++) {
    const entries = roundOf(round)
    const begun = process.cpuUsage()
    for (const entry of entries) await latest.handle(entry, entry.partition)
    const handled = cpuMs(begun)
    const loop = performance.eventLoopUtilization()
    await latest.flush()
    if (round < WARM_ROUNDS) continue
    costs.handledUs.push((handled * 1_000) / TRACKERS)
    costs.committedUs.push(((cpuMs(begun) - handled) * 1_000) / TRACKERS)
    costs.loopUs.push((performance.eventLoopUtilization(loop).active * 1_000) / TRACKERS)
  }
  return costs
}

const spread = (values: number[]): string => {
  values.sort((a, b) => a - b)
  return `${values[values.length >> 1].toFixed(2)} µs (${values[0].toFixed(2)} to ${values[values.length - 1].toFixed(2)})`
}

const bare = await measure(noTables)
process.stdout.write(`a point of ${TRACKERS} trackers, handled:  ${spread(bare.handledUs)}\n`)
process.stdout.write(`its row, copied for a commit:       ${spread(bare.committedUs)}\n`)
const folder = mkdtempSync(join(tmpdir(), 'waymark-latest-'))
try {
  const tables = await openLmdbTableStore({ path: folder, clock: systemClock })
  const stored = await measure(tables)
  process.stdout.write(`the same, committed to LMDB:        ${spread(stored.committedUs)}\n`)
  process.stdout.write(`of that, time of the event loop:    ${spread(stored.loopUs)}\n`)
  await tables.close()
} finally {
  rmSync(folder, { recursive: true })
}
