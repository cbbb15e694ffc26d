import { defer } from '../../src/kit/consumers/deferred.ts'
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { call, type Service, startService } from '../../test/support/service.ts'
import { askControl } from '../../src/cli/control-socket.ts'
import { caughtUp, settled } from './at-rest.ts'
import { FLEET, generate, option, prepare, round } from './fresh-service.ts'
import type { LoadPlan } from './generator.ts'

/**
 * Kills the service under full load and starts it again on its data folder: the time until it is ready and until every
 * consumer has caught up, and how old the checkpoints were. Then reads the whole log again into read models. Usage: node
 * dist/bench/load/run-restart.js [--trackers 100000] [--fences 10000] [--points 20000000] [--rounds 1]
 */
const trackers = option('trackers', 100_000)
const fences = option('fences', 10_000)
const points = option('points', 20_000_000)
const rounds = option('rounds', 1)

const REBUILT = ['latest-position', 'matcher', 'location-history'] as const
/** From the first frame to the fault. */
const LOAD_MS = 15_000
/** Senders go on so long after it. */
const AFTER_MS = 1_000
const HOUR_MS = 3_600_000

const planOf = (service: Service, key: string, ends: Pick<LoadPlan, 'measureMs' | 'pointsMax'>): LoadPlan => ({
  port: service.port,
  bearers: [key],
  connections: 20,
  window: 64,
  framePoints: 100,
  fleet: { ...FLEET, trackers },
  named: true,
  warmupMs: 0,
  ...ends,
})

/** Age of the oldest entry that a consumer has not stored, s; those that have stored all are left out. */
const behind = async (service: Service): Promise<{ [consumer: string]: number }> => {
  const { text } = await call(service, 'GET', '//metrics')
  const seconds: { [consumer: string]: number } = {}
  for (const [, consumer, value] of text.matchAll(/^waymark_consumer_lag_seconds\{consumer="([^"]*)"[^}]*\} (\S+)/gm))
    if (Number(value) > 0) seconds[consumer] = Math.max(seconds[consumer] ?? 0, Number(value))
  return seconds
}

const restart = async (service: Service, data: string, key: string, rows: Rows): Promise<Service> => {
  const loading = defer()
  const load = generate(planOf(service, key, { measureMs: LOAD_MS + AFTER_MS }), loading.resolve)
  await Promise.race([loading.promise, load])
  const ended = load.catch(() => undefined) // the service is killed under it
  await new Promise((resume) => setTimeout(resume, LOAD_MS))
  rows['behind before the fault, s'] = await behind(service)
  await service.kill()
  await ended
  const begun = performance.now()
  const next = await startService(data, [], 0)
  rows['ready, s'] = round((performance.now() - begun) / 1000)
  rows['behind when ready, s'] = await behind(next)
  await caughtUp(next)
  rows['caught up, s'] = round((performance.now() - begun) / 1000)
  return next
}

type Rows = { [name: string]: unknown }

/** Each figure as soon as it is known: the whole takes long. */
const told = (rows: Rows): void => void process.stdout.write(`${JSON.stringify(rows)}\n`)

const main = async (): Promise<void> => {
  const data = mkdtempSync(join(tmpdir(), 'waymark-restart-'))
  let service = await startService(data, ['--geofence-positions-max', '100000000'])
  try {
    const rows: Rows = { machine: `${cpus().length} × ${cpus()[0].model}, Node ${process.version}`, fences, trackers }
    const { key } = await prepare(service, rows, fences, { ...FLEET, trackers })
    told(rows)
    const sent = await generate(planOf(service, key, { measureMs: HOUR_MS, pointsMax: points }))
    told({ 'points in the log': sent.points, 'sent in, s': round(sent.seconds) })
    for (let i = 0; i < rounds; i++) {
      const found: Rows = {}
      service = await restart(service, data, key, found)
      told({ [`restart ${i + 1}`]: found })
    }
    await settled(service)
    for (const projection of REBUILT) {
      const begun = performance.now()
      const answer = await askControl(data, { command: 'rebuild', name: projection })
      if (answer?.ok !== true) throw new Error(`rebuild ${projection}: ${answer?.error}`)
      const seconds = (performance.now() - begun) / 1000
      told({
        [`rebuild ${projection}`]: { seconds: round(seconds), pointsPerSecond: Math.round(sent.points / seconds) },
      })
    }
    await service.stop()
  } finally {
    await service.kill()
    rmSync(data, { recursive: true, force: true })
  }
}

await main()
