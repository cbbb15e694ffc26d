import { booleanPointInPolygon } from '@turf/turf'
import type { Feature, FeatureCollection, MultiPolygon, Polygon } from 'geojson'
import { existsSync, readFileSync } from 'node:fs'
import { readTrace, type Fix } from '../../src/cli/trace-file.ts'

export interface RealDay {
  name: string
  fixes: Fix[]
  fences: FeatureCollection<Polygon | MultiPolygon, { name: string }>
}

const SHARED = '../shared/data'

/**
 * Buses of Austin through the city's neighbourhoods where the shared data is, otherwise the shipped buses of Warsaw through
 * the polygons of the demo. Moved in time so that the last fix is a minute old.
 */
export const realDay = async (fixesMax: number, now: number): Promise<RealDay> => {
  const shared = existsSync(`${SHARED}/traces/fleet-austin-2016-11-24_27.csv.gz`)
  const path = shared ? `${SHARED}/traces/fleet-austin-2016-11-24_27.csv.gz` : 'demo/fleet-warsaw.csv.gz'
  const fixes: Fix[] = []
  for await (const fix of readTrace(path)) {
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
  const fences = JSON.parse(
    readFileSync(shared ? `${SHARED}/polygons/austin-neighborhoods.geojson` : 'demo/fences.geojson', 'utf8'),
  )
  fences.features = fences.features.filter((one: Feature) => one.geometry.type.endsWith('Polygon'))
  return { name: shared ? 'Austin' : 'Warsaw', fixes, fences }
}

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
  for (const [externalId, track] of tracksOf(fixes)) {
    let before = new Set<string>()
    for (const { lat, lng, recordedAt } of track) {
      const inside = new Set(
        fences.features
          .filter((fence) => booleanPointInPolygon([lng, lat], fence))
          .map((fence) => fence.properties.name),
      )
      for (const name of inside) if (!before.has(name)) found.add(`${externalId}|${name}|entry|${recordedAt}`)
      for (const name of before) if (!inside.has(name)) found.add(`${externalId}|${name}|leave|${recordedAt}`)
      before = inside
    }
  }
  return found
}
