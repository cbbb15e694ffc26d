import { VectorTile } from '@mapbox/vector-tile'
import Pbf from 'pbf'
import { type Test, test } from 'tap'
import { PointSteps } from '../../../projections/point-steps.ts'
import { TRACES } from '../../../src/engines/clickhouse-sql/traces.ts'
import { traceRoutes } from '../../../src/features/tiles/api.ts'
import type { UserCaller } from '../../../src/kernel/caller.ts'
import { routeCaller } from '../../support/call-route.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { ownerOf } from '../../support/geofence-world.ts'
import { demoTrace, GAP_MS, openReports } from '../../support/reports-world.ts'

const NOW = Date.parse('2024-02-19T20:00:00Z')
const WARSAW = [21.0122, 52.2297] as const

const tileAt = (z: number, [lng, lat]: readonly [number, number]): { x: number; y: number } => {
  const sine = Math.sin((lat * Math.PI) / 180)
  const y = 0.5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI)
  return { x: Math.floor((lng / 360 + 0.5) * 2 ** z), y: Math.floor(y * 2 ** z) }
}

const open = async (t: Test, visibleTrackers: (caller: UserCaller) => Promise<'all' | readonly string[]>) => {
  const world = await openReports(t)
  const clock = new FakeClock(NOW)
  const call = routeCaller({
    routes: traceRoutes({ history: world.history, visibleTrackers, gapMs: GAP_MS }),
    clock,
  })
  const logger = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
  const roller = new PointSteps({ history: world.history, clock, logger, gapMs: GAP_MS })
  const answer = (path: string, caller = ownerOf(world.organizationId)) =>
    call('GET', `/tiles/traces/${path}`, { caller })
  /** Places of a tile by their count, sorted. */
  const cells = async (path: string, caller?: UserCaller): Promise<{ [count: number]: string[] }> => {
    const { status, raw, body } = await answer(path, caller)
    if (status === 204) return {}
    if (raw === undefined) throw new Error(JSON.stringify(body))
    const layer = new VectorTile(new Pbf(raw as Uint8Array)).layers.traces
    const features = Array.from({ length: layer.length }, (_, i) => layer.feature(i))
    return Object.fromEntries(
      features.map((one) => [
        one.properties.count,
        one
          .loadGeometry()
          .flat()
          .map(({ x, y }) => `${x} ${y}`)
          .sort(),
      ]),
    )
  }
  return { ...world, clock, roller, answer, cells }
}

const count = (cells: { [count: number]: string[] }): number => Object.values(cells).flat().length
const pathAt = (z: number): string => {
  const { x, y } = tileAt(z, WARSAW)
  return `${z}/${x}/${y}`
}

test('tiles of traces show the same from points and rolled up', async (t) => {
  const { insert, cells, roller, history } = await open(t, async () => 'all')
  const points = demoTrace()
  const some = new Set([...new Set(points.map(({ trackerId }) => trackerId))].filter((_, i) => i % 10 === 0))
  await insert(points.filter(({ trackerId }) => some.has(trackerId)))
  const zooms = [0, 5, 6, 9, 10, 12, 14]
  const before = []
  for (const z of zooms) before.push(await cells(pathAt(z)))
  await roller.rollUpDue()
  const [{ rows }] = await history.rows<{ rows: number }>(`SELECT count() AS rows FROM ${TRACES}`)
  t.ok(rows > 1_000, `${rows} rows`)
  for (const [i, z] of zooms.entries()) {
    const after = await cells(pathAt(z))
    // From points, ways are drawn that begin in the tile and its rim alone.
    const missing = Object.values(before[i])
      .flat()
      .filter((place) => !Object.values(after).flat().includes(place))
    t.same(missing, [], `zoom ${z}: nothing is lost`)
    t.ok(
      count(after) >= count(before[i]) && count(after) <= count(before[i]) * 1.02,
      `zoom ${z}: ${count(before[i])}, ${count(after)}`,
    )
  }
  t.ok(count(before[5]) > 100, 'a city at zoom 12')
})

test('the way between points is filled in, gaps are not, and only the tile that was driven has it', async (t) => {
  const { insert, cells, answer } = await open(t, async () => 'all')
  const point = (seconds: number, lng: number) => ({
    organizationId: '',
    trackerId: '00000000-0000-4000-8000-000000000001',
    recordedAt: NOW - 4 * 3_600_000 + seconds * 1_000,
    latE7: 0.01e7,
    lngE7: Math.round(lng * 1e7),
    flags: 0,
  })
  const cell = 360 / 2 ** 20
  await insert([point(0, cell * 0.5), point(10, cell * 10.5), point(20, cell * 300.5)])
  const places = Object.values(await cells(`14/${2 ** 13}/${2 ** 13 - 1}`)).flat()
  const columns = places.map((place) => Number(place.split(' ')[0])).sort((a, b) => a - b)
  t.same(
    columns,
    Array.from({ length: 11 }, (_, i) => (i + 0.5) * 64),
  )
  t.equal((await answer('14/0/0')).status, 204)
  t.equal((await answer(`14/${2 ** 13}/${2 ** 13 - 1}?days=1`)).status, 200)
  for (const path of ['15/0/0', '1/2/0', '1/0/2']) t.equal((await answer(path)).status, 404, path)
  for (const days of ['0', '366', 'x']) t.equal((await answer(`0/0/0?days=${days}`)).status, 400, days)
})

test('tiles show what the caller may see: own trackers, days asked for, nothing that is erased', async (t) => {
  const [mine, other] = ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002']
  let visible: 'all' | string[] = 'all'
  const { insert, cells, roller, history, organizationId, answer, clock } = await open(t, async () => visible)
  const pointOf = (trackerId: string, lng: number, agoMs: number) => ({
    organizationId: '',
    trackerId,
    recordedAt: NOW - agoMs,
    latE7: 522_000_000,
    lngE7: Math.round(lng * 1e7),
    flags: 0,
  })
  const day = 86_400_000
  await insert([pointOf(mine, 21, day / 2), pointOf(other, 21.01, day / 2), pointOf(mine, 21.02, 10 * day)])
  const { x, y } = tileAt(8, [21, 52.2])
  const tile = `8/${x}/${y}`
  const check = async (what: string): Promise<void> => {
    visible = 'all'
    t.equal(count(await cells(tile)), 3, `${what}: all`)
    t.equal(count(await cells(`${tile}?days=2`)), 2, `${what}: two days`)
    visible = [mine]
    t.equal(count(await cells(tile)), 2, `${what}: one tracker`)
    visible = []
    t.equal((await answer(tile)).status, 204, `${what}: none`)
    visible = 'all'
    t.same(await cells(tile, ownerOf('00000000-0000-4000-8000-00000000000f')), {}, `${what}: another organization`)
  }
  await check('from points')
  await roller.rollUpDue()
  await check('rolled up')
  await history.erase([{ organizationId, trackerId: mine }])
  t.equal(count(await cells(tile)), 1, 'what is erased is gone at once')
  clock.advance(day)
  await roller.rollUpDue()
  t.equal(count(await cells(tile)), 1, 'and does not come back')
})
