import { lineString, pointToLineDistance } from '@turf/turf'
import type { FeatureCollection, MultiPolygon } from 'geojson'
import { test } from 'tap'
import { keptShape } from '../../../src/geo/shape.ts'
import { MatcherWorld, ORG } from '../../support/matcher-world.ts'
import { readData, readTrace, withoutData } from '../../support/shared-data.ts'
import { entriesOf, uuidOf } from '../../support/trace-batches.ts'
import { folderOf } from '../../support/folder-of.ts'

const TRACE = 'fleet-austin-2016-11-24_27'
const POLYGONS = 'polygons/austin-neighborhoods.geojson'
const EXPECTED = 'expected/transitions-austin.csv.gz'

test('four days of a bus fleet make the transitions that an independent library computed', {
  skip: withoutData,
}, async (t) => {
  const world = await MatcherWorld.open(folderOf(t))
  t.teardown(() => world.close())
  const shapes = new Map<string, MultiPolygon>()
  const collection = JSON.parse(readData(POLYGONS)) as FeatureCollection<MultiPolygon, { name: string }>
  for (const { geometry, properties } of collection.features) shapes.set(uuidOf(properties.name), keptShape(geometry))
  const group = await world.putGroup('group', {})
  const geofences: { geofenceId: string; revision: number; position: number }[] = []
  for (const [geofenceId, shape] of shapes) geofences.push(await world.putFence(geofenceId, { shape }))
  await world.announce(0, { sourcePosition: geofences[geofences.length - 1].position, geofences, groups: [group] })
  await Promise.all(
    entriesOf(readTrace(TRACE, ORG), 1, 500, 600_000).map(
      (entry) => entry.kind === 'points' && world.points(0, entry.batch),
    ),
  )

  const matcher = world.matcher()
  await world.run(matcher, 0)
  await matcher.close()

  const transitions = await world.transitions(0)
  const lineOf = (trackerId: string, geofenceId: string, at: number, type: string) =>
    `${trackerId} ${geofenceId} ${at} ${type}`
  const made = new Set(
    transitions.map(({ trackerId, geofenceId, at, type }) => lineOf(trackerId, geofenceId, at, type)),
  )
  t.equal(made.size, transitions.length, 'none is made twice')
  const lines = readData(EXPECTED).trim().split('\n').slice(1)
  const expected = new Set(
    lines.map((line) => {
      const [tracker, timestamp, event, polygon] = line.split(',')
      return lineOf(uuidOf(tracker), uuidOf(polygon), Date.parse(timestamp), event === 'enter' ? 'entry' : 'leave')
    }),
  )
  t.strictSame(
    [...expected].filter((line) => !made.has(line)),
    [],
    'none is missing',
  )
  // Positions are kept to 1e-7 degree: a fix that lay beside a boundary by less than that may be on it.
  const further = transitions.filter(
    ({ trackerId, geofenceId, at, type }) => !expected.has(lineOf(trackerId, geofenceId, at, type)),
  )
  const entries = further.filter(({ type }) => type === 'entry')
  for (const { point, geofenceId } of entries) {
    const rings = (shapes.get(geofenceId) as MultiPolygon).coordinates.flat()
    const away = Math.min(
      ...rings.map((ring) => pointToLineDistance([point.lng, point.lat], lineString(ring), { units: 'meters' })),
    )
    t.ok(away < 0.02, 'on the boundary as kept')
  }
  t.ok(entries.length <= 2 && further.length === entries.length * 2, 'left again by the next fix')
})
