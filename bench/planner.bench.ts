import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { join } from 'node:path'
import type { Plan, Problem } from '../src/planner/problem.ts'
import { plan } from '../src/planner/search.ts'
import { planFaults } from '../test/support/plan-checker.ts'
import { seeded } from '../test/support/random.ts'

/*
 * The planner against published instances (instances/README.md says where they are from): how far its distance is above the
 * best known one. A budget is CPU time of this process, so that what else runs on the machine changes little.
 *
 *   node dist/bench/planner.bench.js --set solomon --seconds 10 --only R1 --every 4
 */

export interface Instance {
  name: string
  best: number
  vehicles: number
  capacity: number
  /** x, y, demand and, with windows, from, to, duration; the depot first. */
  nodes: number[][]
}

const FOLDER = join(import.meta.dirname, '../../bench/instances')

export const instances = (set: 'solomon-100' | 'uchoa-x'): Instance[] =>
  JSON.parse(readFileSync(join(FOLDER, `${set}.json`), 'utf8'))

/** Distances as in the DIMACS challenge: cut after one decimal (here in tenths), and all tens of the vehicles. */
export const withWindows = ({ vehicles, capacity, nodes }: Instance): Problem => {
  const distances = matrix(nodes, (apart) => Math.floor(apart * 10 + 1e-9))
  const [depot, ...customers] = nodes
  return {
    places: nodes.length,
    distances,
    durations: distances,
    vehicles: Array.from({ length: vehicles }, () => ({ ...VEHICLE, capacity: [capacity], to: depot[4] * 10 })),
    tasks: customers.map(([, , demand, from, to, duration], i) => ({
      ...TASK,
      place: i + 1,
      load: [demand],
      from: from * 10,
      to: to * 10,
      durationS: duration * 10,
    })),
  }
}

/** Distances are rounded to whole numbers; the number of vehicles is free. */
export const withoutWindows = ({ vehicles, capacity, nodes }: Instance): Problem => {
  const distances = matrix(nodes, Math.round)
  return {
    places: nodes.length,
    distances,
    durations: distances,
    vehicles: Array.from({ length: vehicles + 10 }, () => ({ ...VEHICLE, capacity: [capacity] })),
    tasks: nodes.slice(1).map(([, , demand], i) => ({ ...TASK, place: i + 1, load: [demand] })),
  }
}

const NEVER = Number.POSITIVE_INFINITY
const LIMITS = { visitsMax: NEVER, distanceMax: NEVER, durationMax: NEVER }
const COST = { fixed: 0, perDistance: 1, perSecond: 0 }
const VEHICLE = { start: 0, end: 0, from: 0, to: NEVER, breaks: [], tags: [], pace: 1, cost: COST, ...LIMITS }
const TASK = { from: 0, to: NEVER, durationS: 0, tags: [], priority: 0 }

const matrix = (nodes: readonly number[][], rounded: (apart: number) => number): Float32Array =>
  Float32Array.from({ length: nodes.length ** 2 }, (_value, i) => {
    const [x, y] = nodes[Math.floor(i / nodes.length)]
    const [otherX, otherY] = nodes[i % nodes.length]
    return rounded(Math.hypot(x - otherX, y - otherY))
  })

const cpuS = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}

/** Plans for this many seconds of CPU time. */
const planFor = (problem: Problem, seconds: number, seed: number, improved?: () => void): Plan => {
  const begin = cpuS()
  let used = 0
  const progress = (step: number): number => {
    if (step % 16 === 0) used = Math.min(1, (cpuS() - begin) / seconds)
    return used
  }
  return plan(problem, { seed, progress, improved })
}

const checked = (problem: Problem, made: Plan): Plan => {
  const faults = planFaults(problem, made)
  if (faults.length > 0 || made.unassigned.length > 0) throw new Error(`not valid: ${faults.slice(0, 5).join('; ')}`)
  return made
}

const compare = (set: 'solomon-100' | 'uchoa-x', { seconds, only, every, seed }: Options): void => {
  const chosen = instances(set).filter(({ name }, i) => name.startsWith(only) && i % every === 0)
  const gaps: number[] = []
  for (const instance of chosen) {
    const problem = set === 'uchoa-x' ? withoutWindows(instance) : withWindows(instance)
    const made = checked(problem, planFor(problem, seconds, seed))
    const cost = set === 'uchoa-x' ? made.cost : made.cost / 10
    const gap = (cost / instance.best - 1) * 100
    gaps.push(gap)
    const { name, best } = instance
    console.log(
      `${name.padEnd(12)} ${cost} (${best}) ${gap.toFixed(2)} %, ${made.routes.length} routes, ${made.steps} steps`,
    )
  }
  const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length
  console.log(
    `${set}: ${gaps.length} instances, ${seconds} s each: ${mean.toFixed(2)} % above the best known, worst ${Math.max(...gaps).toFixed(2)} %`,
  )
}

/** A town's day: 1,000 tasks with windows of two hours and 30 vehicles. */
export const day = (tasks: number, vehicles: number, seed: number): Problem => {
  const random = seeded(seed)
  const nodes = Array.from({ length: tasks + 1 }, () => [random() * 30_000, random() * 30_000])
  const distances = matrix(nodes, (apart) => Math.round(apart * 1.3))
  const cost = { fixed: 50, perDistance: 0.0005, perSecond: 0.01 }
  return {
    places: nodes.length,
    distances,
    durations: distances,
    vehicles: Array.from({ length: vehicles }, () => ({
      ...VEHICLE,
      capacity: [60, 500],
      to: 12 * 3_600,
      breaks: [{ from: 5 * 3_600, to: 5.5 * 3_600 }],
      pace: 3.6 / 50,
      cost,
    })),
    tasks: nodes.slice(1).map((_node, i) => {
      const from = Math.floor(random() * 10) * 3_600
      const load = [1, Math.ceil(random() * 10)]
      return { ...TASK, place: i + 1, load, from, to: from + 2 * 3_600, durationS: 240 + Math.floor(random() * 300) }
    }),
  }
}

const large = ({ seconds, seed }: Options): void => {
  const problem = day(1_000, 30, seed)
  const begin = cpuS()
  const marks: { at: number; cost: number; unassigned: number }[] = []
  const improved = (cost: number, unassigned: number): void => {
    marks.push({ at: cpuS() - begin, cost, unassigned })
  }
  let used = 0
  const progress = (step: number): number => {
    if (step % 16 === 0) used = Math.min(1, (cpuS() - begin) / seconds)
    return used
  }
  const made = plan(problem, { seed, progress, improved })
  const faults = planFaults(problem, made)
  if (faults.length > 0) throw new Error(faults.slice(0, 5).join('; '))
  for (const at of [0.5, 1, 2, 5, 10, 20, 30].filter((one) => one <= seconds)) {
    const mark = marks.findLast((one) => one.at <= at)
    console.log(
      `after ${at} s: ${mark === undefined ? 'none' : `cost ${mark.cost.toFixed(1)}, ${mark.unassigned} unassigned`}`,
    )
  }
  console.log(
    `first plan after ${marks[0].at.toFixed(2)} s, last better one after ${marks.at(-1)?.at.toFixed(2)} s, ${made.steps} steps`,
  )
}

interface Options {
  seconds: number
  only: string
  every: number
  seed: number
}

const OPTIONS = {
  set: { type: 'string' },
  seconds: { type: 'string', default: '2' },
  only: { type: 'string', default: '' },
  every: { type: 'string', default: '8' },
  seed: { type: 'string', default: '1' },
} as const

const main = (): void => {
  const { set, only, ...given } = parseArgs({ options: OPTIONS }).values
  const options = { only, seconds: Number(given.seconds), every: Number(given.every), seed: Number(given.seed) }
  if (set === undefined || set === 'solomon') compare('solomon-100', options)
  if (set === undefined || set === 'x') compare('uchoa-x', options)
  if (set === undefined || set === 'large') large(options)
}

if (process.argv[1] === import.meta.filename) main()
