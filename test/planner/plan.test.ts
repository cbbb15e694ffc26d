import { readFileSync } from 'node:fs'
import { test } from 'tap'
import type { Problem, Task, Vehicle } from '../../src/planner/problem.ts'
import { plan } from '../../src/planner/search.ts'
import { planFaults } from '../support/plan-checker.ts'
import { freshlySeeded, seeded } from '../support/random.ts'

const NEVER = Number.POSITIVE_INFINITY

const VEHICLE: Vehicle = {
  start: 0,
  end: 0,
  capacity: [],
  from: 0,
  to: NEVER,
  breaks: [],
  tags: [],
  pace: 1,
  cost: { fixed: 0, perDistance: 1, perSecond: 0 },
  visitsMax: NEVER,
  distanceMax: NEVER,
  durationMax: NEVER,
}

const TASK: Task = { place: 0, load: [], from: 0, to: NEVER, durationS: 0, tags: [], priority: 0 }

/** Places on a line, at these distances from the first. */
const along = (...at: number[]): Pick<Problem, 'places' | 'distances' | 'durations'> => {
  const distances = Float32Array.from(at.flatMap((one) => at.map((other) => Math.abs(one - other))))
  return { places: at.length, distances, durations: distances }
}

const steps = (count: number) => ({ seed: 1, progress: (step: number) => step / count })

test('visits lie on the way, and the vehicle comes back', async (t) => {
  const problem = {
    ...along(0, 10, 20, 30),
    vehicles: [VEHICLE, VEHICLE],
    tasks: [3, 1, 2].map((place) => ({ ...TASK, place, durationS: 5 })),
  }
  const { routes, unassigned, cost } = plan(problem, steps(200))
  t.same(planFaults(problem, plan(problem, steps(200))), [])
  t.equal(routes.length, 1)
  t.equal(cost, 60)
  t.equal(routes[0].to - routes[0].from, 75)
  t.same(unassigned, [])
  const open = { ...problem, vehicles: [{ ...VEHICLE, end: undefined }] }
  const one = plan(open, steps(200))
  t.same(planFaults(open, one), [])
  t.equal(one.cost, 30, 'an open route ends at its last task')
})

test('no route has a leg where there is no way, also between tasks that are reached alone', async (t) => {
  const noWay = 1e9
  // Place 3 has no way to it, 1 and 2 none between them.
  const barred = (from: number, to: number): boolean => [from, to].includes(3) || from * to === 2
  const rows = [0, 1, 2, 3].map((from) => [0, 1, 2, 3].map((to) => (from !== to && barred(from, to) ? noWay : 10)))
  const distances = Float32Array.from(rows.flat())
  const tasks = [1, 2, 3].map((place) => ({ ...TASK, place }))
  const problem = { places: 4, distances, durations: distances, noWay, tasks, vehicles: [VEHICLE] }
  const one = plan(problem, steps(200))
  t.same(
    one.routes.map(({ visits }) => visits.length),
    [1],
  )
  t.match(
    one.unassigned.map(({ reason }) => reason),
    ['noRoom', 'noRoad'],
  )
  const two = plan({ ...problem, vehicles: [VEHICLE, VEHICLE] }, steps(200))
  t.equal(two.cost, 40)
  t.same(two.unassigned, [{ task: 2, reason: 'noRoad' }])
})

test('a vehicle that would be early leaves later, and pauses in its breaks', async (t) => {
  const vehicle = { ...VEHICLE, to: 1_000, breaks: [{ from: 105, to: 205 }] }
  const problem = {
    ...along(0, 10, 20),
    vehicles: [vehicle],
    tasks: [
      { ...TASK, place: 1, from: 100, to: 400, durationS: 5 },
      { ...TASK, place: 2, from: 0, to: 400, durationS: 30 },
    ],
  }
  const made = plan(problem, steps(200))
  t.same(planFaults(problem, made), [])
  const [{ visits, from }] = made.routes
  t.ok(from > 0)
  for (const visit of visits) t.ok(visit.to <= 105 || visit.from >= 205)
})

test('what fits nowhere is named with the reason', async (t) => {
  const vehicle = { ...VEHICLE, capacity: [10], to: 100, tags: ['lift'], distanceMax: 150, durationMax: 90 }
  const tasks = [
    { ...TASK, place: 1, tags: ['cooled'] },
    { ...TASK, place: 1, load: [11] },
    { ...TASK, place: 3 },
    { ...TASK, place: 1, durationS: 80 },
    { ...TASK, place: 2, from: 90, to: 95 },
    { ...TASK, place: 2, to: 5 },
    { ...TASK, place: 1, to: -10 },
    { ...TASK, place: 1, load: [6], tags: ['lift'] },
    { ...TASK, place: 1, load: [6], priority: 9 },
  ]
  const problem = { ...along(0, 10, 20, 80), vehicles: [vehicle], tasks }
  const made = plan(problem, steps(300))
  t.same(planFaults(problem, made), [])
  t.same(Object.fromEntries(made.unassigned.map(({ task, reason }) => [task, reason])), {
    0: 'tags',
    1: 'capacity',
    2: 'distanceMax',
    3: 'durationMax',
    4: 'workingHours',
    5: 'window',
    6: 'window',
    7: 'noRoom',
  })
  const late = { ...problem, vehicles: [{ ...vehicle, from: 50 }], tasks: [{ ...TASK, place: 1, to: 40 }] }
  t.same(plan(late, steps(10)).unassigned, [{ task: 0, reason: 'workingHours' }])
  t.same(plan({ ...late, tasks: [{ ...TASK, place: 1, to: -10 }] }, steps(10)).unassigned, [
    { task: 0, reason: 'window' },
  ])
  const idle = { ...problem, vehicles: [{ ...vehicle, visitsMax: 0 }], tasks: tasks.slice(7) }
  t.same(new Set(plan(idle, steps(10)).unassigned.map(({ reason }) => reason)), new Set(['visitsMax']))
  t.same(plan({ ...problem, vehicles: [], tasks: tasks.slice(0, 1) }, steps(10)).routes, [])
  t.same(plan({ ...problem, tasks: [] }, steps(10)).routes, [])
})

test('the cheaper vehicle goes first, a dear one only where it has to', async (t) => {
  const dear = { ...VEHICLE, cost: { fixed: 1_000, perDistance: 1, perSecond: 0 } }
  const problem = {
    ...along(0, 10, 20, 30),
    vehicles: [dear, { ...VEHICLE, capacity: [2] }],
    tasks: [1, 2].map((place) => ({ ...TASK, place, load: [1] })),
  }
  t.same(
    plan(problem, steps(300)).routes.map(({ vehicle }) => vehicle),
    [1],
  )
  const more = { ...problem, tasks: [...problem.tasks, { ...TASK, place: 3, load: [1] }] }
  const made = plan(more, steps(300))
  t.same(planFaults(more, made), [])
  t.same(made.unassigned, [], 'serving a task comes before its cost')
})

test('random problems with every limit: plans are valid, improve, and repeat with the seed', async (t) => {
  const random = freshlySeeded(t)
  for (let round = 0; round < 60; round++) {
    const problem = randomProblem(random)
    const few = plan(problem, steps(1))
    const many = plan(problem, steps(400))
    t.same(planFaults(problem, few), [])
    t.same(planFaults(problem, many), [])
    const left = (made: typeof few): number =>
      made.unassigned.reduce((sum, { task }) => sum + 1 + problem.tasks[task].priority, 0)
    t.ok(left(many) < left(few) || (left(many) === left(few) && many.cost <= few.cost + 1e-6))
    t.same(plan(problem, steps(400)), many)
  }
})

test('an early stop keeps the best plan found', async (t) => {
  const problem = randomProblem(seeded(7), 60)
  let told = { cost: 0, unassigned: 0 }
  let stopped = false
  const made = plan(problem, {
    seed: 3,
    progress: (step) => ((stopped = step >= 123) ? 1 : 0.2),
    improved: (cost, unassigned) => (told = { cost, unassigned }),
  })
  t.ok(stopped)
  t.equal(made.steps, 123)
  t.same({ cost: made.cost, unassigned: made.unassigned.length }, told)
  t.same(planFaults(problem, made), [])
})

test('published instances come out near their best known distances in few steps', async (t) => {
  type Instance = { name: string; best: number; vehicles: number; capacity: number; nodes: number[][] }
  const path = new URL('../../../bench/instances/solomon-100.json', import.meta.url)
  const all: Instance[] = JSON.parse(readFileSync(path, 'utf8'))
  t.equal(all.length, 56)
  for (const name of ['C101', 'R105', 'RC201']) {
    const { nodes, vehicles, capacity, best } = all.find((one) => one.name === name) as Instance
    const distances = Float32Array.from(
      nodes.flatMap(([x, y]) => nodes.map((other) => Math.floor(10 * Math.hypot(x - other[0], y - other[1]) + 1e-9))),
    )
    const problem: Problem = {
      places: nodes.length,
      distances,
      durations: distances,
      vehicles: Array.from({ length: vehicles }, () => ({ ...VEHICLE, capacity: [capacity], to: nodes[0][4] * 10 })),
      tasks: nodes.slice(1).map(([, , load, from, to, durationS], i) => ({
        ...TASK,
        place: i + 1,
        load: [load],
        from: from * 10,
        to: to * 10,
        durationS: durationS * 10,
      })),
    }
    const made = plan(problem, steps(6_000))
    t.same(planFaults(problem, made), [], name)
    t.ok(made.cost / 10 >= best - 0.05 && made.cost / 10 < best * 1.06, `${name}: ${made.cost / 10} of ${best}`)
  }
})

const randomProblem = (random: () => number, count = 1 + Math.floor(random() * 25)): Problem => {
  const chance = (share: number): boolean => random() < share
  const whole = (end: number): number => Math.floor(random() * end)
  const places = 2 + whole(count + 3)
  const matrix = (): Float32Array =>
    Float32Array.from({ length: places * places }, (_value, i) => (i % (places + 1) === 0 ? 0 : 1 + whole(200)))
  const distances = matrix()
  const limit = (share: number, value: number): number => (chance(share) ? value : NEVER)
  const some = (): string[] => ['a', 'b', 'c'].filter(() => chance(0.5))
  const vehicles = Array.from({ length: 1 + whole(5) }, (): Vehicle => {
    const from = whole(300)
    return {
      start: 0,
      end: chance(0.6) ? whole(places) : undefined,
      capacity: chance(0.7) ? [5 + whole(30), 5 + whole(30)] : [10],
      from,
      to: limit(0.8, from + 300 + whole(1_500)),
      breaks: Array.from({ length: whole(3) }, () => {
        const begin = 200 + whole(600)
        return { from: begin, to: begin + whole(300) }
      }),
      tags: some(),
      pace: 0.5 + random(),
      cost: { fixed: whole(100), perDistance: random() * 2, perSecond: chance(0.5) ? random() : 0 },
      visitsMax: limit(0.3, whole(8)),
      distanceMax: limit(0.3, 200 + whole(1_500)),
      durationMax: limit(0.4, 300 + whole(1_200)),
    }
  })
  const tasks = Array.from({ length: count }, (): Task => {
    const from = chance(0.5) ? whole(1_000) : 0
    return {
      place: whole(places),
      load: [whole(6), whole(6)].slice(0, whole(3)),
      from,
      to: limit(0.5, from + whole(500) - 20),
      durationS: whole(60),
      tags: some().filter(() => chance(0.4)),
      priority: chance(0.3) ? whole(10) : 0,
    }
  })
  return { places, distances, durations: chance(0.5) ? distances : matrix(), vehicles, tasks }
}
