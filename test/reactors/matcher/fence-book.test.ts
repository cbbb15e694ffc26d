import { test } from 'tap'
import { eventsOf } from '../../../src/engines/event-log.ts'
import type { GeofenceValues } from '../../../src/features/geofences/events.ts'
import { geofenceStream } from '../../../src/features/geofences/events.ts'
import { geofenceRows } from '../../../src/features/geofences/geofence-rows.ts'
import type { Row, RowChange } from '../../../src/kernel/table.ts'
import type { Rows } from '../../../src/kit/consumers/projection.ts'
import { FenceBook } from '../../../src/reactors/matcher/fence-book.ts'
import { folderOf } from '../../support/folder-of.ts'
import { MatcherWorld, ORG } from '../../support/matcher-world.ts'
import { ringOf } from '../../support/ring.ts'
import { uuidOf } from '../../support/trace-batches.ts'

const SHAPES: GeofenceValues['shape'][] = [
  { type: 'Polygon', coordinates: [ringOf(1, 0, 2, 1)] },
  { type: 'MultiPolygon', coordinates: [[ringOf(3, 0, 4, 1)], [ringOf(5, 0, 6, 1)]] },
  { center: { lat: 0.5, lng: 8.1234567 }, radius: 1_000.5 },
  {
    geometry: {
      type: 'LineString',
      coordinates: [
        [10, 0],
        [11, 1],
      ],
    },
    width: 30,
  },
]

/** Stores the rows of these geofences as the projection makes them. */
const project = async ({ log, tables }: MatcherWorld, ids: readonly string[]): Promise<void> => {
  for (const table of geofenceRows.tables) await tables.declare(table)
  for (const id of ids) {
    const rows = new Map<string, RowChange>()
    const put = (table: string, scope: string, row: Row | null): void => void rows.set(table, { table, scope, id, row })
    const written = {
      get: async (table: string) => rows.get(table)?.row ?? undefined,
      put: (table: string, scope: string, _: string, row: Row) => put(table, scope, row),
      delete: (table: string, scope: string) => put(table, scope, null),
    } as unknown as Rows
    for await (const event of eventsOf(log, geofenceStream(id))) await geofenceRows.apply(event, written)
    await tables.commit([...rows.values()])
  }
}

test('geofences that never changed are restored from their rows, others from their streams, and all as from streams', async (t) => {
  const world = await MatcherWorld.open(folderOf(t))
  t.teardown(() => world.close())
  const { log, tables } = world
  const streams: string[] = []
  const counted = {
    read: (...args: Parameters<typeof log.read>) => {
      streams.push(args[0])
      return log.read(...args)
    },
  }
  const same = SHAPES.map((_, i) => uuidOf(`same ${i}`))
  const [changed, changedSince, unseen] = ['changed', 'changed since', 'unseen'].map(uuidOf)
  const geofences: { geofenceId: string; revision: number }[] = []
  for (const [i, id] of same.entries()) geofences.push(await world.putFence(id, { shape: SHAPES[i], isActive: i > 0 }))
  const attributes = { depot: 'north' }
  for (const id of [changed, changedSince, unseen])
    geofences.push(await world.putFence(id, { shape: SHAPES[0], attributes }))
  geofences[same.length].revision = (await world.putFence(changed, { shape: SHAPES[1] })).revision
  await world.putFence(changedSince, { shape: SHAPES[2], isActive: false })
  await project(world, [...same, changed, changedSince])

  const revisions = { geofences, groups: [] }
  const byStreams = await new FenceBook(log).restore(ORG, 7, revisions)
  const byRows = await new FenceBook(counted, tables).restore(ORG, 7, revisions)
  t.same([...new Set(streams)].sort(), [changed, changedSince, unseen].map(geofenceStream).sort())
  t.strictSame(byRows.chunks, byStreams.chunks)
  const shapes = ({ lanes }: typeof byRows) => lanes.map(({ index }) => geofences.map((_, i) => index.shape(i)?.parts))
  t.strictSame(shapes(byRows), shapes(byStreams))

  const unreadable = { getMany: () => Promise.reject(new Error('the rows are being built anew')) }
  const other = await new FenceBook(log, unreadable).restore(ORG, 7, revisions)
  t.strictSame(other.chunks, byStreams.chunks, 'rows that cannot be read are not needed')
})
