import { closeSync, mkdtempSync, openSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openLmdbEventLog } from '../src/engines/lmdb-log/lmdb-log.ts'
import { openRedisTables } from '../src/engines/redis-tables/redis-tables.ts'
import type { TableStore } from '../src/engines/table-store.ts'
import { GEOFENCE_CREATED, geofenceStream } from '../src/features/geofences/events.ts'
import type { LocationEntry } from '../src/features/locations/events.ts'
import { LATEST_POSITIONS } from '../src/features/locations/views.ts'
import { keptShape } from '../src/geo/shape.ts'
import { breathe } from '../src/kernel/breath.ts'
import { encodeJson } from '../src/kernel/event.ts'
import { systemClock } from '../src/kernel/system-clock.ts'
import { idFrom } from '../src/kit/commands/ids.ts'
import { GeofenceMatcher } from '../src/reactors/matcher/match-geofences.ts'
import { batchOf } from '../test/support/batches.ts'
import { seeded } from '../test/support/random.ts'
import { openRedisServer } from '../test/support/redis-server.ts'
import { option } from './load/fresh-service.ts'
import { blob } from './support/geo-data.ts'
import { cpuMs } from './support/measure.ts'

/*
 * Taking over the matcher's state of half a fleet, from Redis and a log in process, while positions of another consumer
 * are read and stored again and again. The process that takes over has the other half, or (`fresh`) nothing yet. Usage:
 * node dist/bench/matcher-takeover.bench.js [--trackers 50000] [--fences 10000] [--rounds 3]
 */
const TRACKERS = option('trackers', 50_000)
const FENCES = option('fences', 10_000)
const ROUNDS = option('rounds', 3)
const PARTITIONS = 8
const BATCH = 1_000
const VERTICES = 50
const RADIUS_DEGREES = 0.005
const COVER = 1.15
const ORGANIZATION = idFrom('bench', 'organization')
const START = Date.UTC(2026, 0, 1)
/** Time between a stored position and the next one that comes. */
const POSITION_MS = 5

const folder = mkdtempSync(join(tmpdir(), 'waymark-matcher-takeover-'))
const server = await openRedisServer(folder, [])
const log = await openLmdbEventLog({ path: join(folder, 'log'), clock: systemClock })
const tables = await openRedisTables({ url: server.url })
const services = { log, tables, clock: systemClock }
const side = Math.sqrt((FENCES * Math.PI * (0.8 * RADIUS_DEGREES) ** 2) / COVER)
const parts = Array.from({ length: PARTITIONS }, (_, partition) => partition)

const fencesChanged = async (): Promise<Extract<LocationEntry, { kind: 'fencesChanged' }>['change']> => {
  const random = seeded(1)
  const geofences = Array.from({ length: FENCES }, (_, i) => ({ geofenceId: idFrom('bench fence', i), revision: 0 }))
  const appended = await Promise.all(
    geofences.map(({ geofenceId }, i) => {
      const shape = keptShape(blob(random, 9 + random() * side, 50 + random() * side, RADIUS_DEGREES, VERTICES))
      const values = { organizationId: ORGANIZATION, name: 'fence', geofenceGroupId: 'group', isActive: true, shape }
      const data = encodeJson({ ...values, at: 0 })
      const event = { id: idFrom('created', i), type: GEOFENCE_CREATED, data, isJson: true, metadata: {} }
      return log.append(geofenceStream(geofenceId), [event], 'none')
    }),
  )
  const sourcePosition = Math.max(...appended.map(({ position }) => position))
  return { organizationId: ORGANIZATION, at: 0, sourcePosition, geofences, groups: [] }
}

const entryOf = (revision: number, partition: number, rest: object): LocationEntry =>
  ({ partition, revision, position: revision, loggedAt: START, ...rest }) as unknown as LocationEntry

/** A matcher with the fences in these partitions. */
const withFences = async (change: object, partitions: readonly number[]): Promise<GeofenceMatcher> => {
  const matcher = new GeofenceMatcher(services)
  for (const partition of partitions) {
    await matcher.load(partition)
    await matcher.handle(entryOf(0, partition, { kind: 'fencesChanged', change }), partition)
  }
  return matcher
}

const fill = async (matcher: GeofenceMatcher): Promise<void> => {
  const random = seeded(2)
  for (const partition of parts) {
    let revision = 1
    for (let from = 0; from < TRACKERS / PARTITIONS; from += BATCH) {
      const points = Array.from({ length: Math.min(BATCH, TRACKERS / PARTITIONS - from) }, (_, i) => ({
        trackerId: idFrom('bench tracker', `${partition} ${from + i}`),
        organizationId: ORGANIZATION,
        recordedAt: START,
        lat: 50 + random() * side,
        lng: 9 + random() * side,
      }))
      await matcher.handle(entryOf(revision++, partition, { kind: 'points', batch: batchOf(points, START) }), partition)
    }
  }
}

/** Stores positions until it is ended; answers the processor time that passed for each, and in the longest turn. */
const storePositions = (store: TableStore) => {
  let isOver = false
  const tookMs: number[] = []
  let turnMs = 0
  const file = openSync(`/proc/self/task/${process.pid}/schedstat`, 'r')
  const text = Buffer.alloc(64)
  const spentMs = (): number =>
    Number(text.toString('latin1', 0, readSync(file, text, 0, 64, 0)).split(' ', 1)[0]) / 1e6
  const run = async (): Promise<void> => {
    for (let i = 0; !isOver; i++) {
      const begunMs = spentMs()
      await breathe()
      await store.getMany(LATEST_POSITIONS.name, ORGANIZATION, [`probe-${i % 64}`])
      await breathe()
      await store.commit([{ table: LATEST_POSITIONS.name, scope: ORGANIZATION, id: `probe-${i % 64}`, row: { i } }])
      tookMs.push(spentMs() - begunMs)
      await new Promise((resume) => setTimeout(resume, POSITION_MS))
    }
  }
  let lastMs = spentMs()
  const timer = setInterval(() => {
    const nowMs = spentMs()
    turnMs = Math.max(turnMs, nowMs - lastMs)
    lastMs = nowMs
  }, 1)
  const running = run()
  return {
    end: async () => {
      isOver = true
      await running
      clearInterval(timer)
      closeSync(file)
      tookMs.sort((a, b) => a - b)
      return { tookMs, turnMs }
    },
  }
}

const takeOver = async (name: string, matcher: GeofenceMatcher): Promise<void> => {
  const positions = storePositions(tables)
  await new Promise((resume) => setTimeout(resume, 50))
  const begun = process.cpuUsage()
  const loadedMs = await Promise.all(
    parts.map(async (partition) => {
      await matcher.load(partition)
      return cpuMs(begun)
    }),
  )
  const usedMs = cpuMs(begun)
  const { tookMs, turnMs } = await positions.end()
  const found = matcher.counts().trackers
  if (found !== TRACKERS) throw new Error(`${found} trackers instead of ${TRACKERS}`)
  const shown = {
    all: usedMs,
    'first part': Math.min(...loadedMs),
    'a position, median': tookMs[tookMs.length >> 1],
    'a position, longest': tookMs[tookMs.length - 1],
    'longest turn': turnMs,
  }
  const text = Object.entries(shown).map(([what, value]) => `${what} ${value.toFixed(0)}`)
  process.stdout.write(`${name}, CPU ms: ${text.join(', ')}\n`)
}

try {
  await tables.declare(LATEST_POSITIONS)
  const change = await fencesChanged()
  const first = await withFences(change, parts)
  await fill(first)
  await first.close()
  const others = parts.map((partition) => partition + PARTITIONS)
  for (let round = 0; round < ROUNDS; round++) {
    const survivor = await withFences(change, round === 0 ? others : others.slice(0, 1))
    await takeOver('beside the other half', survivor)
    for (const partition of parts) await survivor.drop(partition)
    await survivor.close()
    const fresh = new GeofenceMatcher(services)
    await takeOver('fresh', fresh)
    for (const partition of parts) await fresh.drop(partition)
  }
} finally {
  await tables.close()
  await log.close()
  await server.kill()
  rmSync(folder, { recursive: true, force: true })
}
