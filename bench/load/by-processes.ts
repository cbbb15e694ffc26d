import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Service, startService } from '../../test/support/service.ts'
import { flagsOf, openServers } from '../support/stand-ins.ts'
import { FLEET, generate, option, prepare, type Prepared } from './fresh-service.ts'
import { drain } from './measure-load.ts'
import { allCpuSecondsOf } from './process-figures.ts'

/**
 * The same work by one, two and three whole processes on the same kind of servers: three organizations, each with its
 * fences, its fleet and its dashboards at one process. Prints the points that a second of the processes' processor time
 * handled to the end, and what dashboards got, against those of one process in the same run. Usage: node
 * dist/bench/load/by-processes.js [--seconds 15] [--pps 0] [--trackers 6000] [--fences 3000] [--viewers 30] [--rounds 2]
 */
const seconds = option('seconds', 15)
/** 0: as fast as they are acknowledged. */
const pointsPerSecond = option('pps', 0)
const trackers = option('trackers', 6_000)
const fences = option('fences', 3_000)
const viewers = option('viewers', 30)
const rounds = option('rounds', 2)

const ORGANIZATIONS = 3
const PROCESSES = [1, 2, 3]
const WARMUP_MS = 5_000
const VIEWPORT_SHARE = 0.1
const INTERVAL_MS = 100

interface Figures {
  pointsPerCpuSecond: number
  positionsPerSecond: number
  positionsPerCpuSecond: number
  liveP99Ms: number
}

const cpuOf = (services: readonly Service[]): number =>
  services.reduce((sum, { process: { pid } }) => sum + allCpuSecondsOf(pid as number), 0)

/** Waits until no process has anything left to handle. */
const drained = async (services: readonly Service[]): Promise<void> => {
  for (const service of services) await drain(service)
}

const measure = async (count: number, folder: string): Promise<Figures> => {
  const servers = await openServers(folder, {})
  const flags = [...flagsOf(servers.urls), '--keys', join(folder, 'keys.json')]
  const services: Service[] = []
  try {
    for (let i = 0; i < count; i++) services.push(await startService(join(folder, `node-${i}`), flags))
    const prepared: Prepared[] = []
    for (let i = 0; i < ORGANIZATIONS; i++)
      prepared.push(await prepare(services[i % count], {}, fences / ORGANIZATIONS, fleetOfOne))
    await drained(services)
    return await drive(services, prepared)
  } finally {
    await Promise.all(services.map((service) => service.kill()))
    await servers.close()
  }
}

const fleetOfOne = { ...FLEET, trackers: trackers / ORGANIZATIONS }

/** Processor time is that of all points, from the first on until the last is handled everywhere. */
const drive = async (services: readonly Service[], prepared: readonly Prepared[]): Promise<Figures> => {
  const cpuBefore = cpuOf(services)
  const results = await Promise.all(
    prepared.map(({ service: { port }, token, key }) =>
      generate({
        ...{ port, bearers: [key], connections: 4, window: 64, framePoints: 100, fleet: fleetOfOne, named: true },
        ...{
          warmupMs: WARMUP_MS,
          measureMs: seconds * 1_000,
          ...(pointsPerSecond > 0 && { pointsPerSecond: pointsPerSecond / ORGANIZATIONS }),
        },
        viewers: { count: viewers / ORGANIZATIONS, intervalMs: INTERVAL_MS, token, viewportShare: VIEWPORT_SHARE },
      }),
    ),
  )
  await drained(services)
  const spent = cpuOf(services) - cpuBefore
  const points = results.reduce((sum, result) => sum + result.points, 0)
  const positionsPerSecond = results.reduce((sum, { live }) => sum + (live?.positionsPerSecond ?? 0), 0)
  const liveSeconds = seconds + WARMUP_MS / 1_000
  return {
    pointsPerCpuSecond: points / spent,
    positionsPerSecond,
    positionsPerCpuSecond: (positionsPerSecond * liveSeconds) / spent,
    liveP99Ms: Math.max(...results.map(({ liveMs }) => liveMs?.p99 ?? Number.NaN)),
  }
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]

process.stdout.write(`${cpus().length} × ${cpus()[0].model}, Node ${process.version}\n`)
const all = new Map<number, Figures[]>()
for (let round = 0; round < rounds; round++)
  for (const count of PROCESSES) {
    const folder = mkdtempSync(join(tmpdir(), 'waymark-by-processes-'))
    try {
      const figures = await measure(count, folder)
      process.stdout.write(`${count}: ${JSON.stringify(figures)}\n`)
      all.set(count, [...(all.get(count) ?? []), figures])
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
for (const name of ['pointsPerCpuSecond', 'positionsPerSecond', 'positionsPerCpuSecond', 'liveP99Ms'] as const) {
  const of = (count: number): number => median((all.get(count) ?? []).map((figures) => figures[name]))
  const against = PROCESSES.slice(1).map((count) => (of(count) / of(1)).toFixed(2))
  process.stdout.write(
    `${name}: ${of(1).toFixed(1)} by one process; by two and three against it ${against.join(', ')}\n`,
  )
}
