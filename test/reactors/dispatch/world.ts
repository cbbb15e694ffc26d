import { join } from 'node:path'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { Webhook } from 'standardwebhooks'
import type { Test } from 'tap'
import { automations } from '../../../projections/automations.ts'
import { HistoryErasures } from '../../../projections/erasures.ts'
import { decodeRuns, RunsHistory } from '../../../projections/runs-history.ts'
import { openChdbHistoryStore } from '../../../src/engines/chdb/chdb-history.ts'
import { openSchema } from '../../../src/engines/clickhouse-sql/history-schema.ts'
import { HistoryRows } from '../../../src/engines/clickhouse-sql/rows.ts'
import { AUTOMATION_CREATED, runsStream } from '../../../src/features/automations/events.ts'
import { undiciCaller, type UndiciCallerOptions } from '../../../src/engines/undici/undici-caller.ts'
import { automationRoutes } from '../../../src/features/automations/api.ts'
import { automationResource } from '../../../src/features/automations/declaration.ts'
import { AUTOMATION_RUNS, type RunRow } from '../../../src/features/automations/views.ts'
import { automationRunRoutes } from '../../../src/features/automations/runs-api.ts'
import { dataType } from '../../../src/features/data/data-type.ts'
import { flow } from '../../../src/features/flows/flow.ts'
import { geofence } from '../../../src/features/geofences/declaration.ts'
import { geofenceGroup } from '../../../src/features/geofences/group.ts'
import { hub } from '../../../src/features/hubs/hub.ts'
import { role } from '../../../src/features/identity/users/role.ts'
import { user } from '../../../src/features/identity/users/user.ts'
import { team } from '../../../src/features/teams/team.ts'
import { tracker } from '../../../src/features/trackers/declaration.ts'
import { vehicle } from '../../../src/features/vehicles/vehicle.ts'
import { DECIDED, transitionStream, type Decided, type Decision } from '../../../src/features/transitions/events.ts'
import type { UserCaller } from '../../../src/kernel/caller.ts'
import { encodeJson } from '../../../src/kernel/event.ts'
import { idSource } from '../../../src/kit/commands/ids.ts'
import { PartitionFeed } from '../../../src/kit/consumers/partition-feed.ts'
import type { Clock } from '../../../src/kernel/clock.ts'
import { webhookAction } from '../../../src/reactors/dispatch/actions/webhook.ts'
import { Dispatcher } from '../../../src/reactors/dispatch/dispatcher.ts'
import { isFired } from '../../../src/reactors/dispatch/subject-event.ts'
import { dryRun } from '../../../src/reactors/dispatch/dry-run.ts'
import type { Directory } from '../../../src/reactors/dispatch/directory.ts'
import { SubjectRows } from '../../../src/reactors/dispatch/subject-rows.ts'
import { decodeTransition } from '../../../src/reactors/dispatch/owe.ts'
import { routeCaller } from '../../support/call-route.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { keepErrors, openServices, startProjections } from '../../support/open-services.ts'
import { until } from '../../support/service.ts'
import { folderOf } from '../../support/folder-of.ts'

export const ORG = '0190f3a2-0000-7000-8000-00000000000a'
export const GROUP = '0190f3a2-0000-7000-8000-0000000000a1'
const GEOFENCE = '0190f3a2-0000-7000-8000-0000000000f1'
export const GROUPS = 'geofenceGroups'

export const trackerId = (n: number): string => `0190f3a2-0000-7000-8000-${String(n).padStart(12, '0')}`

export const owner: UserCaller = {
  kind: 'user',
  organizationId: ORG,
  userId: 'u1',
  identityId: 'i1',
  email: 'o@example.com',
  jti: 'j',
  expiresAt: 0,
  roleId: 'r',
  roleKey: 'owner',
  permissions: new Set([
    'view/automation',
    'edit/automation',
    'view/geofence',
    'view/tracker',
    'view/user',
    'view/location-history',
  ]),
  permissionDetails: [],
  hubIds: 'all',
  teamIds: [],
}

/** What the events of a test refer to; tests change it. */
export class KnownThings implements Directory {
  readonly editors = new Map<string, UserCaller>([[owner.userId, owner]])
  readonly hubIds = new Map<string, string[]>()
  trackerName = 'Bus'

  async tracker(organizationId: string, _id: string) {
    return {
      shown: { _id, organizationId, name: this.trackerName, kind: 'device' },
      hubIds: this.hubIds.get(_id) ?? ['h1'],
      userId: 'driver',
    }
  }

  readonly visibleTrackers = async ({ hubIds }: UserCaller) =>
    hubIds === 'all'
      ? 'all'
      : [...this.hubIds].filter(([, hubs]) => hubs.some((hub) => hubIds.includes(hub))).map(([id]) => id)

  async user(_: string, _id: string) {
    return { _id, name: 'Driver', email: 'driver@example.com' }
  }

  async geofence(_: string, _id: string) {
    return { _id, name: 'Yard', geofenceGroupId: GROUP, geometry: { type: 'Polygon', coordinates: [] } }
  }

  async editor(_: string, userId: string) {
    return this.editors.get(userId)
  }

  isRolledOut = true

  inRollout(): boolean {
    return this.isRolledOut
  }

  readonly subjects = {
    rows: new SubjectRows({ read: async () => [], head: async () => -1 }),
    row: async () => undefined,
  }

  tripToken(): string {
    return 'token'
  }
}

export interface Seen {
  id: string
  at: number
  headers: IncomingMessage['headers']
  // biome-ignore lint/suspicious/noExplicitAny: the body of any event
  body: any
  status: number
}

/** A receiver whose answers the test decides; `undefined` hangs. */
export const openHook = async (
  t: Test,
  answer: (seen: Omit<Seen, 'status'>, response: ServerResponse) => number | undefined = () => 204,
) => {
  const hook = {
    url: '',
    port: 0,
    seen: [] as Seen[],
    secrets: new Map<string, string>(),
    bad: [] as string[],
    /** Calls that it leaves without an answer. */
    hanging: 0,
    answer,
    ids: () => [...new Set(hook.seen.map(({ id }) => id))],
  }
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString()
      const body = JSON.parse(text)
      const seen = {
        id: String(request.headers['webhook-id']),
        at: Number(request.headers['webhook-timestamp']),
        headers: request.headers,
        body,
      }
      const secret = hook.secrets.get(body.data.automationId)
      if (secret !== undefined && !isSigned(secret, text, request.headers)) hook.bad.push(seen.id)
      const status = hook.answer(seen, response)
      hook.seen.push({ ...seen, status: status ?? 0 })
      if (status !== undefined) return response.writeHead(status).end('noted')
      hook.hanging++
      response.on('close', () => hook.hanging--)
    })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  hook.port = (server.address() as { port: number }).port
  hook.url = `http://127.0.0.1:${hook.port}/hook`
  return hook
}

type Hook = Awaited<ReturnType<typeof openHook>>

/** The reference library refuses timestamps that are not near the real time, so a held clock is looked at without it. */
const isSigned = (secret: string, text: string, headers: IncomingMessage['headers']): boolean => {
  const timestamp = Number(headers['webhook-timestamp'])
  const signature = new Webhook(secret).sign(String(headers['webhook-id']), new Date(timestamp * 1000), text)
  return String(headers['webhook-signature']).split(' ').includes(signature)
}

export interface WorldOptions {
  folder?: string
  clock?: Clock
  scheduleMs?: number[]
  maxAgeMs?: number
  waitingMax?: number
  partitions?: number
  lookup?: UndiciCallerOptions['lookup']
  allow?: string[]
  known?: KnownThings
}

/** Automations, what their events show, and all that either names. */
const RESOURCES = [automationResource, geofenceGroup, geofence, tracker, user, role, team, vehicle, flow, hub, dataType]

/** More than any test lets pass. */
const STEPS_MAX = 20_000

export const SCHEDULE_MS = [5_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000, 36_000_000]

/** The dispatcher on real engines, from transitions to receivers; what feeds it is appended by the test. */
export const openWorld = async (t: Test, options: WorldOptions = {}) => {
  const folder = options.folder ?? folderOf(t)
  const services = await openServices(folder, (options.clock ?? new FakeClock()) as FakeClock, RESOURCES)
  const { log, tables, clock, keyring } = services
  const { runner, settle } = await startProjections(services, [automations])
  const history = await openChdbHistoryStore({ path: join(folder, 'history'), scratchPath: join(folder, 'scratch') })
  await openSchema(history, { days: 36_500, runDays: 36_500 })
  await tables.declare({ name: GROUPS, version: 1 })
  await tables.commit([{ table: GROUPS, scope: ORG, id: GROUP, row: { _id: GROUP } }])
  const caller = undiciCaller({ clock, allow: options.allow ?? ['127.0.0.0/8'], lookup: options.lookup })
  const actions = { webhook: webhookAction({ ...services, caller }) }
  const known = options.known ?? new KnownThings()
  const counted: { [outcome: string]: number } = {}
  const dispatcher = new Dispatcher({
    ...services,
    actions,
    directory: known,
    automationsListed: (position, timeoutMs) => settle({ position, types: [AUTOMATION_CREATED] }, timeoutMs),
    scheduleMs: options.scheduleMs ?? SCHEDULE_MS,
    maxAgeMs: options.maxAgeMs ?? 86_400_000,
    waitingMax: options.waitingMax,
    retentionMs: 30 * 86_400_000,
    onDelivery: (outcome, count) => (counted[outcome] = (counted[outcome] ?? 0) + count),
  })
  await dispatcher.declare()
  const failures: unknown[] = []
  const feed = new PartitionFeed({
    log,
    streamOf: transitionStream,
    decode: decodeTransition,
    logger: keepErrors(failures),
  })
  const partitions = options.partitions ?? 1
  const runsFeed = new PartitionFeed({ log, streamOf: runsStream, decode: decodeRuns, logger: keepErrors(failures) })
  const erasures = new HistoryErasures({ ...services, history })
  const onFailure = (error: unknown) => failures.push(error)
  const runsHistory = new RunsHistory({ ...services, history, erasures, epoch: 0, onFailure })
  /** All that the log says of runs can be read. */
  const listing = async (): Promise<void> => {
    for (let p = 0; p < partitions; p++)
      await until('runs to be listed', async () => {
        await runsHistory.flush()
        return (await log.head(runsStream(p))) <= runsHistory.storedThrough(p)
      })
  }
  const listed = new HistoryRows(history, clock, listing)
  const routes = [
    ...automationRoutes({
      ...services,
      actions,
      inRollout: () => known.isRolledOut,
      editor: (...asked) => known.editor(...asked),
      isFired,
      dryRun: (row, asked) => dryRun({ keyring, directory: known, actions }, row, asked),
    }),
    ...automationRunRoutes({ ...services, listed, visibleTrackers: known.visibleTrackers }),
  ]
  const answer = routeCaller({ routes, clock, settle })
  const call: typeof answer = async (method, path, request) => {
    if (path.startsWith('/automation-log')) await listing()
    return answer(method, path, request)
  }
  for (let p = 0; p < partitions; p++) {
    await runsFeed.add(runsHistory, p)
    await feed.add(dispatcher, p)
  }
  const hooks = new Set<Hook>()
  let isOpen = true
  const world = {
    ...services,
    history,
    actions,
    folder,
    known,
    runner,
    dispatcher,
    call,
    counted,
    failures,
    caller,
    feed,
    /** Resolves when nothing goes on by itself any more: all is owed, and what is under way hangs at a receiver. */
    settled: async () => {
      const hanging = (): number => [...hooks].reduce((sum, hook) => sum + hook.hanging, 0)
      for (let turns = 0; turns < 3; turns++) await new Promise((resume) => setImmediate(resume)) // calls that time has just ended
      await until('the dispatcher to rest', async () => {
        const isOwed = (await feed.lags(clock.now())).every(({ events }) => events === 0)
        const { attempts, isReading } = dispatcher.activity
        return isOwed && !isReading && attempts === hanging()
      })
    },
    /** Ends like a crash as far as the dispatcher is concerned: nothing is stored any more. */
    end: async (isCrash = false) => {
      if (!isOpen) return
      isOpen = false
      await feed.close()
      if (!isCrash) await dispatcher.close()
      else await dispatcher.abandon()
      await runsFeed.close()
      await runsHistory.close()
      await history.close()
      await caller.close()
      await runner.close()
      await services.close()
    },
    decide: async (decisions: Decision[], { partition = 0, sourceLoggedAt = clock.now(), sourceRevision = 0 } = {}) => {
      const decided: Decided = { sourceRevision, ordinal: 0, sourceLoggedAt, decisions }
      const data = encodeJson(decided)
      const event = { id: idSource(clock.now()).next(), type: DECIDED, data, isJson: true, metadata: {} }
      const { revision, position } = await log.append(transitionStream(partition), [event], 'any')
      feed.offer(partition, revision, clock.now(), { revision, position, decided })
    },
    webhook: async (hook: Hook, more: object = {}) => {
      hooks.add(hook)
      const answer = await call('POST', '/automation', { caller: owner, body: { ...webhookBody(hook.url), ...more } })
      if (answer.status !== 201) throw new Error(JSON.stringify(answer.body))
      hook.secrets.set(answer.body.data._id, answer.body.data.automationDetails.secret)
      return answer.body.data
    },
    runs: async (): Promise<RunRow[]> => {
      await listing()
      const sort = { field: 'createdAt', order: 'asc' } as const
      const { rows } = await listed.find<RunRow>(AUTOMATION_RUNS.name, ORG, { sort, limit: 9_999 })
      return rows.map(({ row }) => row)
    },
  }
  t.teardown(() => world.end())
  return world
}

export const webhookBody = (url: string) => ({
  name: 'Hook',
  event: 'onGeofenceEntry',
  automationType: 'webhook',
  automationDetails: { url, headers: [{ key: 'x-event', value: 'entry' }] },
  rules: { fields: { geofenceGroupId: GROUP } },
})

let made = 0

/** An entry of a tracker, at a time. */
export const entry = (at: number, tracker = 1, more: object = {}): Decision => ({
  kind: 'transition',
  _id: `transition-${++made}`,
  organizationId: ORG,
  trackerId: trackerId(tracker),
  geofenceId: GEOFENCE,
  geofenceGroupId: GROUP,
  type: 'entry',
  at,
  cause: 'point',
  point: { recordedAt: at, lat: 52.2, lng: 21 },
  ...more,
})

/** Lets time pass step by step, each time when nothing goes on any more that needs no time. */
export const advanceUntil = async (
  world: { clock: FakeClock; settled(): Promise<void> },
  stepMs: number,
  check: () => boolean | Promise<boolean>,
): Promise<void> => {
  for (let steps = 0; ; steps++) {
    await world.settled()
    if (await check()) return
    if (steps > STEPS_MAX) throw new Error('the time that passed changed nothing')
    world.clock.advance(stepMs)
  }
}

export const tripFinished = (at: number, tracker = 1): Decision => ({
  kind: 'tripFinished',
  _id: `trip-${++made}`,
  organizationId: ORG,
  trackerId: trackerId(tracker),
  explicit: false,
  startedAt: at - 60_000,
  finishedAt: at,
  distance: 1234,
  point: { recordedAt: at, lat: 52.2, lng: 21 },
})
