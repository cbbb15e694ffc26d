import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from 'redis'
import { openRedisServer } from '../../test/support/redis-server.ts'
import { ask, type Service, signUp, startService, until } from '../../test/support/service.ts'
import { driveHttp } from './drive-http.ts'
import { option, round } from './fresh-service.ts'

/**
 * Lists of one organization's trackers by hub, sorted by name, with their total, of the whole service on Redis and on
 * LMDB in the same run; and Redis' memory for each table. Usage: node dist/bench/load/run-tables.js [--trackers 100000]
 * [--hubs 50] [--seconds 5] [--per-second 50]
 */
const TRACKERS = option('trackers', 100_000)
const HUBS = option('hubs', 50)
const MEASURE_MS = option('seconds', 5) * 1000
const PER_SECOND = option('per-second', 50)
const CONNECTIONS = 16
const WARMUP_MS = 2_000
const BATCH = 2_500

/** Makes the trackers, each with a first point, by a gateway of each hub. Answers the hubs and its time, s. */
const makeTrackers = async (service: Service, token: string): Promise<{ hubIds: string[]; seconds: number }> => {
  const hubIds: string[] = []
  const begun = performance.now()
  for (let hub = 0; hub < HUBS; hub++) {
    const { data } = await ask(service, 'POST', '/hub', { token, body: { name: `Hub ${hub}`, lat: 52, lng: 21 } })
    hubIds.push(data._id)
    const body = { name: `Gateway ${hub}`, autoCreate: true, hubId: data._id }
    const { key } = (await ask(service, 'POST', '/ingest-key', { token, body })).data
    const own = Math.floor((TRACKERS * (hub + 1)) / HUBS) - Math.floor((TRACKERS * hub) / HUBS)
    for (let first = 0; first < own; first += BATCH) {
      const points = Array.from({ length: Math.min(BATCH, own - first) }, (_, i) => ({
        externalId: `bus-${((first + i) * 7919) % own}-of-hub-${hub}`,
        recordedAt: Date.now() - 60_000,
        lat: 52,
        lng: 21,
      }))
      await ask(service, 'POST', '/location-history/bulk', { token: key, body: { points } })
    }
  }
  const last = `/trackers?hubId=${hubIds.at(-1)}&limit=1`
  await until('the last tracker', async () => (await ask(service, 'GET', last, { token })).data.length === 1)
  return { hubIds, seconds: (performance.now() - begun) / 1000 }
}

const measure = async (tables: string): Promise<{ [name: string]: number }> => {
  const folder = mkdtempSync(join(tmpdir(), 'waymark-tables-'))
  const service = await startService(join(folder, 'data'), ['--tables', tables, '--trackers-max', String(2 * TRACKERS)])
  try {
    const { token } = await signUp(service, 'Bench')
    const { hubIds, seconds } = await makeTrackers(service, token)
    const plan = { port: service.port, token, method: 'GET' as const, connections: CONNECTIONS, warmupMs: WARMUP_MS }
    const rows: { [name: string]: number } = { 'made, trackers/s': Math.round(TRACKERS / seconds) }
    const lists = {
      'of a hub by name': hubIds.map((id) => `/api/v3/trackers?hubId=${id}&sortBy=name`),
      'of a hub and a kind': hubIds.map((id) => `/api/v3/trackers?hubId=${id}&kind=device&sortBy=name`),
      'all by name': ['/api/v3/trackers?sortBy=name'],
    }
    for (const [name, paths] of Object.entries(lists)) {
      const paced = await driveHttp({ ...plan, paths, measureMs: MEASURE_MS, perSecond: PER_SECOND })
      const most = await driveHttp({ ...plan, paths, measureMs: MEASURE_MS })
      rows[`${name}: p50 at ${PER_SECOND}/s, ms`] = round(paced.p50)
      rows[`${name}: p99, ms`] = round(paced.p99)
      rows[`${name}: most a second`] = Math.round(most.perSecond)
      if (paced.refused + most.refused > 0) rows[`${name}: refused`] = paced.refused + most.refused
    }
    return rows
  } finally {
    await service.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Bytes of each table, from Redis' figures for its keys. */
const memoryOf = async (url: string): Promise<{ [table: string]: number }> => {
  const client = createClient({ url })
  await client.connect()
  const nameOf = new Map<string, string>()
  for (const [name, record] of Object.entries(await client.hGetAll('wm:{tables}')))
    if (!name.startsWith('#')) nameOf.set(JSON.parse(record).generation, name)
  const bytes: { [table: string]: number } = {}
  for await (const keys of client.scanIterator({ COUNT: 1_000 }))
    for (const key of keys) {
      const generation = [...nameOf.keys()].find((one) => key.includes(`:${one}:`))
      const table = generation === undefined ? 'everything else' : nameOf.get(generation)!
      bytes[table] = (bytes[table] ?? 0) + Number(await client.sendCommand(['MEMORY', 'USAGE', key, 'SAMPLES', '100']))
    }
  bytes['used_memory'] = Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1])
  client.destroy()
  return bytes
}

const folder = mkdtempSync(join(tmpdir(), 'waymark-redis-'))
const redis = await openRedisServer(folder)
try {
  const onRedis = await measure(redis.url)
  const bytes = await memoryOf(redis.url)
  const onLmdb = await measure('lmdb:')
  console.table(
    Object.fromEntries(
      Object.keys(onRedis).map((name) => [
        name,
        { Redis: onRedis[name], LMDB: onLmdb[name], ratio: round((100 * onRedis[name]) / onLmdb[name]) / 100 },
      ]),
    ),
  )
  const largest = Object.entries(bytes).sort(([, a], [, b]) => b - a)
  console.table(
    Object.fromEntries(
      largest
        .filter(([, held]) => held > TRACKERS)
        .map(([name, held]) => [name, { MB: round(held / 1e6), 'bytes a tracker': Math.round(held / TRACKERS) }]),
    ),
  )
} finally {
  await redis.kill()
  rmSync(folder, { recursive: true, force: true })
}
