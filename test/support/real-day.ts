import { bbox, booleanPointInPolygon } from '@turf/turf'
import type { Feature, FeatureCollection, MultiPolygon, Polygon } from 'geojson'
import { existsSync, readFileSync } from 'node:fs'
import type { Test } from 'tap'
import { readTrace, type Fix } from '../../src/cli/trace-file.ts'
import { cityBlocks } from './city-blocks.ts'

export interface RealDay {
  fixes: Fix[]
  fences: FeatureCollection<Polygon | MultiPolygon, { name: string }>
}

const AUSTIN = '../shared/data/traces/fleet-austin-2016-11-24_27.csv.gz'
const NEIGHBORHOODS = '../shared/data/polygons/austin-neighborhoods.geojson'

/**
 * Buses of Austin through the city's neighbourhoods where the shared data is, otherwise the shipped buses of Warsaw through
 * crooked blocks of their town. Moved in time so that the last fix is a minute old. The test says which it took.
 */
export const realDay = async (t: Test, fixesMax: number, now: number): Promise<RealDay> => {
  const shared = existsSync(AUSTIN)
  const fixes: Fix[] = []
  for await (const fix of readTrace(shared ? AUSTIN : 'demo/fleet-warsaw.csv.gz')) {
    if (fixes.length >= fixesMax) break
    fixes.push({
      externalId: fix.externalId,
      recordedAt: fix.recordedAt,
      lat: Math.round(fix.lat * 1e7) / 1e7,
      lng: Math.round(fix.lng * 1e7) / 1e7,
    })
  }
  const shift = now - 60_000 - Math.max(...fixes.map((fix) => fix.recordedAt))
  for (const fix of fixes) fix.recordedAt += shift
  const features = shared ? polygonsOf(NEIGHBORHOODS) : [...polygonsOf('demo/fences.geojson'), ...cityBlocks(fixes)]
  t.comment(`${fixes.length} fixes of ${shared ? 'Austin (shared)' : 'Warsaw (shipped)'}, ${features.length} fences`)
  return { fixes, fences: { type: 'FeatureCollection', features } }
}

const polygonsOf = (path: string): RealDay['fences']['features'] =>
  JSON.parse(readFileSync(path, 'utf8')).features.filter((one: Feature) => one.geometry.type.endsWith('Polygon'))

/** First of the fixes of one tracker and time, by tracker, in order of time. */
export const tracksOf = (fixes: readonly Fix[]): Map<string, Fix[]> => {
  const tracks = new Map<string, Map<number, Fix>>()
  for (const fix of fixes) {
    const track = tracks.get(fix.externalId) ?? new Map<number, Fix>()
    if (!track.has(fix.recordedAt)) track.set(fix.recordedAt, fix)
    tracks.set(fix.externalId, track)
  }
  return new Map(
    [...tracks].map(([id, track]) => [id, [...track.values()].sort((a, b) => a.recordedAt - b.recordedAt)]),
  )
}

/** The obvious computation: turf, every fence, every point. Names of `tracker|fence|type|time`. */
export const obviousTransitions = ({ fixes, fences }: RealDay): Set<string> => {
  const found = new Set<string>()
  // Only saves work: turf looks at the box first.
  const boxed = fences.features.map((fence) => ({ ...fence, bbox: bbox(fence) }))
  for (const [externalId, track] of tracksOf(fixes)) {
    let before = new Set<string>()
    for (const { lat, lng, recordedAt } of track) {
      const inside = new Set(
        boxed.filter((fence) => booleanPointInPolygon([lng, lat], fence)).map((fence) => fence.properties.name),
      )
      for (const name of inside) if (!before.has(name)) found.add(`${externalId}|${name}|entry|${recordedAt}`)
      for (const name of before) if (!inside.has(name)) found.add(`${externalId}|${name}|leave|${recordedAt}`)
      before = inside
    }
  }
  return found
}
