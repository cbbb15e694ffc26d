import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { call, type Service } from '../test/support/service.ts'
import { FLEET, generate, onFreshService, option, type Prepared } from './load/fresh-service.ts'
import { handlesOf, memoryOf, threadsOf } from './load/process-figures.ts'
import { COLUMNS, drawn, readSamples, type Sample, slopeOf, tableOf } from './load/soak-curve.ts'

/**
 * Runs a whole service for a long time at a steady rate, with viewers and exports, and writes its curve of memory, handles
 * and threads: a line every 10 s into a CSV file; at the end a table, the slopes of the second half, and a picture. Usage:
 * `node dist/bench/soak.js [--minutes 60] [--rate 20000] [--viewers 200] [--exports 2] [--fences 10000] [--every 5] [--csv
 * soak.csv] [--svg soak.svg]`. With `--show soak.csv` it runs nothing and shows the output of an earlier run.
 */
const minutes = option('minutes', 60)
const rate = option('rate', 20_000)
const viewers = option('viewers', 200)
const exporters = option('exports', 2)
const fences = option('fences', 10_000)
const everyMinutes = option('every', 5)
const pathAfter = (name: string): string | undefined =>
  process.argv.includes(name) ? process.argv[process.argv.indexOf(name) + 1] : undefined
const csvPath = pathAfter('--csv') ?? 'soak.csv'
const svgPath = pathAfter('--svg')

const SAMPLE_MS = 10_000
const EXPORT_PAUSE_MS = 5_000

const sampleOf = async (service: Service, seconds: number): Promise<Sample> => {
  const pid = service.process.pid as number
  const { text } = await call(service, 'GET', '//metrics')
  const figure = (name: string): number => Number(new RegExp(`^${name} (.+)$`, 'm').exec(text)?.[1])
  const mb = (name: string): number => Math.round(figure(name) / 2 ** 20)
  return {
    seconds,
    ...memoryOf(pid),
    heapMb: mb('nodejs_heap_size_used_bytes'),
    heapTotalMb: mb('nodejs_heap_size_total_bytes'),
    externalMb: mb('nodejs_external_memory_bytes'),
    acceptedPoints: figure('waymark_points_total\\{result="accepted"\\}'),
    handles: sum(handlesOf(pid)),
    threads: sum(threadsOf(pid)),
  }
}

const sum = (counts: ReadonlyMap<string, number>): number => [...counts.values()].reduce((all, one) => all + one, 0)

/** Downloads exports in turn, as people do: the fleet's last minute as a file, a tracker's hour as a track. */
const exportAgainAndAgain = async ({ service, token }: Prepared, signal: AbortSignal): Promise<number> => {
  const since = (ms: number): string => new Date(Date.now() - ms).toISOString()
  const trackers = JSON.parse((await call(service, 'GET', '/trackers?limit=100&fields=_id', { token })).text).data
  let done = 0
  for (; !signal.aborted; done++) {
    const path =
      done % 2 === 0
        ? `/location-histories?format=${['csv', 'parquet', 'ndjson'][(done / 2) % 3]}&from=${since(60_000)}`
        : `/location-histories?format=gpx&simplify=10&from=${since(3_600_000)}&trackerId=${trackers[done % 100]._id}`
    const answer = await fetch(`${service.url}/api/v3${path}`, {
      headers: { authorization: `Bearer ${token}` },
      signal,
    })
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
    for await (const _chunk of answer.body ?? []);
    await pause(EXPORT_PAUSE_MS, undefined, { signal })
  }
  return done
}

const show = (samples: readonly Sample[]): void => {
  const line = (cells: readonly string[]): void => console.log(`| ${cells.join(' | ')} |`)
  const [head, ...rows] = tableOf(samples, everyMinutes)
  line(head)
  line(head.map(() => '-'))
  for (const row of rows) line(row)
  const from = (samples.at(-1)?.seconds ?? 0) / 120
  for (const column of ['rssMb', 'fileMb', 'anonMb', 'heapMb', 'handles', 'threads'] as const)
    console.log(`${column}: ${slopeOf(samples, column, from).toFixed(2)} a minute over the second half`)
  if (svgPath !== undefined) writeFileSync(svgPath, drawn(samples))
}

const showChanges = (what: string, before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>): void => {
  const names = [...new Set([...before.keys(), ...after.keys()])]
  const changed = names
    .map((name) => [name, before.get(name) ?? 0, after.get(name) ?? 0] as const)
    .filter(([, from, to]) => from !== to)
    .sort((a, b) => b[2] - b[1] - (a[2] - a[1]))
  console.log(`${what}: ${changed.map(([name, from, to]) => `${name} ${from} → ${to}`).join(', ')}`)
}

const soak = async (prepared: Prepared): Promise<void> => {
  const { service, token, key } = prepared
  const pid = service.process.pid as number
  const [threads, handles] = [threadsOf(pid), handlesOf(pid)]
  const end = new AbortController()
  const sent = generate({
    port: service.port,
    bearers: [key],
    connections: 20,
    window: 64,
    framePoints: 10,
    fleet: FLEET,
    named: true,
    warmupMs: 0,
    measureMs: minutes * 60_000,
    pointsPerSecond: rate,
    viewers: { count: viewers, intervalMs: 100, token, viewportShare: 0.01 },
  }).finally(() => end.abort())
  const exporting = Array.from({ length: exporters }, () =>
    exportAgainAndAgain(prepared, end.signal).catch((error: unknown) => {
      if (!end.signal.aborted) throw error
    }),
  )
  const samples: Sample[] = []
  const begun = performance.now()
  writeFileSync(csvPath, `${COLUMNS.join()}\n`)
  while (!end.signal.aborted) {
    const sample = await sampleOf(service, Math.round((performance.now() - begun) / 1000))
    samples.push(sample)
    appendFileSync(csvPath, `${COLUMNS.map((column) => sample[column]).join()}\n`)
    await pause(SAMPLE_MS, undefined, { signal: end.signal }).catch(() => undefined)
  }
  await Promise.all(exporting)
  const { acknowledgedPointsPerSecond, ackMs, liveMs, closed } = await sent
  show(samples)
  showChanges('threads', threads, threadsOf(pid))
  showChanges('handles', handles, handlesOf(pid))
  console.log(
    JSON.stringify({
      acknowledgedPointsPerSecond: Math.round(acknowledgedPointsPerSecond),
      ackMs,
      liveMs,
      closed: closed.length,
    }),
  )
}

const shown = pathAfter('--show')
if (shown !== undefined) show(readSamples(readFileSync(shown, 'utf8')))
else {
  console.log(`${cpus().length} × ${cpus()[0].model}, Node ${process.version}; ${minutes} min at ${rate} points/s`)
  await onFreshService({}, fences, soak)
}
