import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { JsonObject } from '../../src/kernel/json.ts'
import { idFrom } from '../../src/kit/commands/ids.ts'
import { ask, call, type Service, signUp, startService } from '../../test/support/service.ts'
import { driveHttp, startBare } from './drive-http.ts'
import { option, round } from './fresh-service.ts'
import type { HttpPlan } from './http-generator.ts'
import { caughtUp, IDLE_MS, idleShare, settled } from './at-rest.ts'
import { firstPages } from './first-pages.ts'
import { bulkRate, summaryTimes } from './office-counts.ts'
import { waitedMsOf } from './process-figures.ts'
import { seedRows } from './seed-rows.ts'

/**
 * Tasks and records of an organization that has very many of them: task commands, pages of the task list (filtered,
 * sorted), filtered records, and a list with a hidden field beside the same list without, beside a bare handler of
 * uWebSockets.js that the same generator drives in the same run. Usage: node dist/bench/load/run-office.js [--rows
 * 1000000] [--seconds 5] [--connections 64] [--counts-only 1] [--records 0]: as many records as tasks, where it is left
 * out
 */
const rows = option('rows', 1_000_000)
const measureMs = option('seconds', 5) * 1000
const connections = option('connections', 64)
const records = option('records', rows)
/** Only summaries, first pages and bulk. */
const isCountsOnly = option('counts-only', 0) > 0
const WARMUP_MS = 2_000
/** Until the compiler has optimized the whole path of a request: after 2 s commands are at half of their final rate. */
const FIRST_WARMUP_MS = 10_000
const HALF_MS = WARMUP_MS + measureMs
const PAGES_AIM = 10_000
const COMMANDS_AIM = 3_000
const KINDS = 200
const CITIES = ['Warszawa', 'Berlin', 'Praha', 'Wien', 'Vilnius']
const STATES = ['new', 'assigned', 'inProgress', 'finished']
const CHANGED = 1_024
const [HUBS, TEAMS, USERS] = [50, 200, 1_000]
const LIMITS = ['--tasks-max', '100000000', '--records-max', '100000000']

/** Tables follow millions of events before the service listens. */
const LIMIT_MS = 3_600_000

const TYPE = {
  name: 'Customers',
  primaryKey: 'number',
  fields: [
    { name: 'number', type: 'text' },
    { name: 'kind', type: 'text' },
    { name: 'city', type: 'text' },
    { name: 'debt', type: 'number' },
    { name: 'since', type: 'date' },
  ],
}

interface Office {
  owner: string
  clerk: string
  dataTypeId: string
  taskIds: string[]
}

const dayOf = (n: number): string => new Date(Date.UTC(2024, 0, 1 + (n % 700))).toISOString().slice(0, 10)

const recordValues = (keyOf: (name: string) => string, n: number): JsonObject => ({
  [keyOf('number')]: `C-${n}`,
  [keyOf('kind')]: `kind ${n % KINDS}`,
  [keyOf('city')]: `${CITIES[n % CITIES.length]} ${n % 1000}`,
  [keyOf('debt')]: (n * 7919) % 100_000,
  [keyOf('since')]: dayOf(n),
})

const taskValues = (n: number): JsonObject => ({
  title: `Visit ${n % 50_000} of ${CITIES[n % CITIES.length]}`,
  state: STATES[n % STATES.length],
  priority: n % 10,
  lat: 50 + ((n * 7) % 3_000) / 1000,
  lng: 19 + ((n * 13) % 4_000) / 1000,
  window: { from: `${dayOf(n)}T08:00:00.000Z`, to: `${dayOf(n)}T10:00:00.000Z` },
  ...(n > 0 && { hubId: idFrom('bench', 'hub', n % HUBS), teamId: idFrom('bench', 'team', n % TEAMS) }),
  assigneeIds: [idFrom('bench', 'user', (n * 7919) % USERS)],
})

/** Makes one of each over the API, and all others like it in the log. */
const seed = async (data: string): Promise<Office> => {
  const service = await startService(data, LIMITS)
  const { token, hubId } = await signUp(service, 'Office')
  const make = async (path: string, body: object) => (await ask(service, 'POST', path, { token, body })).data
  const type = await make('/data-type', TYPE)
  const record = await make('/data', {
    dataTypeId: type._id,
    values: { number: 'C', kind: 'k', city: 'c', debt: 1, since: '2024-01-01' },
  })
  const flow = (await ask(service, 'GET', '/flows?key=visit', { token })).data[0]
  const window = { from: '2026-01-01T08:00:00Z', to: '2026-01-01T10:00:00Z' }
  const task = await make('/task', { flowId: flow._id, title: 'Visit', hubId, lat: 52, lng: 21, priority: 5, window })
  const schedule = await make('/task/schedule', {
    name: 'S',
    flowId: flow._id,
    repeat: { period: 'yearly', at: '08:00' },
    timeZone: 'UTC',
    startTime: '2099-01-01T00:00:00Z',
    task: { title: 'Visit', hubId },
  })
  const role = await make('/role', {
    name: 'Clerk',
    permissions: ['view/data', 'view/data-type'],
    permissionDetails: [{ permissionName: 'view/data', dataTypeId: type._id, hiddenFields: ['debt', 'city'] }],
  })
  const password = 'Correct-horse-9-battery'
  await make('/user', { name: 'C', email: 'clerk@example.com', password, roleId: role._id, hubId: [hubId] })
  const login = await ask(service, 'POST', '/auth/login', { body: { email: 'clerk@example.com', password } })
  await service.stop()
  const keyOf = (name: string): string =>
    type.fields.find((field: { name: string }) => field.name === name)._id as string
  await seedRows(data, {
    stream: `data-${record._id}`,
    rows: records,
    values: (n) => ({ values: recordValues(keyOf, n) }),
  })
  const taskIds = await seedRows(data, {
    stream: `task-${task._id}`,
    rows,
    values: taskValues,
  })
  await seedRows(data, {
    stream: `schedule-${schedule._id}`,
    rows: Math.ceil(rows / 10),
    values: (n) => ({ name: `S ${n}` }),
  })
  return { owner: token, clerk: login.token, dataTypeId: type._id, taskIds }
}

/** Time of pages not requested before, one at a time. */
const firstTimes = async (service: Service, paths: string[], token: string) => {
  const times: number[] = []
  for (const path of paths) {
    const askedAt = performance.now()
    await ask(service, 'GET', path.slice('/api/v3'.length), { token })
    times.push(performance.now() - askedAt)
  }
  times.sort((a, b) => a - b)
  return {
    'median of those asked for the first time, ms': round(times[times.length >> 1]),
    'p99 of those asked for the first time, ms': round(times[Math.floor(times.length * 0.99)]),
  }
}

/** Delay of the latest timer since the last call. */
const loopDelayMs = async (service: Service): Promise<number> => {
  const { text } = await call(service, 'GET', '//metrics')
  return 1_000 * Number(/^waymark_event_loop_delay_seconds\{statistic="max"\} (\S+)/m.exec(text)?.[1])
}

/**
 * Latencies at an even pace, beside those of a bare handler at the same: on two cores generator, service, its collector
 * and its column store share them, so their wait for a core is in the times, as is the delay of the generator.
 */
const atPace = async (service: Service, plan: HttpPlan, perSecond: number, barePort: number) => {
  const bare = await driveHttp({ ...plan, port: barePort, perSecond })
  await settled(service)
  const pid = service.process.pid as number
  await loopDelayMs(service) // it counts from the last call
  const waitedBefore = waitedMsOf(pid)
  const { p50, p99, lateP99, waitedMs, refused } = await driveHttp({ ...plan, perSecond })
  const serviceWaitedMs = waitedMsOf(pid) - waitedBefore
  const loopMs = await loopDelayMs(service)
  const shown = {
    'p99, ms': round(p99),
    'median, ms': round(p50),
    'p99 of a bare handler, ms': round(bare.p99),
    'p99 of how late the generator sent, ms': round(lateP99),
    'waits for a core, ms a second': {
      service: round(serviceWaitedMs / (HALF_MS / 1000)),
      generator: round(waitedMs / (HALF_MS / 1000)),
    },
    'longest delay of the event loop, ms': round(loopMs),
  }
  return { shown, refused }
}

/** The maximal rate of the service, and the latencies at half of it and at half of the target. */
const mostAndHalf = async (
  service: Service,
  plan: HttpPlan,
  aimPerSecond: number,
  barePort: number,
): Promise<object> => {
  const bare = await driveHttp({ ...plan, port: barePort })
  const most = await driveHttp({ ...plan, warmupMs: FIRST_WARMUP_MS })
  const half = await atPace(service, plan, most.perSecond / 2, barePort)
  const halfAim = await atPace(service, plan, aimPerSecond / 2, barePort)
  return {
    'a second': Math.round(most.perSecond),
    share: round((100 * most.perSecond) / bare.perSecond) / 100,
    'at half of it': half.shown,
    [`at ${aimPerSecond / 2} a second`]: halfAim.shown,
    refused: most.refused + half.refused + halfAim.refused,
  }
}

const measure = async (service: Service, office: Office, barePort: number): Promise<object> => {
  const { owner, clerk, dataTypeId, taskIds } = office
  const of = `/api/v3/data?dataTypeId=${dataTypeId}&limit=20`
  const each = (count: number, path: (n: number) => string): string[] =>
    Array.from({ length: count }, (_, n) => path(n))
  const plan = { port: service.port, token: owner, method: 'GET' as const, connections, warmupMs: WARMUP_MS, measureMs }
  const table: { [name: string]: unknown } = {}
  const full = async (name: string, own: { paths: string[]; method?: 'PATCH'; member?: string }): Promise<void> => {
    const first = own.method === undefined ? await firstTimes(service, own.paths, owner) : {}
    const aim = own.method === undefined ? PAGES_AIM : COMMANDS_AIM
    table[name] = { ...(await mostAndHalf(service, { ...plan, ...own }, aim, barePort)), ...first }
  }
  const single = async (paths: string[], token: string) =>
    driveHttp({ ...plan, token, paths, connections: 1, perSecond: undefined })
  const pages = each(KINDS, (n) => {
    const day = dayOf(n * 3)
    return `/api/v3/tasks?state=${STATES[n % 4]}&from=${day}T00:00:00Z&to=${day}T23:59:59Z&sortBy=priority&limit=20`
  })
  await full('task pages of one day and state, by priority', { paths: pages })
  await full('task pages of a state, newest first', {
    paths: each(4, (n) => `/api/v3/tasks?state=${STATES[n]}&sortBy=createdAt&sortOrder=desc&limit=20`),
  })
  await full('task commands', {
    paths: taskIds.slice(0, CHANGED).map((id) => `/api/v3/task/${id}`),
    method: 'PATCH',
    member: 'title',
  })
  const questions: { [name: string]: string[] } = {
    'records of a kind': each(KINDS, (n) => `${of}&values.kind=kind%20${n}`),
    'records of a kind and a range of days': each(
      KINDS,
      (n) => `${of}&values.kind=kind%20${n}&values.since.from=${dayOf(n)}`,
    ),
    'records in a narrow range of debts': each(
      KINDS,
      (n) => `${of}&values.debt.from=${n * 400}&values.debt.to=${n * 400 + 40}`,
    ),
    'one record by its key': each(KINDS, (n) => `${of}&values.number=C-${n * 977}`),
    'records with two words': each(KINDS, (n) => `${of}&q=kind%20${n}`),
  }
  for (const [name, paths] of Object.entries(questions)) {
    const first = await firstTimes(service, paths, owner)
    const { p50, p99, refused } = await single(paths, owner)
    table[name] = {
      ...first,
      'median, ms': round(p50),
      'p99, ms': round(p99),
      refused,
    }
  }
  for (const name of ['records of a kind', 'records with two words']) {
    const [free, hidden] = [await single(questions[name], owner), await single(questions[name], clerk)]
    table[`${name}, with a hidden field`] = {
      'times the cost without': Math.round((100 * free.perSecond) / hidden.perSecond) / 100,
      refused: hidden.refused,
    }
  }
  return table
}

const data = mkdtempSync(join(tmpdir(), 'waymark-office-'))
const office = await seed(data)
const begun = performance.now()
const service = await startService(data, LIMITS, 0, undefined, LIMIT_MS)
const bare = await startBare()
try {
  const listed = round((performance.now() - begun) / 1000)
  await caughtUp(service)
  const all = round((performance.now() - begun) / 1000)
  const idle = await idleShare(service, IDLE_MS)
  const counts = {
    ...(await summaryTimes(service, office.owner, office.taskIds)),
    ...(await firstPages(service, office.owner)),
    ...(await bulkRate(service, office.owner)),
  }
  const table = { ...(isCountsOnly ? {} : await measure(service, office, bare.port)), ...counts }
  const first = {
    rows,
    'lists followed the log after, s': listed,
    'all consumers, s': all,
    'idle, with a tenth as many schedules, share of a core': Math.round(1000 * idle) / 1000,
  }
  process.stdout.write(`${JSON.stringify({ ...first, ...table }, undefined, 2)}\n`)
  await service.stop()
} finally {
  bare.child.kill()
  await service.kill()
  rmSync(data, { recursive: true, force: true })
}
