import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openLmdbEventLog } from '../src/engines/lmdb-log/lmdb-log.ts'
import { openLmdbTableStore } from '../src/engines/lmdb-tables/lmdb-tables.ts'
import { AUTOMATION_CREATED, type AutomationCreated, automationStream } from '../src/features/automations/events.ts'
import { newSecret, sealDetails, sealSecret } from '../src/features/automations/sealed.ts'
import { ACCESS_ROLES, ACCESS_USERS } from '../src/features/identity/views.ts'
import { encodeJson } from '../src/kernel/event.ts'
import { systemClock } from '../src/kernel/system-clock.ts'
import { eventTypes } from '../src/kit/commands/declared-event.ts'
import { idFrom, idSource } from '../src/kit/commands/ids.ts'
import { RunningProjection } from '../src/kit/consumers/run-projection.ts'
import { openKeyring } from '../src/kit/keys/keyring-file.ts'
import { ProcessRunner } from '../src/processes/runner.ts'
import { updateTaskAction } from '../src/reactors/dispatch/actions/change-task.ts'
import { TableDirectory } from '../src/reactors/dispatch/directory.ts'
import { Dispatcher } from '../src/reactors/dispatch/dispatcher.ts'
import { PROJECTIONS, resources } from '../src/roles/product.ts'
import { cpuMs } from './support/measure.ts'

/**
 * Runs per second of automations that write here: from tasks in the log to their components filled in and the runs
 * recorded as succeeded, with the real engines and directory: `node dist/bench/actions.bench.js [tasks] [--projections]`.
 * With `--projections` the tables follow in the same process meanwhile.
 */
const PARTITIONS = 16
const organizationId = idFrom('bench', 'organization')
const flowId = idFrom('bench', 'flow')
const userId = idFrom('bench', 'user')
const roleId = idFrom('bench', 'role')
const hubId = idFrom('bench', 'hub')
const at = '2026-01-01T00:00:00.000Z'

const tasks = Number(process.argv[2] ?? 20_000)
const withProjections = process.argv.includes('--projections')

const folder = await mkdtemp(join(tmpdir(), 'waymark-actions-'))
const clock = systemClock
const logger = { debug() {}, info() {}, warn: console.warn, error: console.error }
const log = await openLmdbEventLog({ path: join(folder, 'log'), clock })
const tables = await openLmdbTableStore({ path: join(folder, 'tables'), clock })
const keyring = await openKeyring(join(folder, 'keys.json'))
const services = {
  log,
  tables,
  keyring,
  clock,
  logger,
  resources,
  processes: new ProcessRunner({ log, tables, clock, logger }),
}
const ids = idSource(clock.now())

const append = (stream: string, type: string, data: object): Promise<unknown> =>
  log.append(
    stream,
    [{ id: ids.next(), type, data: encodeJson(data), isJson: true, metadata: { organizationId } }],
    'none',
  )

const prepare = async (): Promise<RunningProjection[]> => {
  const component = { id: 'count', type: 'number', label: 'Count' }
  const flow = {
    name: 'Flow',
    isActive: true,
    steps: [{ id: 'one', name: 'One', components: [component] }],
    needsDataType: false,
    dataTypeIds: [],
  }
  await append(`flow-${flowId}`, eventTypes('flow').created, { organizationId, values: flow, createdAt: at, at })
  const automationId = idFrom('bench', 'automation')
  const data: AutomationCreated = {
    _id: automationId,
    organizationId,
    content: {
      name: 'Fill in',
      event: 'onTaskCreated',
      dataType: 'task',
      automationType: 'updateTask',
      details: sealDetails(keyring, { components: { count: { ref: 'task.priority' } } }),
      rules: { fields: { 'task.flowId': flowId }, schema: {} },
      isActive: true,
    },
    secret: sealSecret(keyring, newSecret(keyring, 'bench')),
    editorId: userId,
    at: clock.now() - 60_000,
  }
  await append(automationStream(automationId), AUTOMATION_CREATED, data)
  const running = PROJECTIONS.map((projection) => new RunningProjection(projection, services))
  for (const one of running) await one.take()
  for (const one of running) await one.ready()
  const user = {
    _id: userId,
    organizationId,
    status: 'active',
    roleId,
    hubId: [hubId],
    teamIds: [],
    identityId: 'i',
    version: 1,
  }
  const role = {
    _id: roleId,
    organizationId,
    name: 'Owner',
    permissions: ['view/task', 'edit/task', 'dispatch/task', 'view/all-hubs'],
    permissionDetails: [],
    version: 1,
  }
  await tables.commit([
    { table: ACCESS_USERS.name, scope: organizationId, id: userId, row: user },
    { table: ACCESS_ROLES.name, scope: organizationId, id: roleId, row: role },
  ])
  return running
}

const addTask = (n: number): Promise<unknown> => {
  const values = {
    flowId,
    flowVersion: 1,
    title: `Task ${n}`,
    hubId,
    assigneeIds: [],
    tags: [],
    components: {},
    priority: n % 10,
    state: 'new',
    createdBy: { type: 'user', id: userId },
  }
  const now = new Date(clock.now()).toISOString()
  return append(`task-${idFrom('bench', 'task', n)}`, eventTypes('task').created, {
    organizationId,
    values,
    createdAt: now,
    at: now,
  })
}

let succeeded = 0
let finish = (): void => undefined
const finished = new Promise<void>((done) => (finish = done))

const open = async (): Promise<Dispatcher> => {
  const dispatcher = new Dispatcher({
    ...services,
    actions: { updateTask: updateTaskAction(services) },
    directory: new TableDirectory({ ...services, ages: { staleAfterMs: 1, offlineAfterMs: 2 }, inRollout: () => true }),
    partitions: PARTITIONS,
    scheduleMs: [5_000],
    maxAgeMs: 86_400_000,
    onDelivery: (outcome, count) => {
      if (outcome !== 'succeeded') throw new Error(outcome)
      if ((succeeded += count) >= tasks) finish()
    },
  })
  await dispatcher.declare()
  for (let partition = 0; partition < PARTITIONS; partition++) await dispatcher.load(partition)
  return dispatcher
}

const running = await prepare()
await (await open()).close()
if (!withProjections) for (const one of running) await one.leave()
for (let from = 0; from < tasks; from += 500)
  await Promise.all(Array.from({ length: Math.min(500, tasks - from) }, (_, i) => addTask(from + i)))
const begun = performance.now()
const cpu = process.cpuUsage()
const dispatcher = await open()
await finished
const seconds = (performance.now() - begun) / 1000
console.log(
  `${tasks} runs that update their task${withProjections ? ', the tables following' : ''}: ${Math.round(tasks / seconds)}/s, ${((cpuMs(cpu) * 1000) / tasks).toFixed(0)} µs CPU each, all threads`,
)
await dispatcher.close()
if (withProjections) for (const one of running) await one.leave()
await log.close()
await tables.close()
await rm(folder, { recursive: true, force: true })
