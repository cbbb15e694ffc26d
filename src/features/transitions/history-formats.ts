import { listOf } from '../../kit/formats/feature-writers.ts'
import type { HistoryFormat } from '../../kit/http/history-answer.ts'
import type { ParquetColumn, ParquetValue } from '../../kit/http/parquet-rows.ts'
import { jsonFormatter, ndjsonFormatter, type RowFormatter } from '../../kit/http/written-rows.ts'
import type { PointValue } from './events.ts'
import { TRANSITION_MEMBERS, transitionShown, type TransitionMember, type TransitionRow } from './views.ts'
import { gpxLongitude, plainDegrees } from '../../kit/formats/plain-degrees.ts'

type TransitionFormatter = RowFormatter<TransitionRow>

type Members = ReadonlySet<TransitionMember>

/** Writes only these members and the id; `gpx` has its own. */
export const formatterOf = (
  format: HistoryFormat,
  members: Members = new Set(TRANSITION_MEMBERS),
): Promise<TransitionFormatter> => Promise.resolve(MAKERS[format](members))

const chosen = (row: { [member: string]: unknown }, members: Members): { [member: string]: unknown } =>
  Object.fromEntries(Object.entries(row).filter(([name]) => name === '_id' || members.has(name as TransitionMember)))

const jsonText =
  (members: Members) =>
  (row: TransitionRow): string =>
    JSON.stringify(chosen(transitionShown(row), members))

const geojson = (members: Members): TransitionFormatter => ({
  start: () => '{"type":"FeatureCollection","features":[',
  rows: listOf((row) => {
    const { lng, lat, altitude } = row.point
    const { _id, ...properties } = chosen(transitionShown(row), members)
    const coordinates = altitude === undefined ? [lng, lat] : [lng, lat, altitude]
    return JSON.stringify({ type: 'Feature', id: _id, geometry: { type: 'Point', coordinates }, properties })
  }),
  end: () => ']}',
})

interface Column extends ParquetColumn {
  member: TransitionMember
  of(row: TransitionRow): ParquetValue
}

const own = (name: Exclude<TransitionMember, 'point' | 'at'>): Column => ({
  name,
  member: name,
  type: 'text',
  of: (row) => row[name],
})
const measured = (name: 'accuracy' | 'altitude' | 'speed' | 'heading' | 'battery'): Column => ({
  name,
  member: 'point',
  type: 'number',
  isOptional: true,
  of: ({ point }) => point[name],
})
const attributesOf = ({ attributes }: PointValue): string | undefined => attributes && JSON.stringify(attributes)

/** Columns of `csv` and `parquet`: the point's follow the transition's own. */
const COLUMNS: Column[] = [
  own('_id'),
  own('trackerId'),
  own('geofenceId'),
  own('geofenceGroupId'),
  own('type'),
  { name: 'at', member: 'at', type: 'time', of: ({ at }) => at },
  own('cause'),
  { name: 'recordedAt', member: 'point', type: 'time', of: ({ point }) => point.recordedAt },
  { name: 'lat', member: 'point', type: 'number', of: ({ point }) => point.lat },
  { name: 'lng', member: 'point', type: 'number', of: ({ point }) => point.lng },
  measured('accuracy'),
  measured('altitude'),
  measured('speed'),
  measured('heading'),
  measured('battery'),
  { name: 'attributes', member: 'point', type: 'text', isOptional: true, of: ({ point }) => attributesOf(point) },
]

const columnsOf = (members: Members): Column[] =>
  COLUMNS.filter(({ member }) => member === '_id' || members.has(member))

const csv = (members: Members): TransitionFormatter => {
  const columns = columnsOf(members)
  const cell = ({ name, type, of }: Column, row: TransitionRow): string => {
    const value = of(row)
    if (value === undefined) return ''
    if (type === 'time') return new Date(value as number).toISOString()
    return name === 'attributes' ? `"${String(value).replaceAll('"', '""')}"` : String(value)
  }
  return {
    start: () => `${columns.map(({ name }) => name).join(',')}\n`,
    rows: (rows) => rows.map((row) => `${columns.map((column) => cell(column, row)).join(',')}\n`).join(''),
    end: () => '',
  }
}

/** Few, since a group is built synchronously on the event loop. */
const GROUP_ROWS = 1_024

const parquet = async (members: Members): Promise<TransitionFormatter> => {
  const { ParquetRows } = await import('../../kit/http/parquet-rows.ts')
  const columns = columnsOf(members)
  const writer = new ParquetRows(
    columns.map(({ name, type, isOptional }) => ({ name, type, isOptional })),
    GROUP_ROWS,
  )
  return {
    start: () => writer.take(),
    rows: (rows) => {
      for (const row of rows) writer.add(columns.map(({ of }) => of(row)))
      return writer.take()
    },
    end: () => writer.end(),
  }
}

/** GPX 1.1: a waypoint for each transition, with its members as extensions. */
const gpx = (): TransitionFormatter => ({
  start: () =>
    '<?xml version="1.0" encoding="UTF-8"?>\n<gpx version="1.1" creator="Waymark" xmlns="http://www.topografix.com/GPX/1/1" xmlns:waymark="urn:waymark:transition">\n',
  rows: (rows) => rows.map(waypoint).join(''),
  end: () => '</gpx>\n',
})

const waypoint = ({ _id, trackerId, geofenceId, geofenceGroupId, type, at, cause, point }: TransitionRow): string => {
  const altitude = point.altitude === undefined ? '' : `<ele>${point.altitude}</ele>`
  const members = Object.entries({ _id, trackerId, geofenceId, geofenceGroupId, cause })
    .map(([name, value]) => `<waymark:${name}>${value}</waymark:${name}>`)
    .join('')
  return (
    `<wpt lat="${plainDegrees(point.lat)}" lon="${gpxLongitude(point.lng)}">${altitude}<time>${new Date(at).toISOString()}</time><name>${type} ${geofenceId}</name>` +
    `<type>${type}</type><extensions>${members}</extensions></wpt>\n`
  )
}

const MAKERS: { [format in HistoryFormat]: (members: Members) => TransitionFormatter | Promise<TransitionFormatter> } =
  {
    json: (members) => jsonFormatter(jsonText(members)),
    ndjson: (members) => ndjsonFormatter(jsonText(members)),
    geojson,
    csv,
    gpx,
    parquet,
  }
