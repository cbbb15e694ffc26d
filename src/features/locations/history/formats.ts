import type { HistoryFormat } from '../../../kit/http/history-answer.ts'
import { HAS_ACCURACY, HAS_ALTITUDE, HAS_BATTERY, HAS_HEADING, HAS_SPEED, TRIP_FINISH, TRIP_START } from '../events.ts'
import { parquet } from './point-cells.ts'
import type { PointFormatter } from './point-formatter.ts'
import { optionalJson, partialRowJson, POINT_MEMBERS, pointId, type PointMember, rowJson } from './point-json.ts'
import { degreesText, timeText } from './point-text.ts'
import { sameTracker, trackerIdAt, type PointRows } from './point-rows.ts'
import { continues } from './simplify-track.ts'

/** `array` is the rows alone, as a JSON array to put into another body. */
export type AnswerFormat = HistoryFormat | 'array'

/** Of rows from which `takeOff` took what is not among the members; left out: all of them. */
export const formatterOf = (format: AnswerFormat, members?: ReadonlySet<PointMember>): PointFormatter =>
  MAKERS[format](members)

/** Each row's text, with ids of trackers made once for the rows that follow each other. */
const eachRow = (
  rows: PointRows,
  from: number,
  to: number,
  text: (row: number, trackerId: string) => string,
): string => {
  let whole = ''
  let trackerId = ''
  for (let row = from; row < to; row++) {
    if (row === from || !sameTracker(rows, row - 1, rows, row)) trackerId = trackerIdAt(rows, row)
    whole += text(row, trackerId)
  }
  return whole
}

/** Puts a comma before every item but the first. */
const separator = (): (() => string) => {
  let first = true
  return () => {
    if (!first) return ',\n'
    first = false
    return '\n'
  }
}

type Members = ReadonlySet<PointMember> | undefined

const json = (members: Members): PointFormatter => {
  const comma = separator()
  const text = members === undefined ? rowJson : partialRowJson(members)
  return {
    start: () => '{"status":true,"data":[',
    rows: (rows, from, to) => eachRow(rows, from, to, (row, trackerId) => comma() + text(rows, row, trackerId)),
    end: (nextCursor, limit) => `],"page":null,"limit":${limit},"nextCursor":${JSON.stringify(nextCursor)}}`,
  }
}

const ndjson = (members: Members): PointFormatter => {
  const text = members === undefined ? rowJson : partialRowJson(members)
  return {
    start: () => '',
    rows: (rows, from, to) => eachRow(rows, from, to, (row, trackerId) => `${text(rows, row, trackerId)}\n`),
    end: () => '',
  }
}

const geojson = (members: Members): PointFormatter => {
  const comma = separator()
  const [hasTracker, hasTime] = [members?.has('trackerId') ?? true, members?.has('recordedAt') ?? true]
  const feature = (rows: PointRows, row: number, trackerId: string): string => {
    const at = rows.recordedAt[row]
    const altitude = (rows.flags[row] & HAS_ALTITUDE) === 0 ? '' : `,${rows.altitude[row] / 100}`
    return (
      `{"type":"Feature","id":"${pointId(trackerId, at)}",` +
      `"geometry":{"type":"Point","coordinates":[${degreesText(rows.lng[row])},${degreesText(rows.lat[row])}${altitude}]},` +
      `"properties":{${`${hasTracker ? `,"trackerId":"${trackerId}"` : ''}${hasTime ? `,"recordedAt":"${timeText(at)}"` : ''}${optionalJson(rows, row)}`.slice(1)}}}`
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

/** GPX 1.1: a track for each tracker, a segment for each piece of it (see `continues`). Rows come by tracker. */
const gpx = (): PointFormatter => {
  let last: PointRows | undefined
  let lastRow = 0
  const point = (rows: PointRows, row: number, trackerId: string): string => {
    const flags = rows.flags[row]
    let before = ''
    if (last === undefined) before = openTrack(trackerId)
    else if (!sameTracker(last, lastRow, rows, row)) before = `</trkseg></trk>\n${openTrack(trackerId)}`
    else if (!continues(last, lastRow, rows, row)) before = '</trkseg>\n<trkseg>\n'
    last = rows
    lastRow = row
    const altitude = (flags & HAS_ALTITUDE) === 0 ? '' : `<ele>${rows.altitude[row] / 100}</ele>`
    const speed = (flags & HAS_SPEED) === 0 ? '' : `<gpxtpx:speed>${rows.speed[row] / 100}</gpxtpx:speed>`
    const course = (flags & HAS_HEADING) === 0 ? '' : `<gpxtpx:course>${rows.heading[row] / 10}</gpxtpx:course>`
    const extensions =
      speed + course === ''
        ? ''
        : `<extensions><gpxtpx:TrackPointExtension>${speed}${course}</gpxtpx:TrackPointExtension></extensions>`
    return (
      `${before}<trkpt lat="${degreesText(rows.lat[row])}" lon="${degreesText(rows.lng[row])}">${altitude}` +
      `<time>${timeText(rows.recordedAt[row])}</time>${extensions}</trkpt>\n`
    )
  }
  return {
    start: () =>
      '<?xml version="1.0" encoding="UTF-8"?>\n<gpx version="1.1" creator="Waymark" xmlns="http://www.topografix.com/GPX/1/1" ' +
      'xmlns:gpxtpx="http://www.garmin.com/xmlschemas/TrackPointExtension/v2">\n',
    rows: (rows, from, to) => eachRow(rows, from, to, (row, trackerId) => point(rows, row, trackerId)),
    end: () => `${last === undefined ? '' : '</trkseg></trk>\n'}</gpx>\n`,
  }
}

const openTrack = (trackerId: string): string => `<trk><name>${trackerId}</name><trkseg>\n`

const array = (members: Members): PointFormatter => ({ ...json(members), start: () => '[', end: () => ']' })

const MAKERS: { [format in AnswerFormat]: (members: Members) => PointFormatter } = {
  json,
  array,
  ndjson,
  geojson,
  csv,
  gpx,
  parquet,
}
