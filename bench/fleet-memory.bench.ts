import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type NodeGCPerformanceDetail, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks'
import { parseArgs } from 'node:util'
import { LatestPositions } from '../projections/latest-position.ts'
import type { EventLog } from '../src/engines/event-log.ts'
import { openLmdbTableStore } from '../src/engines/lmdb-tables/lmdb-tables.ts'
import { partitionOf, type PointBatch } from '../src/features/locations/events.ts'
import { emptyBatch } from '../src/features/locations/ingest/build-batch.ts'
import { latestPointAt } from '../src/features/locations/views.ts'
import { systemClock } from '../src/kernel/system-clock.ts'
import { idFrom } from '../src/kit/commands/ids.ts'
import { LiveHub } from '../src/live/hub.ts'
import { FakeClock } from '../test/support/fake-clock.ts'
import { seeded } from '../test/support/random.ts'
import { collected, cpuMs } from './support/measure.ts'
import { noTables } from './support/no-tables.ts'
import { lookAt } from './support/viewers.ts'

/**
 * Memory of a tracker in the latest positions and in the live view, and collections of garbage at 20,000 points/s, which
 * come in beats of 10 ms of a clock of its own: a busy machine changes how long the bench takes, not its work. The
 * service's collections are those of --max-semi-space-size=64. Tables answer at once, or are LMDB's with --lmdb.
 * Usage: node --max-semi-space-size=64 dist/bench/fleet-memory.bench.js --trackers 200000 --viewers 200 --seconds 20
 */
const { values } = parseArgs({
  options: {
    trackers: { type: 'string', default: '200000' },
    viewers: { type: 'string', default: '200' },
    seconds: { type: 'string', default: '20' },
    lmdb: { type: 'boolean', default: false },
  },
})
const [TRACKERS, VIEWERS, SECONDS] = [values.trackers, values.viewers, values.seconds].map(Number)
const PARTITIONS = 16
const HUBS = 50
const BEAT_MS = 10
const BEAT_POINTS = 200
const ORGANIZATION = idFrom('bench', 'organization')
const random = seeded(3)
const clock = new FakeClock(Date.now())
const folder = mkdtempSync(join(tmpdir(), 'waymark-fleet-memory-'))
const failed = (error: unknown): never => {
  throw error
}

const tables = values.lmdb ? await openLmdbTableStore({ path: join(folder, 'tables'), clock: systemClock }) : noTables

const latest = new LatestPositions({ tables, clock, partitions: PARTITIONS, onFailure: failed })
for (let partition = 0; partition < PARTITIONS; partition++) await latest.load(partition)

/** Members of the trackers as a table answers them: all strings and lists are of one row alone. */
async function* facts() {
  for (let i = 0; i < TRACKERS; i++)
    yield {
      trackerId: ids[i],
      facts: JSON.parse(JSON.stringify({ name: `Vehicle ${i}`, hubIds: [hubIds[i % HUBS]], teamId: hubIds[i % HUBS] })),
    }
}
async function* rows() {
  for (let i = 0; i < TRACKERS; i += BEAT_POINTS) {
    const batch = batchOf(Array.from({ length: Math.min(BEAT_POINTS, TRACKERS - i) }, (_, k) => i + k))
    for (let k = 0; k < batch.count; k++) yield latestPointAt(batch, k, batch.trackers[k].trackerId)
  }
}
const hub = new LiveHub({
  log: { head: async () => -1, read: async () => [] } as unknown as EventLog,
  partitions: PARTITIONS,
  logMark: 7,
  ages: { staleAfterMs: 300_000, offlineAfterMs: 3_600_000 },
  clock,
  logger: { debug() {}, info() {}, warn() {}, error: failed },
  onConflated() {},
  sources: {
    latestPoints: async () => ({ points: rows(), keptUpTo: {} }),
    trackers: async () => facts(),
    factsOf: async () => [],
    decode: failed,
    eventOf: (decision) => decision,
  },
  feeds: [],
})

const hubIds = Array.from({ length: HUBS }, (_, i) => idFrom('bench hub', i))
const ids = new Array<string>(TRACKERS).fill('')
const places = { lat: new Int32Array(TRACKERS), lng: new Int32Array(TRACKERS), partition: new Uint16Array(TRACKERS) }
const DEGREES = 3

const batchOf = (trackers: readonly number[]): PointBatch => {
  const now = clock.now()
  const known = trackers.map((i) => ({ trackerId: ids[i], organizationId: ORGANIZATION }))
  const batch = emptyBatch(trackers.length, now, known)
  for (const [k, i] of trackers.entries()) {
    batch.tracker[k] = k
    batch.lat[k] = places.lat[i]
    batch.lng[k] = places.lng[i]
  }
  batch.recordedAt.fill(now)
  return batch
}

const spent = { latest: 0, live: 0, longestMs: 0 }
let revision = -1
const timed = async (part: 'latest' | 'live', work: () => void | Promise<void>): Promise<void> => {
  const begun = process.cpuUsage()
  const startedAt = performance.now()
  const working = work()
  spent.longestMs = Math.max(spent.longestMs, performance.now() - startedAt)
  await working
  spent[part] += cpuMs(begun)
}

/** The next points of these trackers, each some 10 m further, as one entry of each partition. */
const beat = async (from: number, count: number, parts: { live: boolean }): Promise<void> => {
  const own = Array.from({ length: PARTITIONS }, (): number[] => [])
  for (let k = 0; k < count; k++) {
    const i = (from + k) % TRACKERS
    places.lat[i] += Math.round((random() - 0.5) * 1_800)
    places.lng[i] += Math.round((random() - 0.5) * 2_800)
    own[places.partition[i]].push(i)
  }
  revision++
  const entries = own.map((trackers, partition) => ({
    kind: 'points' as const,
    partition,
    revision,
    position: revision,
    batch: batchOf(trackers),
  }))
  for (const entry of entries) await timed('latest', () => latest.handle(entry, entry.partition))
  if (parts.live) for (const entry of entries) await timed('live', () => hub.positions.handle(entry, entry.partition))
}

let snapshots = 0
let sent = 0
const watch = (bbox: number[] | undefined, trackerIds?: string[]): void =>
  lookAt(hub, ORGANIZATION, { bbox, trackerIds }, (text) => {
    sent += text.length
    if (text.startsWith('{"type":"snapshot"') && !text.endsWith('"more":true}')) snapshots++
  })
/** Until so many snapshots were sent. */
const shown = async (count: number): Promise<void> => {
  while (snapshots < count) {
    clock.advance(BEAT_MS)
    await new Promise((resume) => setImmediate(resume))
  }
}

let before = { heapUsed: 0, arrayBuffers: 0, anonymous: 0, mapped: 0 }
const rssOf = (what: string): number =>
  Number(new RegExp(`${what}:\\s+(\\d+)`).exec(readFileSync('/proc/self/status', 'utf8'))?.[1]) * 1024
/** Prints what has come since the last call. */
const report = (name: string): void => {
  const { heapUsed, arrayBuffers } = collected()
  const now = { heapUsed, arrayBuffers, anonymous: rssOf('RssAnon'), mapped: rssOf('RssFile') }
  if (name !== '') {
    const [heap, buffers, anonymous, mapped] = (['heapUsed', 'arrayBuffers', 'anonymous', 'mapped'] as const).map(
      (part) => ((now[part] - before[part]) / TRACKERS).toFixed(0).padStart(6),
    )
    const held = ((heapUsed + arrayBuffers - before.heapUsed - before.arrayBuffers) / TRACKERS).toFixed(0).padStart(6)
    console.log(
      `${name.padEnd(40)} ${held} bytes a tracker: heap ${heap}, buffers ${buffers}; anonymous ${anonymous}, mapped files ${mapped}`,
    )
  }
  before = now
}

const gc = { minorMs: 0, majorMs: 0, minor: 0, major: 0 }
const MINOR = 1
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) {
    const { duration, detail } = entry as PerformanceEntry & { detail: NodeGCPerformanceDetail }
    const isMinor = detail.kind === MINOR
    gc[isMinor ? 'minorMs' : 'majorMs'] += duration
    gc[isMinor ? 'minor' : 'major']++
  }
}).observe({ entryTypes: ['gc'] })

const steady = async (seconds: number): Promise<void> => {
  const beats = (seconds * 1_000) / BEAT_MS
  await new Promise((resume) => setTimeout(resume, 10))
  Object.assign(gc, { minorMs: 0, majorMs: 0, minor: 0, major: 0 })
  Object.assign(spent, { latest: 0, live: 0, longestMs: 0 })
  sent = 0
  let [tellingMs, next] = [0, 0]
  const begun = process.cpuUsage()
  const startedAt = performance.now()
  for (let i = 0; i < beats; i++) {
    await beat(next, BEAT_POINTS, { live: true })
    next += BEAT_POINTS
    const ticked = process.cpuUsage()
    clock.advance(BEAT_MS)
    await new Promise((resume) => setImmediate(resume))
    tellingMs += cpuMs(ticked)
  }
  const cpu = cpuMs(begun)
  // A pause is as much longer than its work as the rest of the time.
  const share = cpu / (performance.now() - startedAt) / seconds / 10
  await new Promise((resume) => setTimeout(resume, 10))
  const us = (ms: number): string => ((ms * 1_000) / (beats * BEAT_POINTS)).toFixed(2)
  console.log(
    `${seconds} s at 20,000 points/s: CPU a point ${us(cpu)} µs: latest positions ${us(spent.latest)}, live view ${us(spent.live)}, ` +
      `told and stored ${us(tellingMs)}; longest turn of an entry ${spent.longestMs.toFixed(1)} ms; ${Math.round(sent / beats)} bytes a beat to viewers`,
  )
  console.log(
    `scavenges ${gc.minor}, ${(gc.minorMs * share).toFixed(2)} % of the time; other collections ${gc.major}, ${(gc.majorMs * share).toFixed(2)} %`,
  )
}

const alive = setInterval(() => {}, 1_000)
report('')
for (let i = 0; i < TRACKERS; i++) {
  ids[i] = idFrom('bench tracker', i)
  places.lat[i] = Math.round((51 + random() * DEGREES) * 1e7)
  places.lng[i] = Math.round((20 + random() * DEGREES) * 1e7)
  places.partition[i] = partitionOf(ids[i], PARTITIONS)
}
report('ids, held by whoever names a tracker')
for (let from = 0; from < TRACKERS; from += 10 * BEAT_POINTS)
  await beat(from, Math.min(10 * BEAT_POINTS, TRACKERS - from), { live: false })
console.log(`longest turn of an entry while they come: ${spent.longestMs.toFixed(1)} ms`)
report('latest positions, nothing stored yet')
await latest.flush()
report('latest positions, stored')
watch(undefined, [ids[0]])
await shown(1)
report('live view, one tracker watched')
for (let i = 0; i < VIEWERS; i++) {
  const [west, south] = [20 + random() * DEGREES * 0.9, 51 + random() * DEGREES * 0.9]
  watch([west, south, west + DEGREES / 10, south + DEGREES / 10])
}
await shown(1 + VIEWERS)
report(`${VIEWERS} viewers of a hundredth each`)
await steady(5)
for (let round = 0; round < 2; round++) await steady(SECONDS)
report('after that')
clearInterval(alive)
rmSync(folder, { recursive: true, force: true })
process.exit(0)
