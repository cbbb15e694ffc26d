import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { openLmdbEventLog } from '../src/engines/lmdb-log/lmdb-log.ts'
import { openLmdbTableStore } from '../src/engines/lmdb-tables/lmdb-tables.ts'
import { GEOFENCE_CREATED, geofenceStream } from '../src/features/geofences/events.ts'
import { FENCES_CHANGED, locationStream, POINTS_RECORDED, type PointBatch } from '../src/features/locations/events.ts'
import { locationEntry } from '../src/features/locations/location-entry.ts'
import { decodePointBatch, encodePointBatch } from '../src/features/locations/point-batch-codec.ts'
import { FenceIndex } from '../src/geo/fence-index.ts'
import { keptShape, makeShape } from '../src/geo/shape.ts'
import { encodeJson } from '../src/kernel/event.ts'
import { systemClock } from '../src/kernel/system-clock.ts'
import { idFrom } from '../src/kit/commands/ids.ts'
import { GeofenceMatcher } from '../src/reactors/matcher/match-geofences.ts'
import { decideBatch } from '../src/reactors/matcher/decide.ts'
import { Decisions } from '../src/reactors/matcher/decisions.ts'
import { EVERY_FIX, type FenceInForce, FenceNumbers, Fences, Lane } from '../src/reactors/matcher/fences.ts'
import { MatcherState } from '../src/reactors/matcher/state.ts'
import { blob } from './support/geo-data.ts'
import { cpuMs, heldBytes } from './support/measure.ts'
import { seeded } from '../test/support/random.ts'

/*
 * The whole matcher: late rule, trips, accuracy lanes and transitions, first over batches in memory, then from the log,
 * with decoding, appends and stored state. 20,000 trackers go 10 m from point to point among 10,000 fences.
 */

export type Row = { name: string; value: number; unit: string }

const FENCES = 10_000
const VERTICES = 50
const RADIUS_DEGREES = 0.005
const COVER = 1.15
const TRACKERS = 20_000
const BATCH = 1_000
const STEPS = 10
const LOGGED_STEPS = 10
const STEP_E7 = 900
const ORGANIZATION = idFrom('bench', 'organization')
const GROUP = idFrom('bench', 'group')

export const run = async (): Promise<{ name: string; rows: Row[] }[]> => {
  const town = makeTown()
  const fleet = makeFleet(town)
  const bytes = bytesPerTracker(makeFleet(town))
  const decided = decideInMemory(town, fleet)
  const logged = await decideFromLog(town, fleet)
  return [
    {
      name: `deciding, ${TRACKERS} trackers, ${FENCES} fences, steps of 10 m, batches of ${BATCH}`,
      rows: [...decided, { name: 'all that is held for a tracker, its id included', value: bytes, unit: 'bytes' }],
    },
    { name: 'the same from the log (LMDB), with decoding, appends and stored state', rows: logged },
  ]
}

interface Fleet {
  ids: string[]
  lng: Int32Array
  lat: Int32Array
  heading: Float64Array
  random: () => number
  at: number
}

const makeTown = () => {
  const random = seeded(1)
  const side = Math.sqrt((FENCES * Math.PI * (0.8 * RADIUS_DEGREES) ** 2) / COVER)
  return {
    side,
    shapes: Array.from({ length: FENCES }, () =>
      keptShape(blob(random, 9 + random() * side, 50 + random() * side, RADIUS_DEGREES, VERTICES)),
    ),
  }
}

const makeFleet = ({ side }: { side: number }): Fleet => {
  const random = seeded(2)
  const place = (from: number): Int32Array =>
    Int32Array.from({ length: TRACKERS }, () => Math.round((from + random() * side) * 1e7))
  return {
    ids: Array.from({ length: TRACKERS }, (_, i) => idFrom('bench tracker', i)),
    lng: place(9),
    lat: place(50),
    heading: Float64Array.from({ length: TRACKERS }, () => random() * 2 * Math.PI),
    random,
    at: Date.UTC(2026, 0, 1),
  }
}

/** The next point of every tracker, as batches. */
const stepOf = (fleet: Fleet): PointBatch[] => {
  fleet.at += 1_000
  const batches: PointBatch[] = []
  for (let from = 0; from < TRACKERS; from += BATCH) {
    for (let i = from; i < from + BATCH; i++) {
      fleet.heading[i] += (fleet.random() - 0.5) * 0.4
      fleet.lng[i] += Math.round((STEP_E7 * Math.sin(fleet.heading[i])) / 0.64)
      fleet.lat[i] += Math.round(STEP_E7 * Math.cos(fleet.heading[i]))
    }
    batches.push({
      loggedAt: fleet.at,
      count: BATCH,
      trackers: fleet.ids.slice(from, from + BATCH).map((trackerId) => ({ trackerId, organizationId: ORGANIZATION })),
      tracker: Uint16Array.from({ length: BATCH }, (_, i) => i),
      recordedAt: new Float64Array(BATCH).fill(fleet.at),
      lat: fleet.lat.slice(from, from + BATCH),
      lng: fleet.lng.slice(from, from + BATCH),
      flags: new Uint16Array(BATCH),
      accuracy: new Int32Array(BATCH),
      altitude: new Int32Array(BATCH),
      speed: new Int32Array(BATCH),
      heading: new Uint16Array(BATCH),
      battery: new Uint8Array(BATCH),
      attributes: new Map(),
    })
  }
  return batches
}

const decideInMemory = ({ shapes }: ReturnType<typeof makeTown>, fleet: Fleet): Row[] => {
  const numbers = new FenceNumbers()
  const add = shapes.map((shape, i) => ({ fence: numbers.of(idFrom('bench fence', i)), shape: makeShape(shape) }))
  const inForce: FenceInForce[] = shapes.map((_, i) => ({
    geofenceId: numbers.idOf(i),
    revision: 0,
    geofenceGroupId: GROUP,
    laneKey: EVERY_FIX,
    shapeVersion: 1,
  }))
  const chunks = Array.from({ length: Math.ceil(FENCES / 512) }, (_, i) => inForce.slice(i * 512, (i + 1) * 512))
  const lane = new Lane(EVERY_FIX, FenceIndex.empty().with({ add }))
  const fences = new Fences({
    organizationId: ORGANIZATION,
    through: 0,
    numbers,
    chunks,
    groups: new Map([[GROUP, { revision: 0, laneKey: EVERY_FIX }]]),
    lanes: [lane],
  })
  const settings = { tripStopMs: 300_000, tripGapMs: 1_800_000, inRollout: () => true }
  const state = new MatcherState()
  const place = state.organizationIndex(ORGANIZATION, fences)
  let decisions = 0
  const pass = (): number => {
    const steps = Array.from({ length: STEPS }, () => stepOf(fleet)).flat()
    const begun = process.cpuUsage()
    for (const batch of steps) {
      const made = new Decisions(0)
      decideBatch(state, batch, settings, () => place, made)
      decisions += made.list.length
    }
    return (TRACKERS * STEPS) / cpuMs(begun) / 1000
  }
  const cold = pass()
  const records = (state.trackers.byteLength + state.records.byteLength) / TRACKERS
  pass()
  const warm = [pass(), pass()].sort((a, b) => b - a)[0]
  if (decisions === 0) throw new Error('nobody came anywhere')
  return [
    { name: 'cold (leaves of the index made on the way)', value: cold, unit: 'M points/CPU s' },
    { name: 'warm', value: warm, unit: 'M points/CPU s' },
    { name: 'decisions for each point', value: decisions / (TRACKERS * STEPS * 4), unit: '' },
    { name: 'records of a tracker (with room to grow)', value: records, unit: 'bytes' },
  ]
}

/** Bytes that a tracker adds to a state, its id decoded from an event as it comes from the log. */
const bytesPerTracker = (fleet: Fleet): number => {
  const encoded = stepOf(fleet).map(encodePointBatch)
  const lane = new Lane(EVERY_FIX, FenceIndex.empty())
  const fences = new Fences({
    organizationId: ORGANIZATION,
    through: 0,
    numbers: new FenceNumbers(),
    chunks: [],
    groups: new Map(),
    lanes: [lane],
  })
  const state = new MatcherState()
  const place = state.organizationIndex(ORGANIZATION, fences)
  const before = heldBytes()
  for (const bytes of encoded)
    decideBatch(
      state,
      decodePointBatch(bytes),
      { tripStopMs: 300_000, tripGapMs: 1_800_000, inRollout: () => true },
      () => place,
      new Decisions(0),
    )
  const held = heldBytes() - before
  if (state.slots.size !== TRACKERS) throw new Error('some trackers are missing')
  return held / TRACKERS
}

const decideFromLog = async ({ shapes }: ReturnType<typeof makeTown>, fleet: Fleet): Promise<Row[]> => {
  const folder = mkdtempSync(join(tmpdir(), 'waymark-match-'))
  const log = await openLmdbEventLog({ path: join(folder, 'log'), clock: systemClock })
  const tables = await openLmdbTableStore({ path: join(folder, 'tables'), clock: systemClock })
  try {
    const ids = shapes.map((_, i) => idFrom('bench fence', i))
    const created = await Promise.all(
      shapes.map((shape, i) => {
        const data = encodeJson({
          organizationId: ORGANIZATION,
          name: 'fence',
          geofenceGroupId: GROUP,
          isActive: true,
          shape,
          at: 0,
        })
        return log.append(
          geofenceStream(ids[i]),
          [{ id: idFrom('created', i), type: GEOFENCE_CREATED, data, isJson: true, metadata: {} }],
          'none',
        )
      }),
    )
    const change = {
      organizationId: ORGANIZATION,
      at: 0,
      sourcePosition: Math.max(...created.map(({ position }) => position)),
      geofences: ids.map((geofenceId) => ({ geofenceId, revision: 0 })),
      groups: [],
    }
    await log.append(
      locationStream(0),
      [{ id: idFrom('change'), type: FENCES_CHANGED, data: encodeJson(change), isJson: true, metadata: {} }],
      'any',
    )
    const batches = Array.from({ length: LOGGED_STEPS }, () => stepOf(fleet)).flat()
    await Promise.all(
      batches.map((batch, i) =>
        log.append(
          locationStream(0),
          [
            {
              id: idFrom('points', i),
              type: POINTS_RECORDED,
              data: encodePointBatch(batch),
              isJson: false,
              metadata: {},
            },
          ],
          'any',
        ),
      ),
    )

    let decided = 0
    const matcher = new GeofenceMatcher(
      { log, tables, clock: systemClock },
      { onDecided: (_partition, _revision, _position, { decisions }) => (decided += decisions.length) },
    )
    let next = (await matcher.load(0)) + 1
    const [edit] = await log.read(locationStream(0), next++, 1)
    const begunLoading = performance.now()
    await matcher.handle(locationEntry(edit, 0), 0)
    const loadingMs = performance.now() - begunLoading
    const begun = performance.now()
    const begunCpu = process.cpuUsage()
    for (
      let events = await log.read(locationStream(0), next, 64);
      events.length > 0;
      events = await log.read(locationStream(0), next, 64)
    ) {
      for (const event of events) await matcher.handle(locationEntry(event, 0), 0)
      next += events.length
    }
    const decidingMs = performance.now() - begun
    const usedMs = cpuMs(begunCpu)
    await matcher.save(0)
    const totalMs = performance.now() - begun
    await matcher.close()
    return [
      { name: `putting ${FENCES} fences in force`, value: loadingMs, unit: 'ms' },
      { name: 'reading, decoding, deciding', value: (TRACKERS * LOGGED_STEPS) / decidingMs / 1000, unit: 'M points/s' },
      { name: 'the same', value: (TRACKERS * LOGGED_STEPS) / usedMs / 1000, unit: 'M points/CPU s' },
      {
        name: 'until every decision and all state is stored',
        value: (TRACKERS * LOGGED_STEPS) / totalMs / 1000,
        unit: 'M points/s',
      },
      { name: 'decisions appended', value: decided / totalMs, unit: 'k/s' },
    ]
  } finally {
    await log.close()
    await tables.close()
    rmSync(folder, { recursive: true })
  }
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  for (const { name, rows } of await run()) {
    console.log(name)
    for (const row of rows) console.log(`  ${row.name.padEnd(64)} ${row.value.toFixed(3).padStart(9)} ${row.unit}`)
  }
}
