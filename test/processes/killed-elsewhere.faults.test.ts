import { test, type Test } from 'tap'
import { GEOFENCE_PREFIX } from '../../src/features/geofences/events.ts'
import { importGeofences } from '../../src/features/geofences/import-geofences.ts'
import { ShapeChecker } from '../../src/features/geofences/shape-checker.ts'
import {
  ANNOUNCE_DELETIONS,
  ANNOUNCE_FENCES,
  deletedTrackersStream,
  FENCES_CHANGED,
  locationStream,
  partitionOf,
  TRACKER_DELETED,
} from '../../src/features/locations/events.ts'
import { systemClock } from '../../src/kernel/system-clock.ts'
import type { EventLog } from '../../src/engines/event-log.ts'
import { appendFacts } from '../../src/kit/commands/handle-command.ts'
import { idFrom, idSource } from '../../src/kit/commands/ids.ts'
import type { Follower } from '../../src/kit/consumers/follower.ts'
import { announceDeletions } from '../../src/reactors/announce/deletions.ts'
import { announceFences } from '../../src/reactors/announce/fences.ts'
import { appendDeletedTracker } from '../support/deleted-tracker.ts'
import { dyingLog } from '../support/dying-log.ts'
import { folderOf } from '../support/folder-of.ts'
import { openServices } from '../support/open-services.ts'
import { until } from '../support/service.ts'
import { ringOf } from '../support/ring.ts'

const PARTITIONS = 3
const ORG = idFrom('organization', 'a')
const SETTINGS = { tripStopMs: 300_000, tripGapMs: 1_800_000, rollout: '*' as const }

const open = async (t: Test) => {
  const services = await openServices(folderOf(t), systemClock)
  t.teardown(() => services.close())
  return { ...services, partitions: PARTITIONS }
}

type Opened = Awaited<ReturnType<typeof open>>

const typesIn = async ({ log }: Opened, stream: string): Promise<string[]> =>
  (await log.read(stream, 0, 1_000)).map(({ type }) => type)

/** Follows until its log dies, then another one until it has stored that it passed everything. */
const followTwice = async (
  services: Opened,
  consumer: string,
  writes: number,
  follow: (log: EventLog) => Promise<Follower>,
) => {
  const dying = dyingLog(services.log, writes)
  const head = await services.log.headPosition()
  const passed = async () => ((await services.tables.checkpoint(consumer))?.all ?? -1) >= head
  const first = await follow(dying.log)
  await until('the first one to die or to be done', async () => dying.isDead || (await passed()))
  await first.close()
  const second = await follow(services.log)
  await until('the second one to be done', passed)
  await second.close()
  return dying.isDead
}

test('what a deleted tracker sets off, killed between every two appends: said once, and where', async (t) => {
  const services = await open(t)
  for (let writes = 0, isDead = true; isDead; writes++) {
    const trackerId = idFrom('tracker', writes)
    const partition = partitionOf(trackerId, PARTITIONS)
    const before = (await typesIn(services, locationStream(partition))).length
    const placesBefore = (await typesIn(services, deletedTrackersStream(partition))).length
    await appendDeletedTracker(services.log, trackerId)
    isDead = await followTwice(services, ANNOUNCE_DELETIONS, writes, async (log) =>
      announceDeletions({ ...services, log }, 0),
    )
    t.same(
      (await typesIn(services, locationStream(partition))).slice(before),
      [TRACKER_DELETED],
      `after ${writes} writes`,
    )
    t.ok((await typesIn(services, deletedTrackersStream(partition))).length > placesBefore)
  }
})

test('what an edited geofence sets off, killed between every two appends: said in every partition', async (t) => {
  const services = await open(t)
  await (await announceFences(services, SETTINGS)).close()
  for (let writes = 0, isDead = true; isDead; writes++) {
    const before = await Promise.all(
      Array.from(
        { length: PARTITIONS },
        async (_, partition) => (await typesIn(services, locationStream(partition))).length,
      ),
    )
    const id = idFrom('geofence', writes)
    const fact = { type: 'geofenceCreated', data: { organizationId: ORG, at: 0 } }
    await appendFacts(services.log, GEOFENCE_PREFIX + id, [fact], [id], 0, {})
    isDead = await followTwice(services, ANNOUNCE_FENCES, writes, (log) =>
      announceFences({ ...services, log }, SETTINGS),
    )
    for (let partition = 0; partition < PARTITIONS; partition++) {
      const said = (await typesIn(services, locationStream(partition))).slice(before[partition])
      t.ok(said.length >= 1 && said.every((type) => type === FENCES_CHANGED), `after ${writes} writes, in ${partition}`)
    }
  }
})

test('an import of geofences, killed between every two appends and repeated under its key: each is made once', async (t) => {
  const { log } = await open(t)
  const shapes = new ShapeChecker(systemClock)
  t.teardown(() => shapes.close())
  const square = (at: number) => [ringOf(at, 0, at + 0.01, 0.01)]
  const features = [1, 2, 3, 4].map((at) => ({
    type: 'Feature',
    properties: { name: `n ${at}` },
    geometry: { type: 'Polygon', coordinates: square(at) },
  }))
  const bytes = new TextEncoder().encode(JSON.stringify({ type: 'FeatureCollection', features }))
  const importOver = (into: EventLog, seed: number) =>
    importGeofences({ log: into }, shapes, {
      bytes,
      nameProperty: 'name',
      organizationId: ORG,
      geofenceGroupId: idFrom('group', seed),
      now: 0,
      ids: idSource(0, Buffer.alloc(32, seed)),
      metadata: {},
      signal: new AbortController().signal,
    })
  const madeIn = async (seed: number): Promise<number> => {
    const ids = idSource(0, Buffer.alloc(32, seed))
    const heads = await Promise.all(features.map(() => log.head(GEOFENCE_PREFIX + ids.next())))
    t.ok(
      heads.every((head) => head <= 0),
      'none is made twice',
    )
    return heads.filter((head) => head === 0).length
  }
  for (let writes = 0; writes <= features.length; writes++) {
    const first = await importOver(dyingLog(log, writes).log, writes).catch(() => undefined)
    t.equal(first !== undefined, writes === features.length)
    t.equal(await madeIn(writes), writes)
    t.match(await importOver(log, writes), { created: features.length, rejected: [] }, `after ${writes} writes`)
    t.equal(await madeIn(writes), features.length)
  }
})
