import type { FeatureCollection, MultiPolygon, Polygon } from 'geojson'
import { existsSync, readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'

const DATA = '../shared/data/'

/** For `skip` of a test that needs the reference data. */
export const withoutData = existsSync(DATA) ? false : `no reference data in ${DATA}`

export const readData = (path: string): string => {
  const bytes = readFileSync(DATA + path)
  return (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString()
}

export const readFeatures = (
  name: string,
): FeatureCollection<Polygon | MultiPolygon, Record<string, string>>['features'] =>
  JSON.parse(readData(`polygons/${name}`)).features

export const readRows = (path: string): string[][] =>
  readData(path)
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => line.split(','))
