import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { call, type Service } from '../../test/support/service.ts'
import { hasRedis, openRedisServer } from '../../test/support/redis-server.ts'
import { FLEET, loadFences, onFreshService, option, round, textOption } from '../load/fresh-service.ts'
import { bothLoads, report, SHORT_WARMUP_MS } from '../load/measure-load.ts'
import { drive, type Peer } from './peer.ts'
import { postgisPeer } from './postgis-peer.ts'
import { openPostgres, postgresPrograms } from './postgres-server.ts'
import { redisPeer } from './redis-peer.ts'
import { tile38Peer } from './tile38-peer.ts'

/**
 * The same fences and points for Waymark and for others, in one run on one machine: points acknowledged a second, and what
 * an acknowledgement promises. Usage: node dist/bench/peers/run-peers.js [--seconds 10] [--fences 10000] [--warmup 30]
 * [--tile38 host:port] [--postgres postgres://…, an empty database] [--redis redis://…] [--only PostGIS]. Without addresses, Debian's
 * PostgreSQL with PostGIS and Redis are started where they are installed.
 */
const measureMs = option('seconds', 10) * 1000
const fences = option('fences', 10_000)
const warmupMs = option('warmup', 30) * 1000

const LOADS = [
  { name: 'frames of 100', connections: 20, framePoints: 100, fleet: FLEET, warmupMs },
  {
    name: 'frames of 1',
    connections: 200,
    framePoints: 1,
    fleet: { ...FLEET, trackers: 200 },
    warmupMs: SHORT_WARMUP_MS,
  },
] as const
const WINDOW = 64

const measurePeer = async (peer: Peer): Promise<object> => {
  const begun = performance.now()
  await peer.load(loadFences(fences).features)
  const rows: { [name: string]: unknown } = {
    promise: peer.promise,
    'fences in force, s': round((performance.now() - begun) / 1000),
  }
  for (const { name, ...load } of LOADS) {
    const { acknowledgedPointsPerSecond, ackMs, ...result } = await drive(peer, { ...load, window: WINDOW, measureMs })
    rows[name] = {
      acknowledgedPointsPerSecond: Math.round(acknowledgedPointsPerSecond),
      ackMsP50: round(ackMs.p50),
      ackMsP99: round(ackMs.p99),
      ...Object.fromEntries(Object.entries(result).map(([figure, value]) => [figure, round(value)])),
    }
  }
  await peer.close()
  return rows
}

const transitionsOf = async (service: Service): Promise<number> => {
  const { text } = await call(service, 'GET', '//metrics')
  const counts = text.matchAll(/^waymark_transitions_total\{.*\} (\d+)$/gm)
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0)
}

const measureWaymark = async (): Promise<object> => {
  const rows: { [name: string]: unknown } = {
    promise: 'on the disk, with all that follows from it made up for after a crash',
  }
  await onFreshService(rows, fences, async (prepared) => {
    const { service } = prepared
    for (const [name, plan] of await bothLoads(prepared, measureMs, warmupMs)) {
      const before = await transitionsOf(service)
      const { points } = await report(rows, name, service, plan)
      const transitions = (await transitionsOf(service)) - before
      Object.assign(rows[name] as object, { transitionsPerThousandPoints: round((transitions / points) * 1000) })
    }
  })
  return rows
}

const inFolder = async (run: (folder: string) => Promise<object>): Promise<object> => {
  const folder = mkdtempSync(join(tmpdir(), 'waymark-peer-'))
  try {
    return await run(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const onServer = async (
  server: { url: string; kill(): Promise<void> },
  peer: (url: string) => Peer,
): Promise<object> => {
  try {
    return await measurePeer(peer(server.url))
  } finally {
    await server.kill()
  }
}

const measurePostgis = async (): Promise<object> => {
  const given = textOption('postgres')
  if (given !== undefined) return measurePeer(postgisPeer(given))
  const programs = postgresPrograms()
  if (programs === undefined) return { skipped: 'apt-get install postgresql postgresql-15-postgis-3, or --postgres' }
  return inFolder(async (folder) => onServer(await openPostgres(programs, folder), postgisPeer))
}

const measureRedis = async (): Promise<object> => {
  const given = textOption('redis')
  if (given !== undefined) return measurePeer(redisPeer(given))
  if (!hasRedis) return { skipped: 'apt-get install redis-server, or --redis' }
  const durable = ['--appendonly', 'yes', '--appendfsync', 'always']
  return inFolder(async (folder) => onServer(await openRedisServer(folder, durable), redisPeer))
}

const measureTile38 = async (): Promise<object> => {
  const given = textOption('tile38')
  return given === undefined ? { skipped: '--tile38 host:port names one' } : measurePeer(await tile38Peer(given))
}

const show = (name: string, rows: object): void => {
  process.stdout.write(`${JSON.stringify({ [name]: rows }, undefined, 2)}\n`)
}

show('run', { machine: `${cpus().length} × ${cpus()[0].model}, Node ${process.version}`, fences })
const only = textOption('only')
for (const [name, measure] of [
  ['Waymark', measureWaymark],
  ['PostGIS', measurePostgis],
  ['Redis', measureRedis],
  ['Tile38', measureTile38],
] as const)
  if (only === undefined || only === name) show(name, await measure())
