import { fork } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { automations } from '../projections/automations.ts'
import { openLmdbEventLog } from '../src/engines/lmdb-log/lmdb-log.ts'
import { undiciCaller } from '../src/engines/undici/undici-caller.ts'
import { openLmdbTableStore } from '../src/engines/lmdb-tables/lmdb-tables.ts'
import { automationStream, AUTOMATION_CREATED, type AutomationCreated } from '../src/features/automations/events.ts'
import { newSecret, sealDetails, sealSecret } from '../src/features/automations/sealed.ts'
import { DECIDED, transitionStream, type Decided, type Decision } from '../src/features/transitions/events.ts'
import type { UserCaller } from '../src/kernel/caller.ts'
import { encodeJson } from '../src/kernel/event.ts'
import { systemClock } from '../src/kernel/system-clock.ts'
import { idFrom, idSource } from '../src/kit/commands/ids.ts'
import { openKeyring } from '../src/kit/keys/keyring-file.ts'
import { PartitionFeed } from '../src/kit/consumers/partition-feed.ts'
import { RunningProjection } from '../src/kit/consumers/run-projection.ts'
import { webhookAction } from '../src/reactors/dispatch/actions/webhook.ts'
import { Dispatcher } from '../src/reactors/dispatch/dispatcher.ts'
import type { Directory } from '../src/reactors/dispatch/directory.ts'
import { SubjectRows } from '../src/reactors/dispatch/subject-rows.ts'
import { decodeTransition } from '../src/reactors/dispatch/owe.ts'

/**
 * Deliveries per second to a fast receiver in a process of its own, from transitions in the log to runs recorded as
 * succeeded: `node dist/bench/dispatch.bench.js [automations] [transitions]`.
 */
const PARTITIONS = 4
const PER_EVENT = 50
const organizationId = idFrom('bench', 'organization')
const geofenceGroupId = idFrom('bench', 'group')
const editor: UserCaller = {
  kind: 'user',
  organizationId,
  userId: 'u',
  identityId: 'i',
  email: '',
  jti: '',
  expiresAt: 0,
  roleId: 'r',
  permissions: new Set(['view/geofence', 'view/tracker']),
  permissionDetails: [],
  hubIds: 'all',
  teamIds: [],
}
const directory: Directory = {
  subjects: { rows: new SubjectRows({ read: async () => [], head: async () => -1 }), row: async () => undefined },
  tracker: async (_, _id) => ({
    shown: {
      _id,
      organizationId,
      name: 'Bus',
      kind: 'device',
      createdAt: '2026-01-01T00:00:00.000Z',
      status: 'online',
    },
    hubIds: [],
  }),
  user: async () => undefined,
  geofence: async (_, _id) => ({ _id, organizationId, name: 'Yard', geofenceGroupId, attributes: { dock: 7 } }),
  editor: async () => editor,
  inRollout: () => true,
  tripToken: () => '',
}

if (process.argv[2] === 'receiver') {
  const server = createServer((request, response) => request.resume().on('end', () => response.writeHead(204).end()))
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as { port: number }).port))
} else {
  await measure(Number(process.argv[2] ?? 4), Number(process.argv[3] ?? 5_000))
}

async function measure(automationCount: number, transitions: number): Promise<void> {
  const receiver = fork(process.argv[1], ['receiver'])
  const port = await new Promise<number>((found) => receiver.once('message', (message) => found(message as number)))
  const folder = await mkdtemp(join(tmpdir(), 'waymark-dispatch-'))
  const engines = await openEngines(folder)
  const { log, tables } = engines
  for (let i = 0; i < automationCount; i++) await addAutomation(engines, i, port)
  const running = [new RunningProjection(automations, engines)]
  for (const projection of running) await projection.take()
  for (const projection of running) await projection.ready()
  for (let from = 0; from < transitions; from += PER_EVENT) await addTransitions(engines, from)
  const total = transitions * automationCount
  const begun = performance.now()
  const cpu = process.cpuUsage()
  const close = await deliverAll(engines, total)
  const seconds = (performance.now() - begun) / 1000
  const { user, system } = process.cpuUsage(cpu)
  console.log(
    `${total} deliveries, ${automationCount} automations: ${Math.round(total / seconds)}/s, ${((user + system) / total).toFixed(0)} µs CPU each, all threads`,
  )
  await close()
  for (const projection of running) await projection.leave()
  await log.close()
  await tables.close()
  receiver.kill()
  await rm(folder, { recursive: true, force: true })
}

async function openEngines(folder: string) {
  const clock = systemClock
  const log = await openLmdbEventLog({ path: join(folder, 'log'), clock })
  const tables = await openLmdbTableStore({ path: join(folder, 'tables'), clock })
  const keyring = await openKeyring(join(folder, 'keys.json'))
  return { log, tables, keyring, clock, logger: { debug() {}, info() {}, warn: console.warn, error: console.error } }
}

type Engines = Awaited<ReturnType<typeof openEngines>>

async function addAutomation({ log, keyring, clock }: Engines, i: number, port: number): Promise<void> {
  const _id = idFrom('bench', 'automation', i)
  const details = sealDetails(keyring, { url: `http://127.0.0.1:${port}/hook`, headers: [{ key: 'x-a', value: '1' }] })
  const rules = { fields: { geofenceGroupId }, schema: {} }
  const content = {
    name: `Hook ${i}`,
    event: 'onGeofenceEntry' as const,
    dataType: 'locationHistory',
    automationType: 'webhook',
    details,
    rules,
    isActive: true,
  }
  const data: AutomationCreated = {
    _id,
    organizationId,
    content,
    secret: sealSecret(keyring, newSecret(keyring, 'bench')),
    editorId: 'u',
    at: clock.now() - 60_000,
  }
  await log.append(
    automationStream(_id),
    [{ id: idFrom(_id), type: AUTOMATION_CREATED, data: encodeJson(data), isJson: true, metadata: { organizationId } }],
    'none',
  )
}

async function addTransitions({ log, clock }: Engines, from: number): Promise<void> {
  const at = clock.now()
  const decisions = Array.from({ length: PER_EVENT }, (_, k): Decision => {
    const trackerId = idFrom('bench', 'tracker', (from + k) % 1_000)
    const point = { recordedAt: at, lat: 52.2, lng: 21, speed: 8.3, heading: 90, accuracy: 5 }
    return {
      kind: 'transition',
      _id: idFrom('bench', from + k),
      organizationId,
      trackerId,
      geofenceId: idFrom('fence', k),
      geofenceGroupId,
      type: 'entry',
      at,
      cause: 'point',
      point,
    }
  })
  const data: Decided = { sourceRevision: from, ordinal: 0, sourceLoggedAt: at, decisions }
  const event = { id: idSource(at).next(), type: DECIDED, data: encodeJson(data), isJson: true, metadata: {} }
  await log.append(transitionStream((from / PER_EVENT) % PARTITIONS), [event], 'any')
}

async function deliverAll(engines: Engines, total: number): Promise<() => Promise<void>> {
  const { log, tables, clock } = engines
  const caller = undiciCaller({ clock, allow: ['127.0.0.0/8'] })
  let succeeded = 0
  let finish: () => void
  const finished = new Promise<void>((done) => (finish = done))
  const onDelivery = (outcome: string, count: number): void => {
    if (outcome === 'succeeded' && (succeeded += count) >= total) finish()
  }
  const dispatcher = new Dispatcher({
    ...engines,
    tables,
    actions: { webhook: webhookAction({ ...engines, caller }) },
    directory,
    scheduleMs: [5_000],
    maxAgeMs: 86_400_000,
    onDelivery,
  })
  await dispatcher.declare()
  const feed = new PartitionFeed({
    log,
    streamOf: transitionStream,
    decode: decodeTransition,
    logger: engines.logger,
  })
  for (let partition = 0; partition < PARTITIONS; partition++) await feed.add(dispatcher, partition)
  await finished
  return async () => {
    await feed.close()
    await dispatcher.close()
    await caller.close()
  }
}
