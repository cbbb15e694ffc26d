import { test } from 'tap'
import {
  ANNOUNCE_DELETIONS,
  deletedTrackersStream,
  locationStream,
  partitionOf,
  SNAPSHOT_ASKED,
  type DeletionPlaced,
  type TrackerDeleted,
} from '../../../src/features/locations/events.ts'
import { locationEntry } from '../../../src/features/locations/location-entry.ts'
import { decodeJson } from '../../../src/kernel/event.ts'
import { idFrom } from '../../../src/kit/commands/ids.ts'
import { announceDeletions } from '../../../src/reactors/announce/deletions.ts'
import { appendDeletedTracker } from '../../support/deleted-tracker.ts'
import { openServices } from '../../support/open-services.ts'
import { folderOf } from '../../support/folder-of.ts'
import { until } from '../../support/service.ts'

const PARTITIONS = 4

test('a deletion whose announcement was interrupted is announced after the start, and none twice', async (t) => {
  const services = await openServices(folderOf(t))
  t.teardown(() => services.close())
  const { log, tables } = services
  const trackerId = idFrom('tracker', 1)
  const partition = partitionOf(trackerId, PARTITIONS)
  const { organizationId, at } = await appendDeletedTracker(log, trackerId)

  const announced = async () =>
    (await log.read(locationStream(partition), 0, 100)).map((event) => locationEntry(event, partition))
  const run = async (isDone: () => Promise<boolean>) => {
    const announcer = await announceDeletions({ ...services, partitions: PARTITIONS }, 0)
    await until('it to be announced', isDone)
    await announcer.close()
  }
  const isStored = async () => (await tables.checkpoint(ANNOUNCE_DELETIONS)) !== undefined
  await run(isStored)
  t.match(await announced(), [{ kind: 'trackerDeleted', deletion: { organizationId, trackerId, at: Date.parse(at) } }])

  // As after a crash between the announcement and its checkpoint.
  await tables.reset([], ANNOUNCE_DELETIONS)
  await run(isStored)
  t.equal((await announced()).length, 1)

  await appendDeletedTracker(log, trackerId, 2)
  await run(async () => (await announced()).length === 2)
  const places = (await log.read(deletedTrackersStream(partition), 0, 100)).map(({ data }) =>
    decodeJson<DeletionPlaced>(data),
  )
  t.same([...new Set(places.map(({ revision }) => revision))], [0, 1], 'where each stands is kept apart')
  t.match(places[0], { organizationId, trackerId, epoch: 0 })
  t.equal((await announced()).length, 2, 'made anew and deleted again is another deletion')

  await log.append(locationStream(partition), [{ ...pointless, id: idFrom('later', 1) }], 'any')
  await log.truncateBefore(locationStream(partition), 2)
  await tables.reset([], ANNOUNCE_DELETIONS)
  await run(isStored)
  t.same(await log.head(locationStream(partition)), 2, 'nor where its announcement was truncated meanwhile')
})

test('the announcements of many deletions are read back once, not by each of them', async (t) => {
  const services = await openServices(folderOf(t))
  t.teardown(() => services.close())
  const { log, tables } = services
  const trackerIds = Array.from({ length: 300 }, (_, i) => idFrom('tracker', i))
  await Promise.all(trackerIds.map((trackerId) => appendDeletedTracker(log, trackerId)))
  const { read } = log
  let eventsRead = 0
  log.read = async (...question) => {
    const events = await read.apply(log, question)
    eventsRead += events.length
    return events
  }
  const announcer = announceDeletions({ ...services, partitions: PARTITIONS }, 0)
  t.teardown(() => announcer.close())
  await announcer.ready()
  log.read = read
  const announced = []
  for (let partition = 0; partition < PARTITIONS; partition++)
    announced.push(...(await log.read(locationStream(partition), 0, 1_000)))
  t.same(
    announced.map((event) => decodeJson<TrackerDeleted>(event.data).trackerId).sort(),
    [...trackerIds].sort(),
    'each once',
  )
  t.ok(eventsRead <= 3 * trackerIds.length, `${eventsRead} events were read`)
  t.not(await tables.checkpoint(ANNOUNCE_DELETIONS), undefined)
})

const pointless = { type: SNAPSHOT_ASKED, data: new TextEncoder().encode('{}'), isJson: true, metadata: {} }
