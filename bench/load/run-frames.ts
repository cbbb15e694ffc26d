import { FLEET, generate, onFreshService, option, type Prepared, textOption } from './fresh-service.ts'
import type { LoadPlan, LoadResult } from './generator.ts'
import { drain, hundredths, startCeiling } from './measure-load.ts'

/**
 * Frames of one point over a few gateways, each written by itself or all that the window allows at once, beside the
 * ceiling of the same generator in the same round. With `--other` a second build takes turns with this one, on a
 * service of its own. Usage: node dist/bench/load/run-frames.js [--seconds 5] [--warmup 3] [--rounds 2] [--points 1]
 * [--fences 10000] [--connections 1,8,200] [--other <main.js>]
 */
const measureMs = option('seconds', 5) * 1000
const warmupMs = option('warmup', 3) * 1000
const fences = option('fences', 10_000)
const framePoints = option('points', 1)

const other = textOption('other')
const connections = (textOption('connections') ?? '1,8,200').split(',').map(Number)
/** The generator keeps a lap of frames for each tracker. */
const fleet = { ...FLEET, trackers: 2_000 }
const WINDOW = 4_096

const planOf = (port: number, bearer: string, count: number, together: boolean): LoadPlan => ({
  port,
  bearers: [bearer],
  connections: count,
  window: WINDOW,
  framePoints,
  together,
  fleet,
  named: true,
  warmupMs,
  measureMs,
})

const print = (name: string, figures: object): void => {
  process.stdout.write(`${name} ${JSON.stringify(figures)}\n`)
}

/** One run on a service, after which it is at rest. */
const measure = async (name: string, { service, key }: Prepared, count: number, together: boolean, top: LoadResult) => {
  const result = await generate({
    ...planOf(service.port, key, count, together),
    servicePid: service.process.pid,
  })
  const pointsPerSecond = result.acknowledgedPointsPerSecond
  print(name, {
    pointsPerSecond: Math.round(pointsPerSecond),
    shareOfCeiling: hundredths(pointsPerSecond / top.acknowledgedPointsPerSecond),
    mainThreadUsPerPoint: hundredths(((result.cpuShares?.main ?? 0) * 1e6) / pointsPerSecond),
    mainThreadShare: hundredths(result.cpuShares?.main ?? 0),
    ackMsP50: hundredths(result.ackMs.p50),
    generatorCpuShare: hundredths(result.generatorCpuShare),
    closed: result.closed.length,
    drainedS: hundredths(await drain(service)),
  })
}

const rounds = async (services: { [name: string]: Prepared }): Promise<void> => {
  const ceiling = await startCeiling()
  for (let round = 0; round < option('rounds', 2); round++)
    for (const count of connections)
      for (const together of [false, true]) {
        const top = await generate({ ...planOf(ceiling.port, 'x', count, together), warmupMs: 1_000 })
        const name = `${count} connections, frames of ${framePoints}, ${together ? 'written at once' : 'each written'}`
        print(`${name}: ceiling`, { pointsPerSecond: Math.round(top.acknowledgedPointsPerSecond) })
        for (const [build, prepared] of Object.entries(services))
          await measure(`${name}: ${build}`, prepared, count, together, top)
      }
  ceiling.child.kill('SIGKILL')
}

await onFreshService({}, fences, async (own) => {
  if (other === undefined) return rounds({ own })
  await onFreshService({}, fences, (second) => rounds({ other: second, own }), [], other)
})
