import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { ask, call, type Service, signUp, startService, until } from '../../test/support/service.ts'
import { OwnWays } from '../support/own-ways.ts'
import { type EngineUrls, flagsOf, openServers } from '../support/stand-ins.ts'
import { FLEET, option } from './fresh-service.ts'
import { fenceCollection } from './frames.ts'
import { type Pace, pointOf, sendPaced } from './lasting-senders.ts'
import { allCpuSecondsOf } from './process-figures.ts'

/**
 * Two whole processes on the same servers: one of them is killed, frozen, cut off from the servers without being told
 * (half-open), or asked to end, and then started beside the other. Prints the end of each phase of the other's takeover, in ms from the fault. Usage: node
 * dist/bench/load/takeover.js [--trackers 100000] [--fences 10000] [--partitions 16] [--pps 2000] [--rounds 1] [--only
 * SIGTERM]
 */
const trackers = option('trackers', 100_000)
const fences = option('fences', 10_000)
const partitions = option('partitions', 16)
const pointsPerSecond = option('pps', 2_000)
const rounds = option('rounds', 1)

const FAULTS = (['SIGKILL', 'SIGSTOP', 'half-open', 'SIGTERM'] as const).filter(
  (fault) => !process.argv.includes('--only') || process.argv.includes(fault),
)

/** Logged by the process that takes over. */
const NO_SIGN = 'gives no sign of life'

const PROBES = 64
const VERTICES = 50
const COVER = 1.15

type Phases = { [phase: string]: number }

/** Lines of the survivor's log, with the time of each. */
const lineSince = (
  service: Service,
  atMs: number,
  msg: string,
): { time: string; [name: string]: unknown } | undefined =>
  service.lines
    .filter((line) => line.includes(msg))
    .map((line) => JSON.parse(line) as { time: string })
    .findLast(({ time }) => Date.parse(time) >= atMs)

const organization = async (service: Service, name: string): Promise<Organization> => {
  const { token } = await signUp(service, name)
  const body = { name: 'load', autoCreate: true }
  return { token, key: (await ask(service, 'POST', '/ingest-key', { token, body })).data.key }
}

const prepare = async (service: Service): Promise<Access> => {
  const [fleet, probes] = [await organization(service, 'Takeover'), await organization(service, 'Probes')]
  const { token } = fleet
  const group = await ask(service, 'POST', '/geofence-group', { token, body: { name: 'load' } })
  if (fences > 0)
    await ask(service, 'POST', `/geofences/import?geofenceGroupId=${group.data._id}&nameProperty=name`, {
      token,
      body: fenceCollection(FLEET, fences, VERTICES, COVER),
    })
  for (let first = 0; first < trackers; first += 5_000)
    await post(
      service,
      fleet.key,
      Array.from({ length: Math.min(5_000, trackers - first) }, (_, i) => pointOf(first + i, Date.now())),
    )
  await post(service, probes.key, probePoints())
  return { fleet, probes }
}

/** Unknown trackers take servers on a busy machine longer than the service waits. */
const post = async (service: Service, key: string, points: readonly object[]): Promise<void> => {
  for (let tries = 0; ; tries++) {
    const { status, text } = await call(service, 'POST', '/location-history/bulk', { token: key, body: { points } })
    if (status < 300) return
    if (status !== 503 || tries > 60) throw new Error(`POST /location-history/bulk: ${status} ${text.slice(0, 300)}`)
    await rest(1_000)
  }
}

const LAGGING = /^waymark_consumer_lag_events\{consumer="([^"]*)"[^}]*\} (\d+)/gm

/** Consumers of the service's partitions that are further behind than the entries of a second. */
const behind = async (service: Service): Promise<string[]> => {
  const { text } = await call(service, 'GET', '//metrics')
  return [...text.matchAll(LAGGING)].filter(([, , events]) => Number(events) > 20).map(([, consumer]) => consumer)
}

/** Sends a point of each probe to the survivor; answers when it shows all of them at their new place. */
const shown = async (service: Service, { probes: { token, key } }: Access, sinceMs: number): Promise<number> => {
  const points = probePoints()
  const at = new Date(points[0].recordedAt).toISOString()
  await until(
    'probes to be taken',
    async () => (await call(service, 'POST', '/location-history/bulk', { token: key, body: { points } })).status < 300,
  )
  const isShown = async (): Promise<boolean> => {
    const { data } = await ask(service, 'GET', '/live-positions', { token })
    return (data as { recordedAt: string }[]).filter((one) => one.recordedAt === at).length === PROBES
  }
  await until('probes to be shown', isShown)
  return Date.now() - sinceMs
}

const probePoints = (): { recordedAt: number }[] => {
  const recordedAt = Date.now()
  return Array.from({ length: PROBES }, (_, i) => ({
    externalId: `probe-${i}`,
    recordedAt,
    lat: FLEET.south,
    lng: FLEET.west + i / PROBES,
  }))
}

interface Access {
  fleet: Organization
  /** An organization of few trackers, whose positions are all read again and again. */
  probes: Organization
}

interface Organization {
  token: string
  key: string
}

const measured = async (survivor: Service, access: Access, atMs: number): Promise<Phases> => {
  const cpuMs = cpuMsOf(survivor)
  const positions = await shown(survivor, access, atMs)
  await until('the consumers', async () => (await behind(survivor)).length === 0)
  const all = Date.now() - atMs
  const silent = lineSince(survivor, atMs, NO_SIGN)
  const taken = lineSince(survivor, atMs, 'parts taken')
  return {
    ...(silent !== undefined && { noticed: Date.parse(silent.time) - atMs }),
    ...(taken !== undefined && { 'parts taken': Date.parse(taken.time) - atMs, ...took(taken) }),
    'positions shown': positions,
    'nothing behind': all,
    'survivor’s processor': cpuMsOf(survivor) - cpuMs,
  }
}

/** Time of each consumer until it had all of its parts. */
const took = ({ msOf }: { [name: string]: unknown }): Phases =>
  Object.fromEntries(Object.entries(msOf as Phases).map(([consumer, ms]) => [`${consumer} taken in`, ms]))

const cpuMsOf = ({ process: { pid } }: Service): number => Math.round(1_000 * allCpuSecondsOf(pid as number))

const rest = (ms: number): Promise<void> => new Promise((resume) => setTimeout(resume, ms))

/** Waits until both have a share and neither is behind. Reports each that took the other, still running, for dead. */
const settled = async (services: readonly Service[]): Promise<void> => {
  await rest(3_000)
  const fromMs = Date.now()
  for (const service of services) await until('consumers', async () => (await behind(service)).length === 0, 600_000)
  await rest(3_000)
  for (const service of services)
    if (lineSince(service, fromMs, NO_SIGN) !== undefined) process.stdout.write('taken from a process that ran\n')
}

const start = (folder: string, name: string, urls: EngineUrls, limitMs?: number): Promise<Service> =>
  startService(
    join(folder, name),
    [
      ...flagsOf(urls),
      ...['--keys', join(folder, 'keys.json'), '--partitions', String(partitions)],
      ...['--geofence-positions-max', '100000000', '--trackers-max', '1000000'],
    ],
    0,
    'dist/src/main.js',
    limitMs,
  )

const run = async (folder: string): Promise<void> => {
  const servers = await openServers(folder, {})
  let ways = await OwnWays.open(servers.urls)
  const services: { a: Service; b: Service } = {
    a: await start(folder, 'a', servers.urls),
    b: await start(folder, 'b', ways.urls),
  }
  const { a } = services
  const all = new Map<string, Phases[]>()
  const report = (name: string, phases: Phases): void => {
    process.stdout.write(`${name}: ${JSON.stringify(phases)}\n`)
    all.set(name, [...(all.get(name) ?? []), phases])
  }
  try {
    const access = await prepare(a)
    await settled([a, services.b])
    process.stdout.write(`${trackers} trackers, ${fences} fences, ${partitions} partitions\n`)
    for (const pps of pointsPerSecond > 0 ? [0, pointsPerSecond] : [0]) {
      for (let round = 0; round < rounds; round++) {
        for (const fault of FAULTS) {
          let pace: Pace | undefined
          if (pps > 0) pace = sendPaced(() => [a, services.b], access.fleet.key, { pointsPerSecond: pps, trackers })
          await settled([a, services.b])
          const { b } = services
          const name = `${fault}, ${pps} points/s`
          const atMs = Date.now()
          if (fault === 'half-open') ways.silence()
          else b.process.kill(fault)
          report(name, await measured(a, access, atMs))
          if (fault === 'SIGTERM') await b.stop()
          else await b.kill()
          pace?.without(b)
          await ways.close()
          ways = await OwnWays.open(servers.urls)
          const startedMs = Date.now()
          services.b = await start(folder, 'b', ways.urls, 600_000)
          const readyMs = Date.now() - startedMs
          const own = lineSince(services.b, startedMs, 'parts taken')
          const usedMs = cpuMsOf(services.b)
          report(`start after ${name}`, {
            ready: readyMs,
            ...(own !== undefined && took(own)),
            'its processor': usedMs,
          })
          await pace?.end()
        }
      }
    }
    for (const [name, runs] of all) printTable(name, runs)
  } finally {
    await Promise.all([a.kill(), services.b.kill()])
    await ways.close()
    await servers.close()
  }
}

/** Least and median of each phase over all rounds. */
const printTable = (name: string, runs: readonly Phases[]): void => {
  process.stdout.write(`\n${name}, ${runs.length} rounds: ms, least and median\n`)
  for (const phase of new Set(runs.flatMap((phases) => Object.keys(phases)))) {
    const values = runs.flatMap((phases) => phases[phase] ?? []).sort((a, b) => a - b)
    process.stdout.write(`| ${phase} | ${values[0]} | ${values[Math.floor(values.length / 2)]} |\n`)
  }
}

const folder = mkdtempSync(join(tmpdir(), 'waymark-takeover-'))
process.stdout.write(`${cpus().length} × ${cpus()[0].model}, Node ${process.version}\n`)
try {
  await run(folder)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
