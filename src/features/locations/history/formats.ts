import type { HistoryFormat } from '../../../kit/http/history-answer.ts'
import { type ParquetColumn, ParquetRows, type ParquetValue } from '../../../kit/http/parquet-rows.ts'
import { HAS_ACCURACY, HAS_ALTITUDE, HAS_BATTERY, HAS_HEADING, HAS_SPEED, TRIP_FINISH, TRIP_START } from '../events.ts'
import { eachRow, nameMember, type NameOf, type PointFormatter, separator } from './point-formatter.ts'
import { optionalJson, partialRowJson, POINT_MEMBERS, pointId, type PointMember } from './point-json.ts'
import { PointJsonBytes } from './point-json-bytes.ts'
import { degreesText, timeText } from './point-text.ts'
import { sameTracker, trackerIdAt, type PointRows } from './point-rows.ts'
import { continues, type Continues } from './simplify-track.ts'
import { gpx, lines } from './track-formats.ts'

/** `array` is only the rows, as a JSON array for embedding in another body; `lines` is GeoJSON that draws tracks. */
export type AnswerFormat = HistoryFormat | 'array' | 'lines'

export const SHOWS_NAMES: ReadonlySet<AnswerFormat> = new Set(['geojson', 'lines', 'gpx'])

export interface FormatOptions {
  /** Members of a row to write, see `takeOff`; default: all. */
  members?: ReadonlySet<PointMember>
  nameOf?: NameOf
  /** Decides where tracks are cut. */
  continues?: Continues
}

export const formatterOf = (format: AnswerFormat, options: FormatOptions = {}): PointFormatter =>
  MAKERS[format](options.members, options.nameOf ?? (() => undefined), options.continues ?? continues)

type Members = ReadonlySet<PointMember> | undefined

const json = (members: Members): PointFormatter => {
  const comma = separator()
  return {
    start: () => '{"status":true,"data":[',
    rows: members === undefined ? allAsItems() : partsOf(members, (text) => comma() + text),
    end: (nextCursor, limit) => `],"page":null,"limit":${limit},"nextCursor":${JSON.stringify(nextCursor)}}`,
  }
}

const ndjson = (members: Members): PointFormatter => {
  const bytes = new PointJsonBytes()
  return {
    start: () => '',
    rows:
      members === undefined
        ? (rows, from, to) => bytes.write(rows, from, to, '', '\n', '\n')
        : partsOf(members, (text) => `${text}\n`),
    end: () => '',
  }
}

/** Complete rows as the items of an array. */
const allAsItems = (): PointFormatter['rows'] => {
  const comma = separator()
  const bytes = new PointJsonBytes()
  return (rows, from, to) => bytes.write(rows, from, to, comma(), ',\n', '')
}

const partsOf = (members: ReadonlySet<PointMember>, around: (text: string) => string): PointFormatter['rows'] => {
  const text = partialRowJson(members)
  return (rows, from, to) => eachRow(rows, from, to, (row, trackerId) => around(text(rows, row, trackerId)))
}

const geojson = (members: Members, nameOf: NameOf): PointFormatter => {
  const comma = separator()
  const name = members === undefined ? nameMember(nameOf) : () => ''
  const [hasTracker, hasTime] = [members?.has('trackerId') ?? true, members?.has('recordedAt') ?? true]
  const feature = (rows: PointRows, row: number, trackerId: string): string => {
    const at = rows.recordedAt[row]
    const altitude = (rows.flags[row] & HAS_ALTITUDE) === 0 ? '' : `,${rows.altitude[row] / 100}`
    return (
      `{"type":"Feature","id":"${pointId(trackerId, at)}",` +
      `"geometry":{"type":"Point","coordinates":[${degreesText(rows.lng[row])},${degreesText(rows.lat[row])}${altitude}]},` +
      `"properties":{${`${hasTracker ? `,"trackerId":"${trackerId}"` : ''}${name(trackerId)}${hasTime ? `,"recordedAt":"${timeText(at)}"` : ''}${optionalJson(rows, row)}`.slice(1)}}}`
    )
  }
  return {
    start: () => '{"type":"FeatureCollection","features":[',
    rows: (rows, from, to) => eachRow(rows, from, to, (row, trackerId) => comma() + feature(rows, row, trackerId)),
    end: () => ']}',
  }
}

const csv = (members: Members): PointFormatter => {
  const chosen = POINT_MEMBERS.filter((member) => member === '_id' || (members?.has(member) ?? true))
  const hasAll = chosen.length === POINT_MEMBERS.length
  const all = (rows: PointRows, row: number, trackerId: string): string[] => {
    const at = rows.recordedAt[row]
    const flags = rows.flags[row]
    const cell = (flag: number, value: number): string => ((flags & flag) === 0 ? '' : String(value))
    const trip = (flags & TRIP_START) !== 0 ? 'start' : (flags & TRIP_FINISH) !== 0 ? 'finish' : ''
    const attributes = rows.attributes[row] === '' ? '' : `"${rows.attributes[row].replaceAll('"', '""')}"`
    return [
      pointId(trackerId, at),
      trackerId,
      timeText(at),
      degreesText(rows.lat[row]),
      degreesText(rows.lng[row]),
      cell(HAS_ACCURACY, rows.accuracy[row] / 100),
      cell(HAS_ALTITUDE, rows.altitude[row] / 100),
      cell(HAS_SPEED, rows.speed[row] / 100),
      cell(HAS_HEADING, rows.heading[row] / 10),
      cell(HAS_BATTERY, rows.battery[row] / 100),
      trip,
      attributes,
    ]
  }
  const places = chosen.map((member) => POINT_MEMBERS.indexOf(member))
  const line = (cells: string[]): string => `${(hasAll ? cells : places.map((place) => cells[place])).join(',')}\n`
  return {
    start: () => `${chosen.join(',')}\n`,
    rows: (rows, from, to) => eachRow(rows, from, to, (row, trackerId) => line(all(rows, row, trackerId))),
    end: () => '',
  }
}

/** A member's value in a table of plain columns; undefined if the point has none. */
type Cell = (rows: PointRows, row: number, trackerId: string) => ParquetValue

const CELLS: { [member in PointMember]: Cell } = {
  _id: (rows, row, trackerId) => pointId(trackerId, rows.recordedAt[row]),
  trackerId: (_rows, _row, trackerId) => trackerId,
  recordedAt: (rows, row) => rows.recordedAt[row],
  lat: (rows, row) => rows.lat[row] / 1e7,
  lng: (rows, row) => rows.lng[row] / 1e7,
  accuracy: (rows, row) => ((rows.flags[row] & HAS_ACCURACY) === 0 ? undefined : rows.accuracy[row] / 100),
  altitude: (rows, row) => ((rows.flags[row] & HAS_ALTITUDE) === 0 ? undefined : rows.altitude[row] / 100),
  speed: (rows, row) => ((rows.flags[row] & HAS_SPEED) === 0 ? undefined : rows.speed[row] / 100),
  heading: (rows, row) => ((rows.flags[row] & HAS_HEADING) === 0 ? undefined : rows.heading[row] / 10),
  battery: (rows, row) => ((rows.flags[row] & HAS_BATTERY) === 0 ? undefined : rows.battery[row] / 100),
  trip: (rows, row) =>
    (rows.flags[row] & TRIP_START) !== 0 ? 'start' : (rows.flags[row] & TRIP_FINISH) !== 0 ? 'finish' : undefined,
  attributes: (rows, row) => rows.attributes[row] || undefined,
}

const REQUIRED: { [member in PointMember]?: ParquetColumn['type'] } = {
  _id: 'text',
  trackerId: 'text',
  recordedAt: 'time',
  lat: 'number',
  lng: 'number',
}
const OPTIONAL_TEXTS: readonly PointMember[] = ['trip', 'attributes']

/** Answers are built off the event loop, so a group may take long. */
const GROUP_ROWS = 32_768

/** Parquet: a column for each member, attributes as JSON text. */
const parquet = (members: Members): PointFormatter => {
  const chosen = POINT_MEMBERS.filter((member) => member === '_id' || (members?.has(member) ?? true))
  const writer = new ParquetRows(
    chosen.map((name): ParquetColumn => {
      const type = REQUIRED[name]
      return type === undefined
        ? { name, type: OPTIONAL_TEXTS.includes(name) ? 'text' : 'number', isOptional: true }
        : { name, type }
    }),
    GROUP_ROWS,
  )
  const cells = chosen.map((member) => CELLS[member])
  return {
    start: () => writer.take(),
    rows: (rows, from, to) => {
      let trackerId = ''
      for (let row = from; row < to; row++) {
        if (row === from || !sameTracker(rows, row - 1, rows, row)) trackerId = trackerIdAt(rows, row)
        writer.add(cells.map((cell) => cell(rows, row, trackerId)))
      }
      return writer.take()
    },
    end: () => writer.end(),
  }
}

const array = (members: Members): PointFormatter => ({ ...json(members), start: () => '[', end: () => ']' })

const MAKERS: { [format in AnswerFormat]: (members: Members, nameOf: NameOf, continues: Continues) => PointFormatter } =
  {
    json,
    array,
    ndjson,
    geojson,
    lines: (_members, nameOf, continues) => lines(nameOf, continues),
    csv,
    gpx: (_members, nameOf, continues) => gpx(nameOf, continues),
    parquet,
  }
