import { test, type Test } from 'tap'
import { openGappedLog } from '../support/gapped-log.ts'
import { locationStream, type LocationEntry } from '../../src/features/locations/events.ts'
import type { LatestPoint } from '../../src/features/locations/views.ts'
import { applyEntry } from '../../src/live/apply-entry.ts'
import type { HubOptions } from '../../src/live/options.ts'
import { loadOrganization } from '../../src/live/load-organization.ts'
import { LiveOrganization } from '../../src/live/organization.ts'
import { batchOf } from '../support/batches.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { folderOf } from '../support/folder-of.ts'

const AGES = { staleAfterMs: 300_000, offlineAfterMs: 3_600_000 }

interface Loading {
  rows?: LatestPoint[]
  logged: LocationEntry[]
  /** Revision up to which the rows have what is in the log; left out: nothing was committed yet. */
  kept?: number
  /** What comes while the rows are read. */
  meanwhile?: LocationEntry[]
}

/** Loads fleets, each from a partition of its own, and answers when the tracker's last point was recorded. */
const open = async (t: Test) => {
  const log = await openGappedLog({ path: folderOf(t), clock: new FakeClock() })
  t.teardown(() => log.close())
  let partition = -1
  return async ({ rows = [], logged, kept, meanwhile = [] }: Loading): Promise<number | undefined> => {
    partition++
    const idOf = (n: number): string => `00000000-0000-7000-8000-${String(partition * 100 + n).padStart(12, '0')}`
    await log.append(
      locationStream(partition),
      logged.map((_, n) => ({ id: idOf(n), type: 'entry', data: new Uint8Array(1), isJson: false, metadata: {} })),
      'none',
    )
    const organization = new LiveOrganization({ ages: AGES, clock: new FakeClock() }, [])
    const { fleet, deletedWhileLoading } = organization
    const latestPoints = async () => {
      for (const entry of meanwhile) {
        applyEntry('org', fleet, entry)
        if (entry.kind === 'trackerDeleted') deletedWhileLoading.add(entry.deletion.trackerId)
      }
      return { points: each(rows), keptUpTo: kept === undefined ? {} : { [partition]: kept } }
    }
    const sources = {
      latestPoints,
      trackers: async () => each([]),
      decode: ({ revision }: { revision: number }) => logged[revision],
    }
    const handled = Array.from({ length: partition + 1 }, (_, other) => (other === partition ? logged.length - 1 : -1))
    await loadOrganization(
      { log, sources, ages: AGES } as unknown as HubOptions,
      'org',
      organization,
      handled,
      undefined,
    )
    return fleet.pointAt(fleet.slotOf('a'))?.recordedAt
  }
}

async function* each<Item>(items: readonly Item[]): AsyncGenerator<Item> {
  yield* items
}

const point = (recordedAt: number): LocationEntry => ({
  kind: 'points',
  partition: 0,
  revision: 0,
  position: 0,
  batch: batchOf([{ trackerId: 'a', recordedAt, lat: 1, lng: 1 }], recordedAt),
})
const deletion: LocationEntry = {
  kind: 'trackerDeleted',
  partition: 0,
  revision: 0,
  position: 0,
  deletion: { organizationId: 'org', trackerId: 'a', at: 0 },
}
const row = (recordedAt: number): LatestPoint => ({
  trackerId: 'a',
  recordedAt,
  loggedAt: recordedAt,
  lat: 0,
  lng: 0,
  flags: 0,
  accuracy: 0,
  altitude: 0,
  speed: 0,
  heading: 0,
  battery: 0,
})

test('a fleet is what the rows, the log after them and what comes meanwhile make of it', async (t) => {
  const load = await open(t)
  t.equal(
    await load({ rows: [row(5)], logged: [point(5), point(6)], kept: 0 }),
    6,
    'a point that the rows lack is in the log',
  )
  t.equal(await load({ logged: [point(5)] }), 5, 'before the first commit of all everything is in the log')
  const many = Array.from({ length: 200 }, (_, n) => point(n))
  t.equal(await load({ rows: [row(10)], logged: many, kept: 10 }), 199, 'or further on in it')
  t.equal(await load({ rows: [row(5)], logged: [point(5)], kept: 0, meanwhile: [point(7)] }), 7)
  t.equal(await load({ rows: [row(5)], logged: [point(5)], kept: 0, meanwhile: [deletion] }), undefined)
})

test('a deletion of before does not forget a tracker that was made anew while its organization was loading', async (t) => {
  const load = await open(t)
  const logged = [point(9), deletion]
  t.equal(await load({ rows: [row(9)], logged, kept: 0 }), undefined, 'what was deleted is gone')
  t.equal(await load({ rows: [row(9)], logged, kept: 0, meanwhile: [point(12)] }), 12)
  t.equal(
    await load({ rows: [row(9)], logged, kept: 0, meanwhile: [point(4)] }),
    4,
    'also where its clock goes behind that of the one before',
  )
  t.equal(await load({ rows: [row(9)], logged: [point(9)], kept: 0, meanwhile: [deletion, point(4)] }), 4)
})
