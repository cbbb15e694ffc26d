import { xmlText } from '../../kernel/markup.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { gpxLongitude, plainDegrees } from './plain-degrees.ts'

/** A record with its place, as GeoJSON and GPX show it. */
export interface PlacedRow {
  id: string
  name?: string
  /** When it is or was, RFC 3339. */
  time?: string
  lat: number
  lng: number
  properties: JsonObject
}

export interface RowWriter<Row> {
  start(): string
  rows(rows: readonly Row[]): string
  end(): string
}

/** Writes a row a line, with a comma before every row but the first. */
export const listOf = <Row>(text: (row: Row) => string): ((rows: readonly Row[]) => string) => {
  let comma = '\n'
  const item = (row: Row): string => {
    const whole = comma + text(row)
    comma = ',\n'
    return whole
  }
  return (rows) => rows.map(item).join('')
}

const listed = <Row>(start: string, text: (row: Row) => string, end: string): RowWriter<Row> => ({
  start: () => start,
  rows: listOf(text),
  end: () => end,
})

export const jsonWriter = (): RowWriter<JsonObject> => listed('[', (row) => JSON.stringify(row), '\n]\n')

/** GeoJSON (RFC 7946): a feature for each record, its members as properties. */
export const geojsonWriter = (): RowWriter<PlacedRow> =>
  listed(
    '{"type":"FeatureCollection","features":[',
    ({ id, lat, lng, properties }) =>
      JSON.stringify({ type: 'Feature', id, geometry: { type: 'Point', coordinates: [lng, lat] }, properties }),
    '\n]}\n',
  )

/** GPX 1.1: a waypoint for each record. */
export const gpxWriter = (): RowWriter<PlacedRow> => ({
  start: () =>
    '<?xml version="1.0" encoding="UTF-8"?>\n<gpx version="1.1" creator="Waymark" xmlns="http://www.topografix.com/GPX/1/1">\n',
  rows: (rows) => rows.map(waypoint).join(''),
  end: () => '</gpx>\n',
})

const waypoint = ({ id, name, time, lat, lng }: PlacedRow): string => {
  const at = time === undefined ? '' : `<time>${xmlText(time)}</time>`
  return `<wpt lat="${plainDegrees(lat)}" lon="${gpxLongitude(lng)}">${at}<name>${xmlText(name ?? id)}</name><cmt>${xmlText(id)}</cmt></wpt>\n`
}
