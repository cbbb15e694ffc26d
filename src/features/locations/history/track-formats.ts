import { xmlText } from '../../../kernel/markup.ts'
import { gpxLongitude } from '../../../kit/formats/plain-degrees.ts'
import { HAS_ALTITUDE, HAS_HEADING, HAS_SPEED } from '../events.ts'
import { eachRow, nameMember, type NameOf, type PointFormatter, separator } from './point-formatter.ts'
import { degreesText, timeText } from './point-text.ts'
import { sameTracker, type PointRows } from './point-rows.ts'
import type { Continues } from './simplify-track.ts'

/* Formats that draw tracks: their rows come by tracker, oldest first. `continues` decides where a track is cut. */

/** GPX 1.1: a track for each tracker, a segment for each of its pieces. */
export const gpx = (nameOf: NameOf, continues: Continues): PointFormatter => {
  let last: PointRows | undefined
  let lastRow = 0
  const point = (rows: PointRows, row: number, trackerId: string): string => {
    const flags = rows.flags[row]
    let before = ''
    if (last === undefined) before = openTrack(trackerId, nameOf)
    else if (!sameTracker(last, lastRow, rows, row)) before = `</trkseg></trk>\n${openTrack(trackerId, nameOf)}`
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
      `${before}<trkpt lat="${degreesText(rows.lat[row])}" lon="${gpxLongitude(rows.lng[row] / 1e7)}">${altitude}` +
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

const openTrack = (trackerId: string, nameOf: NameOf): string =>
  `<trk><name>${xmlText(nameOf(trackerId) ?? trackerId)}</name><src>${trackerId}</src><trkseg>\n`

/** Longer lines continue in another feature, which begins with the last point: a piece may be a day long. */
const LINE_POINTS_MAX = 20_000

/** GeoJSON: a LineString for each piece of a track, with the times of its points; a Point for a piece of one point. */
export const lines = (nameOf: NameOf, continues: Continues): PointFormatter => {
  const comma = separator()
  let piece = new LinePiece('')
  let last: PointRows | undefined
  let lastRow = 0
  const add = (rows: PointRows, row: number, trackerId: string): string => {
    const goesOn = last !== undefined && continues(last, lastRow, rows, row)
    last = rows
    lastRow = row
    if (goesOn && piece.count < LINE_POINTS_MAX) {
      piece.add(rows, row)
      return ''
    }
    const done = piece
    piece = goesOn ? done.continued() : new LinePiece(trackerId)
    piece.add(rows, row)
    return done.count === 0 ? '' : comma() + done.feature(nameOf)
  }
  return {
    start: () => '{"type":"FeatureCollection","features":[',
    rows: (rows, from, to) => eachRow(rows, from, to, (row, trackerId) => add(rows, row, trackerId)),
    end: () => `${piece.count === 0 ? '' : comma() + piece.feature(nameOf)}]}`,
  }
}

class LinePiece {
  count = 0
  private readonly trackerId: string
  private positions: string[] = []
  private times: string[] = []

  constructor(trackerId: string) {
    this.trackerId = trackerId
  }

  add(rows: PointRows, row: number): void {
    const altitude = (rows.flags[row] & HAS_ALTITUDE) === 0 ? '' : `,${rows.altitude[row] / 100}`
    this.positions.push(`[${degreesText(rows.lng[row])},${degreesText(rows.lat[row])}${altitude}]`)
    this.times.push(timeText(rows.recordedAt[row]))
    this.count++
  }

  /** The next piece, which begins at the end of this one. */
  continued(): LinePiece {
    const next = new LinePiece(this.trackerId)
    next.positions = this.positions.slice(-1)
    next.times = this.times.slice(-1)
    next.count = 1
    return next
  }

  feature(nameOf: NameOf): string {
    const [from, to] = [this.times[0], this.times[this.count - 1]]
    const geometry =
      this.count === 1
        ? `{"type":"Point","coordinates":${this.positions[0]}}`
        : `{"type":"LineString","coordinates":[${this.positions.join()}]}`
    return (
      `{"type":"Feature","geometry":${geometry},"properties":{"trackerId":"${this.trackerId}"${nameMember(nameOf)(this.trackerId)}` +
      `,"from":"${from}","to":"${to}","coordinateProperties":{"times":${JSON.stringify(this.times)}}}}`
    )
  }
}
