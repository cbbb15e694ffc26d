import type { Test } from 'tap'
import { directory } from '../../projections/directory.ts'
import { LatestPositions } from '../../projections/latest-position.ts'
import { Batcher, BATCHER_LIMITS } from '../../src/features/locations/ingest/batcher.ts'
import { bulkRoute } from '../../src/features/locations/ingest/bulk-api.ts'
import { locationStream, partitionOf, type LocationEntry } from '../../src/features/locations/events.ts'
import { ingestChannel } from '../../src/features/locations/ingest/channel.ts'
import { PointStore } from '../../src/features/locations/ingest/store.ts'
import { compileQuery } from '../../src/kit/http/compile-query.ts'
import { assertValid } from '../../src/kit/http/validate.ts'
import { livePositionsRoute } from '../../src/features/locations/live-positions-api.ts'
import { locationEntry } from '../../src/features/locations/location-entry.ts'
import { LATEST_POSITIONS } from '../../src/features/locations/views.ts'
import { hub } from '../../src/features/hubs/hub.ts'
import { organization } from '../../src/features/identity/organizations/organization.ts'
import { role } from '../../src/features/identity/users/role.ts'
import { user } from '../../src/features/identity/users/user.ts'
import { team } from '../../src/features/teams/team.ts'
import { trackerRoutes } from '../../src/features/trackers/api.ts'
import { DeviceAuthenticator } from '../../src/features/trackers/device-authenticator.ts'
import { ingestKey, tracker } from '../../src/features/trackers/declaration.ts'
import { KnownTrackers } from '../../src/features/trackers/known-trackers.ts'
import { statusAt } from '../../src/features/trackers/status.ts'
import { Quotas } from '../../src/kit/quotas/quotas.ts'
import { TrackerWriter } from '../../src/features/trackers/tracker-writer.ts'
import { watchTrackers, type DeviceAccessChange } from '../../src/features/trackers/watch-trackers.ts'
import { vehicle } from '../../src/features/vehicles/vehicle.ts'
import { announceDeletions } from '../../src/reactors/announce/deletions.ts'
import type { UserCaller } from '../../src/kernel/caller.ts'
import { appendFacts } from '../../src/kit/commands/handle-command.ts'
import { idFrom, idSource } from '../../src/kit/commands/ids.ts'
import { PartitionFeed } from '../../src/kit/consumers/partition-feed.ts'
import type { Method } from '../../src/kit/http/route.ts'
import { routeCaller } from './call-route.ts'
import { FakeClock } from './fake-clock.ts'
import { connect } from './ingest.ts'
import { keepErrors, openServices, startProjections } from './open-services.ts'
import { folderOf } from './folder-of.ts'

export const PARTITIONS = 4
export const ORG = idFrom('organization', 'a')
const AGES = { staleAfterMs: 5 * 60_000, offlineAfterMs: 3_600_000 }
const DAY_MS = 86_400_000
const RESOURCES = [organization, role, user, hub, team, vehicle, tracker, ingestKey]
const PERMISSIONS = ['view/tracker', 'edit/tracker', 'view/location-history']

export const userCaller = (fields: Partial<UserCaller> = {}): UserCaller => ({
  kind: 'user',
  organizationId: ORG,
  userId: idFrom('user', 'admin'),
  identityId: 'i',
  email: 'a@example.com',
  jti: 'j',
  expiresAt: Number.MAX_SAFE_INTEGER,
  roleId: 'r',
  permissions: new Set(PERMISSIONS),
  permissionDetails: [],
  hubIds: 'all',
  teamIds: [],
  ...fields,
})

/** Trackers and the whole way of points to their latest positions, over the embedded engines and a clock that stands still. */
export const openTrackers = async (t: Test, { trackersMax = 100_000 } = {}) => {
  const opened = await openServices(folderOf(t), new FakeClock(), RESOURCES)
  const limit = { name: 'trackers', thing: 'trackers', max: trackersMax, table: 'trackers', consumer: 'directory' }
  const services = { ...opened, quotas: new Quotas(opened, [limit]) }
  const { log, tables, clock, keyring, logger } = services
  const { runner, settle } = await startProjections(services, [directory(RESOURCES.map(({ rows }) => rows))])
  await tables.declare(LATEST_POSITIONS)
  const writer = new TrackerWriter({ ...services, settle, partitions: PARTITIONS })
  const known = new KnownTrackers({
    tables,
    writer,
    clock,
    partitionOf: (trackerId) => partitionOf(trackerId, PARTITIONS),
  })
  const devices = new DeviceAuthenticator(tables, keyring)
  const changes: DeviceAccessChange[] = []
  const onAccessChanged = (change: DeviceAccessChange): void => void changes.push(change)
  const watching = await watchTrackers(services, 'watch', { known, devices, onAccessChanged })

  const failures: unknown[] = []
  const latest = new LatestPositions({
    tables,
    clock,
    partitions: PARTITIONS,
    onFailure: (error) => failures.push(error),
  })
  const feed = new PartitionFeed<LocationEntry>({
    log,
    streamOf: locationStream,
    decode: locationEntry,
    logger: keepErrors(failures),
  })
  for (let p = 0; p < PARTITIONS; p++) await feed.add(latest, p)
  const announcer = await announceDeletions({ ...services, partitions: PARTITIONS }, 0)
  const batcher = new Batcher({
    log,
    clock,
    logger,
    partitions: PARTITIONS,
    limits: BATCHER_LIMITS,
    startAppendTimer: () => () => {},
    onAppended: (entry) => feed.offer(entry.partition, entry.revision, clock.now(), entry),
  })
  const ingest = new PointStore({ batcher, resolver: known, clock, logger, retentionMs: 365 * DAY_MS, count: () => {} })
  const channel = ingestChannel(ingest)
  const routes = [
    ...trackerRoutes({ ...services, writer, ages: AGES, partitions: PARTITIONS }),
    bulkRoute(ingest, keyring),
    livePositionsRoute({ tables, statusAt: (at, now) => statusAt(at, now, AGES) }),
  ]
  const callRoute = routeCaller({ routes, clock, settle })
  t.teardown(async () => {
    await watching.close()
    await announcer.close()
    await feed.close()
    await latest.close()
    await runner.close()
    await services.close()
  })

  /** As a user of the organization who sees everything, unless told otherwise. */
  const call = async (method: Method, url: string, body?: unknown, caller: Partial<UserCaller> = {}) =>
    callRoute(method, url, { body, caller: userCaller(caller) })
  /** Appends what other features would have. */
  const put = async (noun: string, id: string, values: object, organizationId = ORG, version = 0) => {
    const at = new Date(clock.now()).toISOString()
    const wrote = await appendFacts(
      log,
      `${noun}-${id}`,
      [
        {
          type: `${noun}${version === 0 ? 'Created' : 'Changed'}`,
          data: { organizationId, values, createdAt: at, at },
        },
      ],
      [idSource(clock.now()).next()],
      version,
      {},
    )
    if (wrote !== undefined) await settle(wrote, 60_000)
  }
  /** What the live view would show, through the table. */
  const positions = async (query = '', caller: Partial<UserCaller> = {}) => {
    await latest.flush()
    const livePositions = routes[routes.length - 1]
    const url = new URL(`http://test/?${query}`)
    const parameters: { [name: string]: unknown } = Object.fromEntries(url.searchParams)
    assertValid(compileQuery(livePositions.query), parameters)
    const reply = await livePositions.handler({
      caller: userCaller(caller),
      query: parameters,
      now: clock.now(),
    } as never)
    let text = JSON.stringify(reply.body ?? '')
    if (reply.stream !== undefined) text = ''
    for await (const part of reply.stream ?? []) text += part
    return JSON.parse(text).data as {
      trackerId: string
      name: string
      recordedAt: string
      lat: number
      lng: number
      lastSeenAt: string
      status: string
    }[]
  }
  return {
    ...services,
    known,
    devices,
    writer,
    runner,
    settle,
    changes,
    failures,
    latest,
    feed,
    ingest,
    channel,
    call,
    callRoute,
    put,
    positions,
    watching,
    connect: (caller: Parameters<typeof connect>[1]) => connect(channel, caller),
  }
}
