import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from 'redis'
import { openClickhouseHistory } from '../src/engines/clickhouse-history/clickhouse-history.ts'
import { FLEET, generate, onFreshService, option } from './load/fresh-service.ts'
import { drain, plans } from './load/measure-load.ts'
import { flagsOf, openServers } from './support/stand-ins.ts'

/**
 * Measures the size of a tracker and a point in each engine and in the service, and computes the needs of fleets: `node
 * dist/bench/sizing.js [--rate 20000] [--seconds 20] [--every 10]`, the last being the seconds between two points of a
 * tracker. Log and history are the stand-ins of the tests, so their CPU is a bound, not a promise.
 */
const rate = option('rate', 20_000)
const measureMs = option('seconds', 20) * 1_000
const everySeconds = option('every', 10)

const FLEETS = [10_000, 1_000_000, 100_000_000]
/** Measured on a real leader: batches of 16 kB, docs/sizing.md. */
const LEADER_POINTS_PER_SECOND = 4_000_000
const LOG_DAYS = 7
const HISTORY_DAYS = 365

/** CPU that a process has used, in seconds. */
const cpuOf = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ')
  return (Number(fields[11]) + Number(fields[12])) / Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))
}

const bytesBelow = (path: string): number => {
  const { size } = statSync(path)
  if (!statSync(path).isDirectory()) return size
  return readdirSync(path).reduce((sum, name) => sum + bytesBelow(join(path, name)), 0)
}

const usedMemory = async (url: string): Promise<number> => {
  const client = createClient({ url })
  await client.connect()
  const [, bytes] = /used_memory:(\d+)/.exec(await client.info('memory'))!
  client.destroy()
  return Number(bytes)
}

/** Number of points in the history. */
const countOf = async (url: string): Promise<number> => {
  const history = await openClickhouseHistory({ url })
  const [{ points }] = await history.rows<{ points: number }>('SELECT count() AS points FROM points')
  await history.close()
  return points
}

/** Bytes of a point on disk when its parts are merged. */
const pointBytes = async (url: string): Promise<number> => {
  const history = await openClickhouseHistory({ url })
  await history.command('OPTIMIZE TABLE points FINAL')
  const [{ rows, bytes }] = await history.rows<{ rows: number; bytes: number }>(
    "SELECT sum(rows) AS rows, sum(bytes_on_disk) AS bytes FROM system.parts WHERE active AND table = 'points' AND database = currentDatabase()",
  )
  await history.close()
  return bytes / rows
}

interface Measured {
  redisBytesEachTracker: number
  logBytesEachPoint: number
  historyBytesEachPoint: number
  /** µs of CPU for each point. */
  cpu: { service: number; log: number; redis: number; clickhouse: number }
}

const measure = async (): Promise<Measured> => {
  const folder = mkdtempSync(join(tmpdir(), 'waymark-sizing-'))
  const servers = await openServers(folder, {})
  const { log, tables, history } = servers.pids as { [name: string]: number }
  const empty = await usedMemory(servers.urls.tables)
  let measured: Measured | undefined
  try {
    await onFreshService(
      {},
      1_000,
      async ({ service, key }) => {
        await drain(service)
        const pids = { service: service.process.pid as number, log, redis: tables, clickhouse: history }
        const pointsBefore = await countOf(servers.urls.history)
        const before = Object.values(pids).map(cpuOf)
        const logBefore = bytesBelow(join(folder, 'log'))
        const plan = { ...plans(measureMs, service.port, [key], [], 1_000).frames100, pointsPerSecond: rate }
        await generate(plan)
        await drain(service)
        const points = (await countOf(servers.urls.history)) - pointsBefore
        const [forService, forLog, forRedis, forClickhouse] = Object.values(pids).map(
          (pid, i) => ((cpuOf(pid) - before[i]) / points) * 1e6,
        )
        measured = {
          redisBytesEachTracker: ((await usedMemory(servers.urls.tables)) - empty) / FLEET.trackers,
          logBytesEachPoint: (bytesBelow(join(folder, 'log')) - logBefore) / points,
          historyBytesEachPoint: await pointBytes(servers.urls.history),
          cpu: { service: forService, log: forLog, redis: forRedis, clickhouse: forClickhouse },
        }
      },
      flagsOf(servers.urls),
    )
  } finally {
    await servers.close()
    rmSync(folder, { recursive: true, force: true })
  }
  return measured as Measured
}

const shownBytes = (bytes: number): string => {
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB']
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(bytes) / 3)))
  return `${Number((bytes / 1000 ** power).toPrecision(2))} ${units[power]}`
}

const found = await measure()
console.log(
  'measured',
  JSON.stringify(found, (_, value) => (typeof value === 'number' ? Number(value.toPrecision(3)) : value)),
)
console.log(
  `| trackers, a point every ${everySeconds} s | points/s | service, cores | Redis | log, ${LOG_DAYS} days | logs | history, ${HISTORY_DAYS} days |`,
)
console.log('| - | - | - | - | - | - | - |')
for (const trackers of FLEETS) {
  const points = trackers / everySeconds
  const cells = [
    trackers.toLocaleString('en'),
    points.toLocaleString('en'),
    Math.max(1, (points * found.cpu.service) / 1e6).toFixed(0),
    shownBytes(trackers * found.redisBytesEachTracker),
    shownBytes(points * found.logBytesEachPoint * 86_400 * LOG_DAYS),
    Math.ceil(points / LEADER_POINTS_PER_SECOND),
    shownBytes(points * found.historyBytesEachPoint * 86_400 * HISTORY_DAYS),
  ]
  console.log(`| ${cells.join(' | ')} |`)
}
