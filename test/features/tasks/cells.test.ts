import { test } from 'tap'
import { openLmdbTableStore } from '../../../src/engines/lmdb-tables/lmdb-tables.ts'
import { openRedisTables } from '../../../src/engines/redis-tables/redis-tables.ts'
import type { TableStore } from '../../../src/engines/table-store.ts'
import { type Box, boxContains, boxOfDegrees } from '../../../src/geo/box.ts'
import { toE7 } from '../../../src/geo/coordinates.ts'
import { placeOf, withinBox } from '../../../src/features/tasks/cells.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { folderOf } from '../../support/folder-of.ts'
import { openRedisServer, withoutRedis } from '../../support/redis-server.ts'
import { seeded } from '../../support/random.ts'

const random = seeded(3)
const between = (from: number, to: number): number => from + random() * (to - from)

/** Also on edges of cells, on the antimeridian from either side, and at the poles. */
const places = Array.from({ length: 300 }, () => ({ lat: between(-90, 90), lng: between(-180, 180) }))
for (const lng of [-180, -179.9999999, -90, 0, 11.25, 45, 155, 157, 160, 179.9999999, 180])
  places.push({ lat: 22.5, lng }, { lat: -90, lng }, { lat: 90, lng })

const boxes: Box[] = [
  [160, -90, 155, 90],
  [-155, -90, -160, 90],
  [1, 0, -1, 60],
  [0, -90, -0.0000001, 90],
  [170, -90, 180, 90],
  [-180, -90, -170, 90],
  [180, -90, -170, 90],
  [170, -90, -180, 90],
  [180, -90, -180, 90],
  [-180, -90, 180, 90],
  [0, -90, 360, 90],
  [0, -90, 359.99999999, 90],
  [-200, -90, -160, 90],
  [155, 22.5, 155, 22.5],
  [-180, 90, 180, 90],
].map((degrees) => boxOfDegrees(...(degrees as [number, number, number, number])))
for (let round = 0; round < 300; round += 1) {
  // From a street to all but a few degrees of the whole turn, beginning anywhere.
  const west = between(-180, 180)
  const width = [between(0, 0.1), between(0, 10), between(0, 360), between(350, 360)][round % 4]
  const south = between(-90, 90)
  boxes.push(boxOfDegrees(west, south, west + width, between(south, 90)))
}

const contains = (box: Box, { lat, lng }: (typeof places)[number]): boolean => boxContains(box, toE7(lng), toE7(lat))

test('all that lies in a cell over a box lies within the bounds of those cells, and all in the box in one', (t) => {
  const kept = places.map(({ lat, lng }) => placeOf(lat, lng))
  let found = 0
  for (const box of boxes) {
    const { cells, ranges } = withinBox(box)
    const over = new Set(cells)
    for (const [no, place] of places.entries()) {
      const { cells: own, placeLat, placeLng } = kept[no]
      const isIn = own.some((cell) => over.has(cell))
      const asked = JSON.stringify({ place, box })
      if (contains(box, place) && !isIn) t.fail(`in the box and in no cell: ${asked}`)
      if (!isIn) continue
      found += 1
      const [lat, lng] = ranges.map(({ keptWithin }) => keptWithin as { from: number; to: number })
      const isAcross = lng.from > lng.to || (lng.from === lng.to && box.west > box.east)
      const isFrom = placeLng >= lng.from
      const isTo = placeLng <= lng.to
      if (!(isAcross ? isFrom || isTo : isFrom && isTo)) t.fail(`beyond the cells in longitude: ${asked}`)
      if (placeLat < lat.from || placeLat > lat.to) t.fail(`beyond the cells in latitude: ${asked}`)
    }
  }
  t.ok(found > 1_000, `${found} found`)
  t.end()
})

/** Each box asked for with its total, by a table like that of tasks. */
const findsWhatBoxesContain = async (store: TableStore): Promise<string[]> => {
  const lngAndLat = ['placeLat', 'placeLng']
  await store.declare({ name: 'places', version: 1, equality: ['cells'], range: lngAndLat, sparse: lngAndLat })
  const rows = places.map(({ lat, lng }, no) => ({ id: String(no), row: { lat, lng, ...placeOf(lat, lng) } }))
  await store.commit([
    ...rows.map(({ id, row }) => ({ table: 'places', scope: 's', id, row })),
    { table: 'places', scope: 's', id: 'nowhere', row: {} },
  ])
  const faults: string[] = []
  for (const box of boxes) {
    const { cells, ranges } = withinBox(box)
    const expected = places.flatMap((place, no) => (contains(box, place) ? [String(no)] : [])).sort()
    const found = await store.find('places', 's', { where: { cells }, ranges, limit: 500, total: true })
    const ids = found.rows.map(({ id }) => id).sort()
    if (ids.join() !== expected.join() || found.total !== expected.length)
      faults.push(`${JSON.stringify(box)}: ${ids.length} of ${expected.length}, total ${found.total}`)
  }
  return faults
}

test('a box of any shape finds the places in it and no others: the embedded tables', async (t) => {
  const store = await openLmdbTableStore({ path: folderOf(t), clock: new FakeClock() })
  t.teardown(() => store.close())
  t.same(await findsWhatBoxesContain(store), [])
})

test('a box of any shape finds the places in it and no others: Redis', {
  skip: withoutRedis,
}, async (t) => {
  const server = await openRedisServer(folderOf(t))
  const store = await openRedisTables({ url: server.url })
  t.teardown(async () => {
    await store.close()
    await server.kill('SIGKILL')
  })
  t.same(await findsWhatBoxesContain(store), [])
})
