import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openLmdbEventLog } from '../src/engines/lmdb-log/lmdb-log.ts'
import { openLmdbTableStore } from '../src/engines/lmdb-tables/lmdb-tables.ts'
import { RecordWriter } from '../src/features/data/record-writer.ts'
import type { NotificationMade } from '../src/features/notifications/events.ts'
import { makeNotifications } from '../src/features/notifications/notification.ts'
import { TaskWriter } from '../src/features/tasks/task-writer.ts'
import type { JsonObject } from '../src/kernel/json.ts'
import { systemClock } from '../src/kernel/system-clock.ts'
import { idSource } from '../src/kit/commands/ids.ts'
import { RunningProjection } from '../src/kit/consumers/run-projection.ts'
import { formatTime } from '../src/kit/http/request-context.ts'
import { openKeyring } from '../src/kit/keys/keyring-file.ts'
import type { WriteOrigin } from '../src/kit/resource/writes.ts'
import { ProcessRunner } from '../src/processes/runner.ts'
import { TableDirectory } from '../src/reactors/dispatch/directory.ts'
import { Dispatcher } from '../src/reactors/dispatch/dispatcher.ts'
import { actionsOf, PROJECTIONS, resources } from '../src/product-parts.ts'
import { addTasks, automate, found, type Office, officeOf } from './support/action-office.ts'
import { cpuMs } from './support/measure.ts'

/**
 * Runs per second of automations that write here, for each kind: from new tasks in the log until the writes of the runs
 * are durable, the runs are recorded as succeeded, and the dispatcher has read all of it, with the real engines,
 * directory and actions. Beside each stands the same command given by this process without an automation, on tasks that
 * none concerns, as many at once: `node dist/bench/actions.bench.js [runs] [kind …] [--projections]`. With
 * `--projections` the tables follow in the same process meanwhile.
 */
const PARTITIONS = 16
const PLAIN_AT_ONCE = 128
const RECIPIENTS = 64

const [countSaid = '10000', ...kindsSaid] = process.argv.slice(2).filter((one) => !one.startsWith('--'))
const count = Number(countSaid)
const withProjections = process.argv.includes('--projections')

const folder = await mkdtemp(join(tmpdir(), 'waymark-actions-'))
const clock = systemClock
const logger = { debug() {}, info() {}, warn: console.warn, error: console.error }
const log = await openLmdbEventLog({ path: join(folder, 'log'), clock })
const tables = await openLmdbTableStore({ path: join(folder, 'tables'), clock })
const keyring = await openKeyring(join(folder, 'keys.json'))
const processes = new ProcessRunner({ log, tables, clock, logger })
const services = { log, tables, keyring, clock, logger, resources, processes }
const outside = (): never => {
  throw new Error('no automation of this bench goes out')
}
const actions = actionsOf({
  ...services,
  caller: { post: outside, fetch: outside, refusal: outside, close: async () => undefined },
  mailer: { send: outside } as never,
  publicUrl: 'https://map.example',
})
const taskWriter = new TaskWriter(services)
const recordWriter = new RecordWriter(services)

interface Kind {
  details: (office: Office) => JsonObject
  /** The same without an automation, for the n-th task. */
  plain: (office: Office, origin: WriteOrigin, n: number) => Promise<unknown>
}

const title = { ref: 'task.title' }
const bodyOf = ({ otherFlowId, hubId }: Office, n: number): JsonObject => ({
  ...{ flowId: otherFlowId, hubId, title: `Task ${n}` },
})
const KINDS: { [automationType: string]: Kind } = {
  updateTask: {
    details: () => ({ components: { count: { ref: 'task.priority' } } }),
    plain: (office, origin, n) => taskWriter.fill(origin, office.taskId(n), { count: n % 10 }),
  },
  moveTask: {
    details: ({ otherHubId }) => ({ hubId: otherHubId }),
    plain: ({ taskId, otherHubId: hubId }, origin, n) =>
      taskWriter.move(origin, taskId(n), formatTime(origin.now), { type: 'move', hubId }),
  },
  assignTask: {
    details: ({ userId }) => ({ assigneeIds: [userId] }),
    plain: ({ taskId, userId }, origin, n) =>
      taskWriter.move(origin, taskId(n), formatTime(origin.now), { type: 'assign', assigneeIds: [userId] }),
  },
  createTask: {
    details: ({ otherFlowId, hubId }) => ({ flowId: otherFlowId, hubId, task: { title } }),
    plain: (office, origin, n) => taskWriter.create(origin, bodyOf(office, n)),
  },
  createAndAssignTask: {
    details: ({ otherFlowId, hubId, userId }) => ({
      ...{ flowId: otherFlowId, hubId, assigneeIds: [userId], task: { title } },
    }),
    plain: (office, origin, n) => taskWriter.create(origin, { ...bodyOf(office, n), assigneeIds: [office.userId] }),
  },
  createOrUpdateDataSource: {
    details: ({ dataTypeId }) => ({ dataTypeId, values: { number: title } }),
    plain: ({ dataTypeId }, origin, n) => recordWriter.create(origin, { dataTypeId, values: { number: `Task ${n}` } }),
  },
  notification: {
    details: ({ userId }) => ({ channel: 'inApp', to: [userId], text: '{{task.title}}' }),
    plain: ({ id, organizationId, taskId, automationId }, { ids, metadata, now }, n) => {
      const userId = id('recipient', n % RECIPIENTS)
      const made: NotificationMade = {
        ...{ organizationId, userId, notificationId: id('notification', n) },
        ...{ text: `Task ${n}`, automationId, event: 'onTaskCreated', about: { type: 'task', id: taskId(n) } },
        at: formatTime(now),
      }
      return makeNotifications(log, userId, [made], { ids, metadata })
    },
  },
}

let running: RunningProjection[] = []
const project = async (): Promise<void> => {
  running = PROJECTIONS.map((projection) => new RunningProjection(projection, services))
  for (const one of running) await one.take()
  for (const one of running) await one.ready()
}
const rest = async (): Promise<void> => {
  for (const one of running.splice(0)) await one.leave()
}

let onDelivery: (outcome: string, many: number) => void = () => undefined

const openDispatcher = async (): Promise<Dispatcher> => {
  const dispatcher = new Dispatcher({
    ...services,
    actions,
    directory: new TableDirectory({ ...services, ages: { staleAfterMs: 1, offlineAfterMs: 2 }, inRollout: () => true }),
    partitions: PARTITIONS,
    scheduleMs: [5_000],
    maxAgeMs: 86_400_000,
    onDelivery: (outcome, many) => onDelivery(outcome, many),
  })
  await dispatcher.declare()
  for (let partition = 0; partition < PARTITIONS; partition++) await dispatcher.load(partition)
  return dispatcher
}

/** Resolves when the dispatcher has read the whole log. */
const heard = async (dispatcher: Dispatcher): Promise<void> => {
  while (dispatcher.lags(clock.now()).some(({ events }) => events > 0)) await new Promise((go) => setTimeout(go, 5))
}

interface Measured {
  perSecond: number
  cpuUs: number
}

const measured = async (many: number, work: () => Promise<unknown>): Promise<Measured> => {
  const begun = performance.now()
  const cpu = process.cpuUsage()
  await work()
  return { perSecond: (many * 1_000) / (performance.now() - begun), cpuUs: (cpuMs(cpu) * 1_000) / many }
}

/** Measures runs for this many new tasks. */
const runs = async (office: Office, first: number, many: number): Promise<Measured> => {
  let succeeded = 0
  let finish = (): void => undefined
  const finished = new Promise<void>((done) => (finish = done))
  onDelivery = (outcome, more) => {
    if (outcome !== 'succeeded') throw new Error(outcome)
    if ((succeeded += more) >= many) finish()
  }
  await addTasks(services, office, first, many)
  let dispatcher: Dispatcher | undefined
  const result = await measured(many, async () => {
    dispatcher = await openDispatcher()
    await finished
    await heard(dispatcher)
  })
  await dispatcher?.close()
  return result
}

const plain = async (office: Office, { plain: write }: Kind, first: number, many: number): Promise<Measured> => {
  await addTasks(services, office, first, many)
  let next = first
  const one = async (): Promise<void> => {
    for (let n = next++; n < first + many; n = next++) {
      const now = clock.now()
      const metadata = { organizationId: office.organizationId, actor: 'service:bench' }
      await write(office, { organizationId: office.organizationId, now, ids: idSource(now), metadata }, n)
    }
  }
  return measured(many, () => Promise.all(Array.from({ length: PLAIN_AT_ONCE }, one)))
}

const shown = ({ perSecond, cpuUs }: Measured): string => `${Math.round(perSecond)}/s, ${Math.round(cpuUs)} µs CPU`

for (const [name, kind] of Object.entries(KINDS)) {
  if (kindsSaid.length > 0 && !kindsSaid.includes(name)) continue
  const [office, aside] = [officeOf(name), officeOf(`plain ${name}`)]
  await project()
  for (const one of [office, aside]) await found(services, one)
  await (await openDispatcher()).close()
  await automate(services, office, name, kind.details(office))
  await rest()
  await project() // it has the whole log: the automation is listed
  if (!withProjections) await rest()
  const warm = Math.ceil(count / 2)
  await plain(aside, kind, 0, warm)
  const without = await plain(aside, kind, warm, count)
  await runs(office, 0, warm)
  const run = await runs(office, warm, count)
  console.log(
    `${name}: ${count} runs ${shown(run)} each; the same commands without automations ${shown(without)}; a run costs ${(run.cpuUs / without.cpuUs).toFixed(2)} of its command`,
  )
  await rest()
}
await log.close()
await tables.close()
await rm(folder, { recursive: true, force: true })
