import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { PointBlock } from '../../../../projections/location-history-block.ts'
import { POINTS } from '../../../../src/engines/clickhouse-sql/history-tables.ts'
import { openSchema } from '../../../../src/engines/clickhouse-sql/history-schema.ts'
import { type ChdbHistoryStore, openChdbHistoryStore } from '../../../../src/engines/chdb/chdb-history.ts'
import {
  AHEAD,
  HAS_ACCURACY,
  HAS_ALTITUDE,
  HAS_BATTERY,
  HAS_HEADING,
  HAS_SPEED,
  TRIP_FINISH,
  TRIP_START,
} from '../../../../src/features/locations/events.ts'
import { backtestPoints, estimatePoints, newestPoints } from '../../../../src/features/locations/history/streams.ts'
import {
  readHistory,
  readPoint,
  readTrack,
  type HistoryQuestion,
  type HistoryScope,
} from '../../../../src/features/locations/history/query.ts'
import { trackerIdAt } from '../../../../src/features/locations/history/point-rows.ts'
import { boxOfDegrees } from '../../../../src/geo/box.ts'
import { simplify } from '../../../../src/geo/simplify.ts'
import { readTrace, withoutData } from '../../../support/shared-data.ts'
import { batchOf, entriesOf, uuidOf, type PlainPoint } from '../../../support/trace-batches.ts'
import { folderOf } from '../../../support/folder-of.ts'
import { seeded } from '../../../support/random.ts'

const ORGANIZATION = uuidOf('organization')
const OTHER = uuidOf('another organization')
const EVERYTHING: HistoryScope = { organizationId: ORGANIZATION, trackerIds: 'all' }
const NOW = Date.parse('2026-06-01T00:00:00Z')

/** Points of some trackers over a day, with pauses, trips and every optional value now and then. Always the same ones. */
const generated = (): PlainPoint[] => {
  const random = seeded(45)
  const points: PlainPoint[] = []
  for (let tracker = 0; tracker < 7; tracker++) {
    let at = NOW - 86_400_000 + tracker * 777
    let lat = 52 + tracker / 10
    let lng = tracker === 6 ? 179.999 : 21
    for (let i = 0; i < 900; i++) {
      at += random() < 0.01 ? 700_000 : 1_000 + Math.floor(random() * 30_000)
      lat += (random() - 0.48) / 5_000
      lng += (random() - 0.48) / 5_000
      if (lng > 180) lng -= 360
      const point: PlainPoint = {
        organizationId: ORGANIZATION,
        trackerId: uuidOf(`tracker ${tracker}`),
        recordedAt: at,
        latE7: Math.round(lat * 1e7),
        lngE7: Math.round(lng * 1e7),
        flags: 0,
      }
      if (random() < 0.5)
        Object.assign(point, { accuracyCm: Math.floor(random() * 5_000), flags: point.flags | HAS_ACCURACY })
      if (random() < 0.5)
        Object.assign(point, { altitudeCm: Math.floor(random() * 5_000) - 1_000, flags: point.flags | HAS_ALTITUDE })
      if (random() < 0.5)
        Object.assign(point, { speedCms: Math.floor(random() * 5_000), flags: point.flags | HAS_SPEED })
      if (random() < 0.5)
        Object.assign(point, { headingTenths: Math.floor(random() * 3_600), flags: point.flags | HAS_HEADING })
      if (random() < 0.5)
        Object.assign(point, { batteryPercent: Math.floor(random() * 101), flags: point.flags | HAS_BATTERY })
      if (random() < 0.05) point.attributes = JSON.stringify({ text: `with "quotes", ${i}`, ignition: true })
      if (i % 200 === 50) point.flags |= TRIP_START
      if (i % 200 === 150) point.flags |= TRIP_FINISH
      points.push(point)
    }
  }
  points.push({
    organizationId: OTHER,
    trackerId: uuidOf('foreign'),
    recordedAt: NOW - 1_000,
    latE7: 520_000_000,
    lngE7: 210_000_000,
    flags: 0,
  })
  return points.sort((a, b) => a.recordedAt - b.recordedAt)
}

const openWith = async (t: Test, points: readonly PlainPoint[]): Promise<ChdbHistoryStore> => {
  const folder = folderOf(t)
  const store = await openChdbHistoryStore({ path: join(folder, 'data'), scratchPath: join(folder, 'scratch') })
  t.teardown(() => store.close())
  await openSchema(store, { days: 36_500, runDays: 36_500 })
  const block = new PointBlock(1_000)
  const entries = entriesOf(points)
  for (const [i, entry] of entries.entries()) {
    if (entry.kind === 'points') block.add(entry.batch, 0, entry.revision)
    if (block.rows < 20_000 && i < entries.length - 1) continue
    await store.insert(POINTS, block.encode(), `block ${i}`)
    block.clear()
  }
  return store
}

const read = async (store: ChdbHistoryStore, question: HistoryQuestion, scope = EVERYTHING): Promise<string> => {
  const chunks: Uint8Array[] = []
  for await (const chunk of (await readHistory(store, scope, question, NOW)).body) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

interface Row {
  _id: string
  trackerId: string
  recordedAt: string
  lat: number
  lng: number
  [member: string]: unknown
}

const ndjson = async (
  store: ChdbHistoryStore,
  question: Omit<HistoryQuestion, 'format'>,
  scope?: HistoryScope,
): Promise<Row[]> =>
  (await read(store, { ...question, format: 'ndjson' }, scope))
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Row)

/** What a row of history must be for a point. */
const rowOf = (point: PlainPoint): Row => ({
  _id: `${point.trackerId}.${point.recordedAt.toString(36)}`,
  trackerId: point.trackerId,
  recordedAt: new Date(point.recordedAt).toISOString(),
  lat: point.latE7 / 1e7,
  lng: point.lngE7 / 1e7,
  ...(point.accuracyCm !== undefined && { accuracy: point.accuracyCm / 100 }),
  ...(point.altitudeCm !== undefined && { altitude: point.altitudeCm / 100 }),
  ...(point.speedCms !== undefined && { speed: point.speedCms / 100 }),
  ...(point.headingTenths !== undefined && { heading: point.headingTenths / 10 }),
  ...(point.batteryPercent !== undefined && { battery: point.batteryPercent / 100 }),
  ...((point.flags & TRIP_START) !== 0 && { trip: 'start' }),
  ...((point.flags & TRIP_FINISH) !== 0 && { trip: 'finish' }),
  ...(point.attributes !== undefined && { attributes: JSON.parse(point.attributes) }),
})

/** The first logged point of each identity of the organization, by tracker and time. */
const plain = (points: readonly PlainPoint[]): PlainPoint[] => {
  const first = new Map<string, PlainPoint>()
  for (const point of points)
    if (point.organizationId === ORGANIZATION && !first.has(rowOf(point)._id)) first.set(rowOf(point)._id, point)
  const key = ({ trackerId }: PlainPoint): string => trackerId.slice(19) + trackerId.slice(0, 18)
  return [...first.values()].sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : a.recordedAt - b.recordedAt))
}

const byTime = (points: readonly PlainPoint[], order: 'asc' | 'desc'): PlainPoint[] =>
  points
    .map((point, place) => ({ point, place }))
    .sort((a, b) => (a.point.recordedAt - b.point.recordedAt || a.place - b.place) * (order === 'asc' ? 1 : -1))
    .map(({ point }) => point)

/** Tracks cut at trips, at gaps and at the latest every 20,000 points. */
const piecesOf = (points: readonly PlainPoint[]): PlainPoint[][] => {
  const pieces: PlainPoint[][] = []
  for (const point of points) {
    const piece = pieces.at(-1)
    const last = piece?.at(-1)
    const goesOn =
      last !== undefined &&
      last.trackerId === point.trackerId &&
      point.recordedAt - last.recordedAt <= 600_000 &&
      (last.flags & TRIP_FINISH) === 0 &&
      (point.flags & TRIP_START) === 0 &&
      (piece?.length ?? 0) < 20_000
    if (goesOn) piece?.push(point)
    else pieces.push([point])
  }
  return pieces
}

/** Simplified as the contract says, without any of the code under test but Douglas-Peucker itself. */
const simplifiedPieces = (points: readonly PlainPoint[], meters: number): PlainPoint[][] =>
  piecesOf(points).map((piece) =>
    [
      ...simplify(
        piece.map(({ lngE7 }) => lngE7),
        piece.map(({ latE7 }) => latE7),
        meters,
      ),
    ].map((i) => piece[i]),
  )

const simplified = (points: readonly PlainPoint[], meters: number): PlainPoint[] =>
  simplifiedPieces(points, meters).flat()

const firstOfSteps = (points: readonly PlainPoint[], stepMs: number): PlainPoint[] => {
  const seen = new Set<string>()
  return points.filter(({ trackerId, recordedAt }) => {
    const step = `${trackerId} ${Math.floor(recordedAt / stepMs)}`
    return seen.has(step) ? false : seen.add(step)
  })
}

/** As `t.same`, for many rows: names the first that differs. */
const same = (t: Test, found: readonly Row[], expected: readonly Row[], message: string): void => {
  const at = expected.findIndex((row, i) => JSON.stringify(found[i]) !== JSON.stringify(row))
  t.same([found.length, at < 0 ? undefined : found[at]], [expected.length, at < 0 ? undefined : expected[at]], message)
}

const compare = async (t: Test, store: ChdbHistoryStore, points: readonly PlainPoint[]): Promise<void> => {
  const all = plain(points)
  const trackers = [...new Set(all.map(({ trackerId }) => trackerId))]
  const from = all[Math.floor(all.length / 3)].recordedAt
  const to = from + 3_600_000
  const within = all.filter(({ recordedAt }) => recordedAt >= from && recordedAt <= to)

  same(t, await ndjson(store, {}), all.map(rowOf), 'everything, by tracker and time')
  same(
    t,
    await ndjson(store, { from, to, order: 'desc' }),
    byTime(within, 'desc').map(rowOf),
    'bounds of time, newest first',
  )
  same(
    t,
    await ndjson(store, { trackerIds: trackers.slice(0, 3), order: 'asc' }),
    byTime(
      all.filter(({ trackerId }) => trackers.indexOf(trackerId) < 3),
      'asc',
    ).map(rowOf),
    'some trackers',
  )
  same(
    t,
    await ndjson(
      store,
      { trackerIds: trackers.slice(0, 3) },
      { organizationId: ORGANIZATION, trackerIds: [trackers[2], trackers[1]] },
    ),
    all.filter(({ trackerId }) => [1, 2].includes(trackers.indexOf(trackerId))).map(rowOf),
    'only what the scope has',
  )
  same(t, await ndjson(store, {}, { organizationId: ORGANIZATION, trackerIds: [] }), [], 'nothing for who sees nothing')
  const many = Array.from({ length: 20_000 }, (_, i) => uuidOf(`unknown ${i}`))
  same(
    t,
    await ndjson(store, { from, to }, { organizationId: ORGANIZATION, trackerIds: [...many, trackers[0]] }),
    within.filter(({ trackerId }) => trackerId === trackers[0]).map(rowOf),
    'a large list',
  )
  same(t, await ndjson(store, { simplifyMeters: 20 }), simplified(all, 20).map(rowOf), 'simplified')
  same(t, await ndjson(store, { intervalSeconds: 60 }), firstOfSteps(all, 60_000).map(rowOf), 'one point a minute')
  same(
    t,
    await ndjson(store, { intervalSeconds: 60, simplifyMeters: 50, order: 'desc' }),
    byTime(simplified(firstOfSteps(all, 60_000), 50), 'desc').map(rowOf),
    'both, newest first',
  )
  t.equal((await estimatePoints(store, EVERYTHING, { from, to })) >= within.length, true)
  t.same(await readPoint(store, EVERYTHING, rowOf(all[5])._id), rowOf(all[5]))
}

test('reads of generated points equal a plain computation', async (t) => {
  const points = generated()
  const store = await openWith(t, points)
  await compare(t, store, points)
  const all = plain(points)

  await t.test('a box, also across the antimeridian', async (t) => {
    const inside = ([w, s, e, n]: readonly [number, number, number, number]): PlainPoint[] =>
      all.filter(
        ({ latE7, lngE7 }) =>
          latE7 >= s * 1e7 &&
          latE7 <= n * 1e7 &&
          (w <= e ? lngE7 >= w * 1e7 && lngE7 <= e * 1e7 : lngE7 >= w * 1e7 || lngE7 <= e * 1e7),
      )
    for (const bbox of [
      [20.99, 52.05, 21.01, 52.35],
      [179.9, 0, -179.9, 90],
    ] as [number, number, number, number][]) {
      const expected = inside(bbox).map(rowOf)
      t.ok(expected.length > 50)
      t.same(await ndjson(store, { bbox: boxOfDegrees(...bbox) }), expected)
    }
    t.ok(
      inside([179.9, 0, -179.9, 90]).some(({ lngE7 }) => lngE7 < 0),
      'the track crosses',
    )
  })

  await t.test('pages walk over everything once, and stay put under inserts', async (t) => {
    for (const order of ['desc', 'asc'] as const) {
      for (const simplifyMeters of [undefined, 30]) {
        const expected = byTime(simplifyMeters === undefined ? all : simplified(all, simplifyMeters), order).map(rowOf)
        const walked: Row[] = []
        let cursor: string | undefined
        do {
          const page = JSON.parse(
            await read(store, { format: 'json', order, limit: 1_000, simplifyMeters, cursor }),
          ) as { status: boolean; data: Row[]; nextCursor: string | null }
          walked.push(...page.data)
          cursor = page.nextCursor ?? undefined
        } while (cursor !== undefined)
        t.same(walked, expected, `${order} ${simplifyMeters}`)
      }
    }
    const byDefault = JSON.parse(await read(store, { format: 'json' })) as { data: Row[]; page: null; limit: number }
    t.equal(byDefault.data.length, 500)
    t.match(byDefault, { page: null, limit: 500 }, 'the limit in force')
    t.match(JSON.parse(await read(store, { format: 'json', limit: 7, simplifyMeters: 30 })), { page: null, limit: 7 })
    t.same(await ndjson(store, { limit: 3 }), byTime(all, 'desc').slice(0, 3).map(rowOf))
    await t.rejects(read(store, { format: 'json', cursor: 'bm8gY3Vyc29y' }), { code: 'invalid' })
  })

  await t.test('formats', async (t) => {
    const trackerIds = [all[0].trackerId]
    const track = all.filter(({ trackerId }) => trackerId === all[0].trackerId)
    const csv = (await read(store, { format: 'csv', trackerIds })).trim().split('\n')
    t.equal(csv.length, track.length + 1)
    t.equal(csv[0], '_id,trackerId,recordedAt,lat,lng,accuracy,altitude,speed,heading,battery,trip,attributes')
    const { features } = JSON.parse(await read(store, { format: 'geojson', trackerIds })) as {
      features: { id: string; geometry: { coordinates: number[] } }[]
    }
    t.same(
      features.map(({ id, geometry }) => [id, ...geometry.coordinates.slice(0, 2)]),
      track.map((point) => [rowOf(point)._id, point.lngE7 / 1e7, point.latE7 / 1e7]),
    )
    const gpx = await read(store, { format: 'gpx' })
    t.equal(gpx.split('<trkpt ').length - 1, all.length)
    t.equal(gpx.split('<trk>').length - 1, 7)
    t.equal(gpx.split('<trkseg>').length, gpx.split('</trkseg>').length)
    for (const question of [
      {},
      { simplifyMeters: 20 },
      { trackerIds, limit: 50, order: 'asc' as const, intervalSeconds: 60 },
    ]) {
      t.same(
        await parquetRows(t, store, question),
        (await ndjson(store, question)).map(flat),
        `parquet says what ndjson says: ${JSON.stringify(question)}`,
      )
    }
    const array = JSON.parse(
      await textOf(await readTrack(store, EVERYTHING, all[0].trackerId, track[10].recordedAt, track[20].recordedAt)),
    ) as Row[]
    t.same(array, track.slice(10, 21).map(rowOf))
  })

  await t.test('lines and tracks are pieces, simplified or not, and carry the names of trackers', async (t) => {
    const named = 'Ünit <7> & "co" \u0001'
    const asked: string[] = []
    const scope: HistoryScope = {
      ...EVERYTHING,
      lookUpNames: async (ids) => {
        asked.push(...ids)
        return ids.map((id) => (id === all[0].trackerId ? named : undefined))
      },
    }
    for (const [question, pieces] of [
      [{}, piecesOf(all)],
      [{ simplifyMeters: 30 }, simplifiedPieces(all, 30)],
      [{ intervalSeconds: 900 }, piecesOf(firstOfSteps(all, 900_000))],
    ] as const) {
      asked.length = 0
      const { features } = JSON.parse(await read(store, { format: 'geojson', geometry: 'lines', ...question }, scope))
      t.ok(pieces.length > 50)
      t.equal(
        pieces.some(({ length }) => length === 1),
        'intervalSeconds' in question,
        'lone points',
      )
      t.strictSame(
        features,
        pieces.map((piece) => {
          const positions = piece.map(({ lngE7, latE7, altitudeCm }) =>
            altitudeCm === undefined ? [lngE7 / 1e7, latE7 / 1e7] : [lngE7 / 1e7, latE7 / 1e7, altitudeCm / 100],
          )
          const times = piece.map(({ recordedAt }) => new Date(recordedAt).toISOString())
          const [{ trackerId }] = piece
          return {
            type: 'Feature',
            geometry:
              piece.length === 1
                ? { type: 'Point', coordinates: positions[0] }
                : { type: 'LineString', coordinates: positions },
            properties: {
              trackerId,
              ...(trackerId === all[0].trackerId && { name: named }),
              from: times[0],
              to: times.at(-1),
              coordinateProperties: { times },
            },
          }
        }),
        `lines, ${JSON.stringify(question)}`,
      )
      t.same(asked.sort(), [...new Set(all.map(({ trackerId }) => trackerId))].sort(), 'each name is asked for once')
      const gpx = await read(store, { format: 'gpx', ...question }, scope)
      t.equal(gpx.split('<trkseg>').length - 1, pieces.length, 'what simplifying leaves out is no gap')
      t.match(gpx, `<trk><name>Ünit &lt;7&gt; &amp; "co" </name><src>${all[0].trackerId}</src>`)
      t.equal(gpx.split(/<name>[0-9a-f-]{36}</).length - 1, 6, 'those without a name are called by their id')
    }
    const { features } = JSON.parse(
      await read(store, { format: 'geojson', limit: 5, trackerIds: [all[0].trackerId] }, scope),
    )
    t.match(features, Array(5).fill({ properties: { trackerId: all[0].trackerId, name: named } }))
    await t.rejects(
      read(store, { format: 'gpx' }, { ...EVERYTHING, lookUpNames: () => Promise.reject(new Error('no tables')) }),
      { message: 'no tables' },
    )
  })

  await t.test('a cursor is good for its own question alone', async (t) => {
    const question = { format: 'json', limit: 10, from: NOW - 80_000_000, asked: ['a'] } as const
    const { nextCursor } = await readHistory(store, EVERYTHING, question, NOW)
    const cursor = nextCursor ?? ''
    t.equal(JSON.parse(await read(store, { ...question, limit: 3, cursor })).data.length, 3, 'of any length')
    for (const other of [
      { from: undefined },
      { to: NOW },
      { order: 'asc' },
      { simplifyMeters: 5 },
      { intervalSeconds: 5 },
      { bbox: boxOfDegrees(0, 0, 90, 90) },
      { asked: ['b'] },
    ] as const)
      await t.rejects(read(store, { ...question, ...other, cursor }), { code: 'invalid' }, JSON.stringify(other))
  })

  await t.test('chosen members, in every format', async (t) => {
    const question = {
      trackerIds: [all[0].trackerId],
      limit: 300,
      order: 'asc' as const,
      members: new Set(['_id', 'lng', 'speed', 'trip'] as const),
    }
    const expected = byTime(
      all.filter(({ trackerId }) => trackerId === all[0].trackerId),
      'asc',
    )
      .slice(0, 300)
      .map(rowOf)
      .map(({ _id, lng, speed, trip }) => ({
        _id,
        lng,
        ...(speed !== undefined && { speed }),
        ...(trip !== undefined && { trip }),
      }))
    t.strictSame(await ndjson(store, question), expected)
    t.strictSame(JSON.parse(await read(store, { ...question, format: 'json' })).data, expected)
    t.strictSame((await read(store, { ...question, format: 'csv' })).trim().split('\n'), [
      '_id,lng,speed,trip',
      ...expected.map(({ _id, lng, speed = '', trip = '' }) => [_id, lng, speed, trip].join(',')),
    ])
    const { features } = JSON.parse(await read(store, { ...question, format: 'geojson' })) as {
      features: { properties: object }[]
    }
    t.strictSame(
      features.map(({ properties }) => properties),
      expected.map(({ _id, lng, ...properties }) => properties),
    )
    t.same(
      await parquetRows(t, store, question),
      expected.map(({ _id, lng, speed = null, trip = null }) => ({ _id, lng, speed, trip })),
    )
    t.match(await read(store, { ...question, format: 'gpx' }), /<time>.*<gpxtpx:course>/, 'gpx has its own')
  })

  await t.test('pages of gpx are the oldest points, written by tracker', async (t) => {
    for (const simplifyMeters of [undefined, 30]) {
      const walk = byTime(simplifyMeters === undefined ? all : simplified(all, simplifyMeters), 'asc')
      let cursor: string | undefined
      for (let from = 0; from < walk.length; from += 900) {
        const answer = await readHistory(store, EVERYTHING, { format: 'gpx', limit: 900, cursor, simplifyMeters }, NOW)
        const times = [...(await textOf(answer.body)).matchAll(/<time>([^<]*)/g)].map(([, time]) => time)
        t.same(
          times,
          plain(walk.slice(from, from + 900)).map((point) => rowOf(point).recordedAt),
          `from ${from}`,
        )
        cursor = answer.nextCursor ?? undefined
        t.equal(cursor === undefined, from + 900 >= walk.length)
        if (from !== 900 || cursor === undefined) continue
        const rest = [...(await read(store, { format: 'gpx', cursor, simplifyMeters })).matchAll(/<time>([^<]*)/g)].map(
          ([, time]) => time,
        )
        t.same(
          rest,
          plain(walk.slice(1_800)).map((point) => rowOf(point).recordedAt),
          'the rest',
        )
      }
    }
  })

  await t.test('a small page names the next one beside its body', async (t) => {
    const small = await readHistory(store, EVERYTHING, { format: 'csv', limit: 10 }, NOW)
    const rest = await readHistory(store, EVERYTHING, { format: 'csv', limit: 10, cursor: small.nextCursor ?? '' }, NOW)
    const ids = [
      ...(await textOf(small.body)).trim().split('\n').slice(1),
      ...(await textOf(rest.body)).trim().split('\n').slice(1),
    ].map((line) => line.split(',')[0])
    t.same(
      ids,
      byTime(all, 'desc')
        .slice(0, 20)
        .map((point) => rowOf(point)._id),
    )
    t.equal(
      (await readHistory(store, EVERYTHING, { format: 'csv', limit: all.length }, NOW)).nextCursor,
      null,
      'nothing follows',
    )
  })

  await t.test('answers that nobody reads leave nothing behind', async (t) => {
    for (let i = 0; i < 100; i++) {
      const answer = await readHistory(store, EVERYTHING, { format: 'ndjson' }, NOW)
      await answer.body[Symbol.asyncIterator]().return?.()
    }
    t.equal((await ndjson(store, { limit: 1 })).length, 1, 'no query of them is open')
  })

  await t.test('for back-tests: what is between, and the last one before', async (t) => {
    const from = NOW - 80_000_000
    const to = from + 7_200_000
    const expected = all.filter((point, i) => {
      const next = all[i + 1]
      const isLastBefore =
        point.recordedAt < from && (next === undefined || next.trackerId !== point.trackerId || next.recordedAt >= from)
      return (point.recordedAt >= from && point.recordedAt <= to) || isLastBefore
    })
    const ids: string[] = []
    for await (const rows of backtestPoints(store, EVERYTHING, { from, to })) {
      for (let i = 0; i < rows.count; i++) ids.push(`${trackerIdAt(rows, i)}.${rows.recordedAt[i].toString(36)}`)
    }
    t.same(
      ids,
      expected.map((point) => rowOf(point)._id),
    )
  })
})

test('a back-test begins with the last point that its bound of accuracy lets pass', async (t) => {
  const point = (name: string, recordedAt: number, accuracyCm?: number): PlainPoint => ({
    organizationId: ORGANIZATION,
    trackerId: uuidOf(name),
    recordedAt,
    latE7: 1,
    lngE7: 1,
    flags: accuracyCm === undefined ? 0 : HAS_ACCURACY,
    ...(accuracyCm !== undefined && { accuracyCm }),
  })
  const store = await openWith(t, [
    point('a', NOW - 4, 3_000),
    point('a', NOW - 3, 3_001),
    point('a', NOW, 9_000),
    point('b', NOW - 2),
    point('b', NOW - 1, 3_001),
    point('c', NOW - 1, 5_000),
  ])
  const read = async (question: { accuracyMaxCm?: number }): Promise<string[]> => {
    const found: string[] = []
    for await (const rows of backtestPoints(store, EVERYTHING, { from: NOW, to: NOW + 1, ...question })) {
      for (let i = 0; i < rows.count; i++)
        found.push(
          `${trackerIdAt(rows, i) === uuidOf('a') ? 'a' : trackerIdAt(rows, i) === uuidOf('b') ? 'b' : 'c'}${rows.recordedAt[i] - NOW}`,
        )
    }
    return found.sort()
  }
  t.same(await read({}), ['a-3', 'a0', 'b-1', 'c-1'])
  t.same(await read({ accuracyMaxCm: 3_000 }), ['a-4', 'a0', 'b-2'])
})

test('-180 and 180 are the same meridian', async (t) => {
  const lngs = [-1_800_000_000, 1_800_000_000, -1_799_999_999, 1_799_999_999, 0]
  const store = await openWith(
    t,
    lngs.map((lngE7, i) => ({
      organizationId: ORGANIZATION,
      trackerId: uuidOf('edge'),
      recordedAt: NOW + i,
      latE7: 0,
      lngE7,
      flags: 0,
    })),
  )
  const inside = async (bbox: [number, number, number, number]): Promise<number[]> =>
    (await ndjson(store, { bbox: boxOfDegrees(...bbox) })).map(({ lng }) => Math.round(lng * 1e7))
  t.same(await inside([170, -1, 180, 1]), [lngs[0], lngs[1], lngs[3]])
  t.same(await inside([-180, -1, -170, 1]), lngs.slice(0, 3))
  t.same(await inside([170, -1, -170, 1]), lngs.slice(0, 4))
  t.same(await inside([180, -1, -180, 1]), lngs.slice(0, 2))
  t.same(await inside([-180, -1, 180, 1]), lngs)
  t.same(await inside([-179, -1, 179, 1]), [0])
  t.same(await inside([180, -1, 179.9, 1]), [lngs[0], lngs[1], lngs[2], 0], 'nearly all of the way around')
})

test('the first logged point wins, in whatever order blocks come; one that was ahead loses', async (t) => {
  const trackerId = uuidOf('repeater')
  const point = (recordedAt: number, speedCms: number, flags = 0): PlainPoint => ({
    organizationId: ORGANIZATION,
    trackerId,
    recordedAt,
    latE7: speedCms,
    lngE7: -1,
    speedCms,
    flags: HAS_SPEED | flags,
  })
  const logged = [
    { epoch: 0, revision: 5, points: [point(NOW, 100), point(NOW + 9_000, 1, AHEAD)] },
    { epoch: 0, revision: 6, points: [point(NOW, 200), point(NOW + 9_000, 2)] },
    { epoch: 1, revision: 0, points: [point(NOW, 300), point(NOW + 9_000, 3), point(NOW + 99_000, 4, AHEAD)] },
  ]
  for (const order of [
    [0, 1, 2],
    [2, 1, 0],
    [1, 2, 0, 1, 0],
  ]) {
    const store = await openWith(t, [])
    for (const [i, which] of order.entries()) {
      const block = new PointBlock(1)
      block.add(batchOf(logged[which].points), logged[which].epoch, logged[which].revision)
      await store.insert(POINTS, block.encode(), `${order} ${i}`)
    }
    for (const optimized of [false, true]) {
      if (optimized) await store.command(`OPTIMIZE TABLE ${POINTS} FINAL`)
      t.same(
        (await ndjson(store, {})).map(({ speed }) => speed),
        [1, 0.02, 0.04],
        `${order} ${optimized}`,
      )
      t.same(await ndjson(store, { bbox: boxOfDegrees(-1, 150e-7, 1, 1) }), [], 'no repeat stands in for the first')
    }
    for await (const { rows, epochs, revisions, organizationIds } of newestPoints(store)) {
      t.same(
        [rows.count, rows.recordedAt[0], epochs, revisions, organizationIds],
        [1, NOW + 9_000, [0], [6], [ORGANIZATION]],
      )
    }
    await store.close()
  }
})

const TRACES = ['fleet-warsaw-2024-02-19-sample', 'bike-shanghai-1hz', 'phones-helsinki-2016-08-26-A']

test('reads of real points equal a plain computation', { skip: withoutData }, async (t) => {
  const points = TRACES.flatMap((name) => readTrace(name, ORGANIZATION))
  const store = await openWith(t, points)
  await compare(t, store, points)
})

const textOf = async (chunks: AsyncIterable<Uint8Array>): Promise<string> => {
  const all: Uint8Array[] = []
  for await (const chunk of chunks) all.push(chunk)
  return Buffer.concat(all).toString()
}

/** A row as a Parquet file has it. */
const flat = (row: Row): object => ({
  ...Object.fromEntries(['accuracy', 'altitude', 'speed', 'heading', 'battery', 'trip'].map((name) => [name, null])),
  ...row,
  recordedAt: Date.parse(row.recordedAt),
  attributes: row.attributes === undefined ? null : JSON.stringify(row.attributes),
})

const parquetRows = async (
  t: Test,
  store: ChdbHistoryStore,
  question: Omit<HistoryQuestion, 'format'>,
): Promise<object[]> => {
  const file = join(folderOf(t), 'points.parquet')
  const { body } = await readHistory(store, EVERYTHING, { ...question, format: 'parquet' }, NOW)
  const chunks: Uint8Array[] = []
  for await (const chunk of body) chunks.push(chunk)
  writeFileSync(file, Buffer.concat(chunks))
  const time =
    (question.members?.has('recordedAt') ?? true) ? 'REPLACE (toUnixTimestamp64Milli(recordedAt) AS recordedAt)' : ''
  return store.rows(
    `SELECT * ${time} FROM file({file:String}, 'Parquet') SETTINGS input_format_parquet_preserve_order = 1`,
    { file },
  )
}
