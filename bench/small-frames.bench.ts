import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DecisionsHistory } from '../projections/decisions-history.ts'
import type { HistoryErasures } from '../projections/erasures.ts'
import { LatestPositions } from '../projections/latest-position.ts'
import { LocationHistory } from '../projections/location-history.ts'
import type { HistoryStore } from '../src/engines/history-store.ts'
import { openLmdbEventLog } from '../src/engines/lmdb-log/lmdb-log.ts'
import { openLmdbTableStore } from '../src/engines/lmdb-tables/lmdb-tables.ts'
import { GEOFENCE_CREATED, geofenceStream } from '../src/features/geofences/events.ts'
import { FENCES_CHANGED, locationStream, partitionOf, type LocationEntry } from '../src/features/locations/events.ts'
import { Batcher, BATCHER_LIMITS } from '../src/features/locations/ingest/batcher.ts'
import { locationEntry } from '../src/features/locations/location-entry.ts'
import { PointColumns } from '../src/features/locations/point-columns.ts'
import type { KnownTracker } from '../src/features/trackers/views.ts'
import { transitionStream } from '../src/features/transitions/events.ts'
import { keptShape } from '../src/geo/shape.ts'
import { encodeJson } from '../src/kernel/event.ts'
import { idFrom } from '../src/kit/commands/ids.ts'
import { PartitionFeed } from '../src/kit/consumers/partition-feed.ts'
import { LiveHub } from '../src/live/hub.ts'
import { decodeTransition, type TransitionEntry } from '../src/reactors/dispatch/owe.ts'
import { GeofenceMatcher } from '../src/reactors/matcher/match-geofences.ts'
import { FakeClock } from '../test/support/fake-clock.ts'
import { seeded } from '../test/support/random.ts'
import { blob } from './support/geo-data.ts'
import { lookAt } from './support/viewers.ts'

/**
 * Cost of a point in small frames for the main thread from the batcher on: the append, and the turns of the matcher,
 * the latest positions, the histories and the live view, over the embedded log and tables. Each beat brings a number of
 * frames of ten trackers, and the next one begins when all its effects are handled, so a busy machine changes the time,
 * not the work. Usage: node dist/bench/small-frames.bench.js [viewers]
 */
const viewers = Number(process.argv[2] ?? 0)
/** Points of a beat: at 2,000 points/s, 20,000 and 100,000. */
const SIZES = [20, 200, 1_000]
const POINTS = 60_000
const BEATS_MAX = 300
const PARTITIONS = 16
const TRACKERS = 20_000
const FRAME_POINTS = 10
const FENCES = 10_000
const VERTICES = 50
const RADIUS_DEGREES = 0.005
const COVER = 1.15
const STEP_E7 = 900
const ORGANIZATION = idFrom('bench', 'organization')
const GROUP = idFrom('bench', 'group')

const logger = { debug() {}, info() {}, warn() {}, error: (text: string, more?: object) => console.error(text, more) }
const failed = (error: unknown): void => console.error(error)
/** A beat takes 10 ms of it, however long it takes here: work of once a second is done once in a hundred beats. */
const clock = new FakeClock(Date.now())
const BEAT_MS = 10
const random = seeded(1)
const side = Math.sqrt((FENCES * Math.PI * (0.8 * RADIUS_DEGREES) ** 2) / COVER)

const folder = mkdtempSync(join(tmpdir(), 'waymark-small-frames-'))
const log = await openLmdbEventLog({ path: join(folder, 'log'), clock })
const tables = await openLmdbTableStore({ path: join(folder, 'tables'), clock })
const history = { insert: async () => undefined } as unknown as HistoryStore
const nothing = { isEmpty: true, has: () => false, hasOf: () => false }
const erasures = { known: nothing, join() {}, leave() {}, knowAt: async () => undefined } as unknown as HistoryErasures

/** Fences in force in every partition. */
const putFences = async (): Promise<void> => {
  const ids = Array.from({ length: FENCES }, (_, i) => idFrom('bench fence', i))
  const created = await Promise.all(
    ids.map((id, i) => {
      const shape = keptShape(blob(random, 9 + random() * side, 50 + random() * side, RADIUS_DEGREES, VERTICES))
      const data = encodeJson({
        organizationId: ORGANIZATION,
        name: 'f',
        geofenceGroupId: GROUP,
        isActive: true,
        shape,
        at: 0,
      })
      const event = { id: idFrom('created', i), type: GEOFENCE_CREATED, data, isJson: true, metadata: {} }
      return log.append(geofenceStream(id), [event], 'none')
    }),
  )
  const sourcePosition = Math.max(...created.map(({ position }) => position))
  const geofences = ids.map((geofenceId) => ({ geofenceId, revision: 0 }))
  const data = encodeJson({ organizationId: ORGANIZATION, at: 0, sourcePosition, geofences, groups: [] })
  for (let partition = 0; partition < PARTITIONS; partition++)
    await log.append(
      locationStream(partition),
      [{ id: idFrom('change', partition), type: FENCES_CHANGED, data, isJson: true, metadata: {} }],
      'any',
    )
}
await putFences()

const locations = new PartitionFeed<LocationEntry>({ log, logger, streamOf: locationStream, decode: locationEntry })
const transitions = new PartitionFeed<TransitionEntry>({
  log,
  logger,
  streamOf: transitionStream,
  decode: decodeTransition,
})
let decisions = 0
const matcher = new GeofenceMatcher(
  { log, tables, clock },
  {
    onDecided: (partition, revision, position, decided) => {
      decisions += decided.decisions.length
      transitions.offer(partition, revision, decided.sourceLoggedAt, { revision, position, decided })
    },
    onFailure: (_, error) => failed(error),
  },
)
const services = { history, tables, clock, erasures, epoch: 0, onFailure: failed }
const latest = new LatestPositions({ tables, clock, partitions: PARTITIONS, onFailure: failed })
const points = new LocationHistory(services)
const decided = new DecisionsHistory(services)
async function* none(): AsyncGenerator<never> {}
const ids = Array.from({ length: TRACKERS }, (_, i) => idFrom('bench tracker', i))
async function* facts() {
  for (const trackerId of ids) yield { trackerId, facts: { name: 'bus', hubIds: [] } }
}
const hub = new LiveHub({
  log,
  partitions: PARTITIONS,
  logMark: 7,
  ages: { staleAfterMs: 300_000, offlineAfterMs: 3_600_000 },
  clock,
  logger,
  onConflated() {},
  sources: {
    latestPoints: async () => ({ points: none(), keptUpTo: {} }),
    trackers: async () => facts(),
    factsOf: async () => [],
    decode: locationEntry,
    eventOf: (decision) => decision,
  },
  feeds: [],
})
for (let partition = 0; partition < PARTITIONS; partition++) {
  await transitions.add(hub.events, partition)
  await locations.add(hub.positions, partition)
  await locations.add(latest, partition)
  await locations.add(points, partition)
  await transitions.add(decided, partition)
  await locations.add(matcher, partition)
}

let sent = 0
/** Each looks at a hundredth of the map. */
const watch = (): void => {
  const [west, south] = [9 + random() * side * 0.9, 50 + random() * side * 0.9]
  lookAt(hub, ORGANIZATION, { bbox: [west, south, west + side / 10, south + side / 10] }, (text) => {
    sent += text.length
  })
}

const batcher = new Batcher({
  log,
  clock,
  logger,
  partitions: PARTITIONS,
  limits: BATCHER_LIMITS,
  onAppended: (entry) => {
    if (entry.kind === 'points')
      locations.offer(entry.partition, entry.revision, entry.batch.loggedAt, entry, entry.batch.count)
  },
  startAppendTimer: () => () => {
    appends++
  },
})
let appends = 0

const fleet = ids.map((trackerId) => ({
  tracker: {
    trackerId,
    organizationId: ORGANIZATION,
    partition: partitionOf(trackerId, PARTITIONS),
    mark: 0,
    index: 0,
  } as unknown as KnownTracker,
  lng: Math.round((9 + random() * side) * 1e7),
  lat: Math.round((50 + random() * side) * 1e7),
  heading: random() * 2 * Math.PI,
}))
let next = 0
const columns = new PointColumns(FRAME_POINTS)
/** A frame of ten trackers that have gone 10 m. */
const frame = (now: number): void => {
  columns.count = 0
  for (let i = 0; i < FRAME_POINTS; i++) {
    const one = fleet[next++ % TRACKERS]
    one.heading += (random() - 0.5) * 0.4
    one.lng += Math.round((STEP_E7 * Math.sin(one.heading)) / 0.64)
    one.lat += Math.round(STEP_E7 * Math.cos(one.heading))
    columns.tracker[i] = one.tracker
    columns.recordedAt[i] = now
    columns.lng[i] = one.lng
    columns.lat[i] = one.lat
    columns.flags[i] = 0
    columns.attributes[i] = ''
    columns.count++
  }
}
const taken = (): Promise<void> =>
  new Promise((done) => {
    const ticket = { remaining: 0, durable: done, refused: failed }
    if (!batcher.submit(ORGANIZATION, columns, 0, ticket, true)) throw new Error('the queue is full')
  })

const beat = async (beatPoints: number): Promise<void> => {
  const at = clock.now()
  const frames: Promise<void>[] = []
  for (let i = 0; i < beatPoints / FRAME_POINTS; i++) {
    frame(at)
    frames.push(taken())
  }
  await Promise.all(frames)
  clock.advance(BEAT_MS)
}

const isHandled = async (): Promise<boolean> =>
  [...(await locations.lags(clock.now())), ...(await transitions.lags(clock.now()))].every(
    ({ consumer, events }) => consumer === 'latest-position' || consumer.endsWith('history') || events === 0,
  )

/** Processor time of the main thread, ms. */
const mainMs = (): number =>
  Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6

const drive = async (count: number, beatPoints: number): Promise<void> => {
  for (let i = 0; i < count; i++) await beat(beatPoints)
  while (!(await isHandled())) {
    clock.advance(BEAT_MS)
    await new Promise((resume) => setTimeout(resume, 20))
  }
}

const alive = setInterval(() => {}, 1_000)
for (let i = 0; i < viewers; i++) watch()
// Every tracker comes to its place, so that the index of fences has its leaves.
for (let i = 0; i < TRACKERS / FRAME_POINTS; ) {
  const frames: Promise<void>[] = []
  for (const end = i + 200; i < end; i++) {
    frame(clock.now())
    frames.push(taken())
  }
  clock.advance(BEAT_MS)
  await Promise.all(frames)
}
await drive(200, 200)
const measure = async (beatPoints: number): Promise<void> => {
  const beats = Math.min(BEATS_MAX, POINTS / beatPoints)
  const begun = { main: mainMs(), cpu: process.cpuUsage(), appends, decisions, sent }
  await drive(beats, beatPoints)
  const main = mainMs() - begun.main
  const { user, system } = process.cpuUsage(begun.cpu)
  const points = beats * beatPoints
  process.stdout.write(
    `${beatPoints} points a beat, ${viewers} viewers: main thread ${((main * 1_000) / points).toFixed(2)} µs a point, ` +
      `process ${((user + system) / points).toFixed(2)}, ${((appends - begun.appends) / beats).toFixed(1)} appends and ` +
      `${((decisions - begun.decisions) / beats).toFixed(1)} decisions a beat, ` +
      `${Math.round((sent - begun.sent) / beats)} bytes to viewers\n`,
  )
}
for (let round = 0; round < 2; round++) for (const size of SIZES) await measure(size)
clearInterval(alive)
rmSync(folder, { recursive: true, force: true })
process.exit(0)
