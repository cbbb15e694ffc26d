import { HAS_ACCURACY, HAS_ALTITUDE, HAS_BATTERY, HAS_HEADING, HAS_SPEED, TRIP_FINISH, TRIP_START } from './events.ts'
import { base36, degreesText, timeText } from './point-text.ts'
import { sameTracker, trackerIdAt, type PointRows } from './point-rows.ts'
import { continues } from './simplify-track.ts'

export type PointFormat = 'json' | 'geojson' | 'gpx' | 'csv' | 'ndjson' | 'parquet'

/** How each format is served. */
export const FORMATS: { [format in PointFormat]: { contentType: string; fileExtension: string } } = {
  json: { contentType: 'application/json', fileExtension: 'json' },
  geojson: { contentType: 'application/geo+json', fileExtension: 'geojson' },
  gpx: { contentType: 'application/gpx+xml', fileExtension: 'gpx' },
  csv: { contentType: 'text/csv; charset=utf-8', fileExtension: 'csv' },
  ndjson: { contentType: 'application/x-ndjson', fileExtension: 'ndjson' },
  parquet: { contentType: 'application/vnd.apache.parquet', fileExtension: 'parquet' },
}

/** Makes text of points that come piece by piece. */
export interface PointFormatter {
  start(): string
  rows(rows: PointRows, from: number, to: number): string
  /** `nextCursor` is null where nothing follows; `limit` is the largest number of rows of this answer, null for none. */
  end(nextCursor: string | null, limit: number | null): string
}

/** `array` is the rows alone, as a JSON array to put into another body. */
export type TextFormat = Exclude<PointFormat, 'parquet'> | 'array'

export const formatterOf = (format: TextFormat): PointFormatter => MAKERS[format]()

/** The id of a point: its tracker and its time to the base 36. */
export const pointId = (trackerId: string, recordedAt: number): string => `${trackerId}.${base36(recordedAt)}`

/** The tracker and time that a point's id names, or undefined for what is no such id. */
export const parsePointId = (id: string): { trackerId: string; recordedAt: number } | undefined => {
  const [, trackerId, time] = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([0-9a-z]{1,9})$/.exec(id) ?? []
  return trackerId === undefined ? undefined : { trackerId, recordedAt: Number.parseInt(time, 36) }
}

/** A row of history as JSON text. */
export const rowJson = (rows: PointRows, row: number, trackerId = trackerIdAt(rows, row)): string => {
  const at = rows.recordedAt[row]
  return `{"_id":"${pointId(trackerId, at)}","trackerId":"${trackerId}","recordedAt":"${timeText(at)}",` +
    `"lat":${degreesText(rows.lat[row])},"lng":${degreesText(rows.lng[row])}${optionalJson(rows, row)}}`
}

/** What the point was sent with beyond its place, as members of a JSON object, each after a comma. */
const optionalJson = (rows: PointRows, row: number): string => {
  const flags = rows.flags[row]
  let text = ''
  if ((flags & HAS_ACCURACY) !== 0) text += `,"accuracy":${rows.accuracy[row] / 100}`
  if ((flags & HAS_ALTITUDE) !== 0) text += `,"altitude":${rows.altitude[row] / 100}`
  if ((flags & HAS_SPEED) !== 0) text += `,"speed":${rows.speed[row] / 100}`
  if ((flags & HAS_HEADING) !== 0) text += `,"heading":${rows.heading[row] / 10}`
  if ((flags & HAS_BATTERY) !== 0) text += `,"battery":${rows.battery[row] / 100}`
  if ((flags & TRIP_START) !== 0) text += ',"trip":"start"'
  if ((flags & TRIP_FINISH) !== 0) text += ',"trip":"finish"'
  if (rows.attributes[row] !== '') text += `,"attributes":${rows.attributes[row]}`
  return text
}

/** Each row's text, with ids of trackers made once for the rows that follow each other. */
const eachRow = (rows: PointRows, from: number, to: number, text: (row: number, trackerId: string) => string): string => {
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

const json = (): PointFormatter => {
  const comma = separator()
  return {
    start: () => '{"status":true,"data":[',
    rows: (rows, from, to) => eachRow(rows, from, to, (row, trackerId) => comma() + rowJson(rows, row, trackerId)),
    end: (nextCursor, limit) => `],"page":null,"limit":${limit},"nextCursor":${JSON.stringify(nextCursor)}}`,
  }
}

const ndjson = (): PointFormatter => ({
  start: () => '',
  rows: (rows, from, to) => eachRow(rows, from, to, (row, trackerId) => `${rowJson(rows, row, trackerId)}\n`),
  end: () => '',
})

const geojson = (): PointFormatter => {
  const comma = separator()
  const feature = (rows: PointRows, row: number, trackerId: string): string => {
    const at = rows.recordedAt[row]
    const altitude = (rows.flags[row] & HAS_ALTITUDE) === 0 ? '' : `,${rows.altitude[row] / 100}`
    return `{"type":"Feature","id":"${pointId(trackerId, at)}",` +
      `"geometry":{"type":"Point","coordinates":[${degreesText(rows.lng[row])},${degreesText(rows.lat[row])}${altitude}]},` +
      `"properties":{"trackerId":"${trackerId}","recordedAt":"${timeText(at)}"${optionalJson(rows, row)}}}`
  }
  return {
    start: () => '{"type":"FeatureCollection","features":[',
    rows: (rows, from, to) => eachRow(rows, from, to, (row, trackerId) => comma() + feature(rows, row, trackerId)),
    end: () => ']}',
  }
}

const CSV_HEADER = '_id,trackerId,recordedAt,lat,lng,accuracy,altitude,speed,heading,battery,trip,attributes\n'

const csv = (): PointFormatter => {
  const line = (rows: PointRows, row: number, trackerId: string): string => {
    const at = rows.recordedAt[row]
    const flags = rows.flags[row]
    const cell = (flag: number, value: number): string => ((flags & flag) === 0 ? '' : String(value))
    const trip = (flags & TRIP_START) !== 0 ? 'start' : (flags & TRIP_FINISH) !== 0 ? 'finish' : ''
    const attributes = rows.attributes[row] === '' ? '' : `"${rows.attributes[row].replaceAll('"', '""')}"`
    return `${pointId(trackerId, at)},${trackerId},${timeText(at)},${degreesText(rows.lat[row])},${degreesText(rows.lng[row])},` +
      `${cell(HAS_ACCURACY, rows.accuracy[row] / 100)},${cell(HAS_ALTITUDE, rows.altitude[row] / 100)},` +
      `${cell(HAS_SPEED, rows.speed[row] / 100)},${cell(HAS_HEADING, rows.heading[row] / 10)},` +
      `${cell(HAS_BATTERY, rows.battery[row] / 100)},${trip},${attributes}\n`
  }
  return {
    start: () => CSV_HEADER,
    rows: (rows, from, to) => eachRow(rows, from, to, (row, trackerId) => line(rows, row, trackerId)),
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
    const extensions = speed + course === '' ? '' :
      `<extensions><gpxtpx:TrackPointExtension>${speed}${course}</gpxtpx:TrackPointExtension></extensions>`
    return `${before}<trkpt lat="${degreesText(rows.lat[row])}" lon="${degreesText(rows.lng[row])}">${altitude}` +
      `<time>${timeText(rows.recordedAt[row])}</time>${extensions}</trkpt>\n`
  }
  return {
    start: () => '<?xml version="1.0" encoding="UTF-8"?>\n<gpx version="1.1" creator="Waymark" xmlns="http://www.topografix.com/GPX/1/1" ' +
      'xmlns:gpxtpx="http://www.garmin.com/xmlschemas/TrackPointExtension/v2">\n',
    rows: (rows, from, to) => eachRow(rows, from, to, (row, trackerId) => point(rows, row, trackerId)),
    end: () => `${last === undefined ? '' : '</trkseg></trk>\n'}</gpx>\n`,
  }
}

const openTrack = (trackerId: string): string => `<trk><name>${trackerId}</name><trkseg>\n`

const array = (): PointFormatter => ({ ...json(), start: () => '[', end: () => ']' })

const MAKERS: { [format in TextFormat]: () => PointFormatter } = { json, array, ndjson, geojson, csv, gpx }
