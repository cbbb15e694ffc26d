// Reference data that may lie beside the project. .ci/run knows by the import of this file which tests read it.
import type { FeatureCollection, MultiPolygon, Polygon } from 'geojson'
import { existsSync, readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { HAS_ACCURACY, HAS_ALTITUDE, HAS_HEADING, HAS_SPEED } from '../../src/features/locations/events.ts'
import { type PlainPoint, uuidOf } from './trace-batches.ts'

const DATA = '../shared/data/'

/** For `skip` of a test that needs the reference data. */
export const withoutData = existsSync(DATA) ? false : `needs ${DATA}`

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

/** The points of a trace, in the order of the file. */
export const readTrace = (name: string, organizationId: string): PlainPoint[] => {
  const [header, ...lines] = readData(`traces/${name}.csv.gz`).trim().split('\n')
  const columns = header.split(',')
  const place = (column: string): number => columns.indexOf(column)
  const [tracker, timestamp, lat, lng] = ['trackerId', 'timestamp', 'lat', 'lng'].map(place)
  const [speed, accuracy, heading, altitude] = ['speed', 'accuracy', 'heading', 'altitude'].map(place)
  return lines.map((line) => {
    const cells = line.split(',')
    const point: PlainPoint = {
      organizationId,
      trackerId: uuidOf(cells[tracker]),
      recordedAt: Date.parse(cells[timestamp]),
      latE7: Math.round(Number(cells[lat]) * 1e7),
      lngE7: Math.round(Number(cells[lng]) * 1e7),
      flags: 0,
    }
    const scaled = (cell: string, flag: number, scale: number): number | undefined => {
      if (cell === '') return undefined
      point.flags |= flag
      return Math.round(Number(cell) * scale)
    }
    point.speedCms = scaled(cells[speed], HAS_SPEED, 100)
    point.accuracyCm = scaled(cells[accuracy], HAS_ACCURACY, 100)
    point.headingTenths = scaled(cells[heading], HAS_HEADING, 10)
    point.altitudeCm = scaled(cells[altitude], HAS_ALTITUDE, 100)
    return point
  })
}
