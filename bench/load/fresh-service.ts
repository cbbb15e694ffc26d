import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { ask, call, signUp, startService, type Service } from '../../test/support/service.ts'
import { fenceCollection, type Fleet } from './frames.ts'
import type { LoadPlan, LoadResult } from './generator.ts'

/** The fleet of every load. */
export const FLEET: Fleet = { trackers: 20_000, west: 20, south: 51.5, east: 22, north: 52.9 }
const COVER = 1.15
const VERTICES = 50

/** The fences of every load. */
export const loadFences = (fences: number) => fenceCollection(FLEET, fences, VERTICES, COVER)

/** The word after `--name` on the command line. */
export const textOption = (name: string): string | undefined => {
  const at = process.argv.indexOf(`--${name}`)
  return at < 0 ? undefined : process.argv[at + 1]
}

/** The number after `--name` on the command line. */
export const option = (name: string, fallback: number): number => Number(textOption(name) ?? fallback)

/** Sends points from a process of its own until the plan has ended. `onBegun` is called with the first frame. */
export const generate = async (plan: LoadPlan, onBegun = (): void => undefined): Promise<LoadResult> => {
  const child = spawn(
    process.execPath,
    [fileURLToPath(new URL('./generator.js', import.meta.url)), JSON.stringify(plan)],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const lines: string[] = []
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (lines.push(line) === 1) onBegun()
  })
  const code = await new Promise<number | null>((done) => child.once('close', done))
  if (code !== 0) throw new Error(`the generator ended with ${code}`)
  return JSON.parse(lines[1]) as LoadResult
}

/** Servers on a busy machine may take longer for so many unknown trackers than the service waits. */
const postPatiently = async (service: Service, key: string, points: readonly object[]): Promise<void> => {
  for (let tries = 0; ; tries++) {
    const { status, text } = await call(service, 'POST', '/location-history/bulk', { token: key, body: { points } })
    if (status < 300) return
    if (status !== 503 || tries > 20) throw new Error(`POST /location-history/bulk: ${status} ${text.slice(0, 300)}`)
    await new Promise((resume) => setTimeout(resume, 1_000))
  }
}

/** A fleet's first minute: every id of it is unknown. Answers the time it took, s. */
const makeFleet = async (service: Service, key: string, fleet: Fleet): Promise<number> => {
  const begun = performance.now()
  const recordedAt = Date.now() - 60_000
  for (let first = 0; first < fleet.trackers; first += 5_000) {
    const points = Array.from({ length: Math.min(5_000, fleet.trackers - first) }, (_, i) => ({
      externalId: `load-${first + i}`,
      recordedAt,
      lat: fleet.south,
      lng: fleet.west,
    }))
    await postPatiently(service, key, points)
  }
  return (performance.now() - begun) / 1000
}

export const round = (value: number): number => Math.round(value * 10) / 10

export interface Prepared {
  service: Service
  token: string
  /** Ingest key of the fleet. */
  key: string
}

/** Gives a service an organization with the fences and the fleet. */
export const prepare = async (
  service: Service,
  rows: { [name: string]: unknown },
  fences: number,
  fleet: Fleet = FLEET,
): Promise<Prepared> => {
  const { token } = await signUp(service, 'Load')
  const group = await ask(service, 'POST', '/geofence-group', { token, body: { name: 'load' } })
  const importBegun = performance.now()
  const imported = await ask(service, 'POST', `/geofences/import?geofenceGroupId=${group.data._id}&nameProperty=name`, {
    token,
    body: loadFences(fences),
  })
  if (imported.data.created !== fences) throw new Error(`imported ${imported.data.created}`)
  rows['fences imported and in force, s'] = round((performance.now() - importBegun) / 1000)
  const key = (await ask(service, 'POST', '/ingest-key', { token, body: { name: 'load', autoCreate: true } })).data.key
  rows[`${fleet.trackers.toLocaleString('en')} unknown trackers made, s`] = round(await makeFleet(service, key, fleet))
  return { service, token, key }
}

/** Runs a service of its own with the fences and the fleet, and ends it. */
export const onFreshService = async (
  rows: { [name: string]: unknown },
  fences: number,
  run: (prepared: Prepared) => Promise<void>,
  flags: readonly string[] = [],
  entry?: string,
): Promise<void> => {
  const data = mkdtempSync(join(tmpdir(), 'waymark-load-'))
  const service = await startService(data, ['--geofence-positions-max', '100000000', ...flags], 0, entry)
  try {
    await run(await prepare(service, rows, fences))
    await service.stop()
  } finally {
    await service.kill()
    rmSync(data, { recursive: true, force: true })
  }
}
