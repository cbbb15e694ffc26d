import { type ParquetColumn, type ParquetValue, ParquetRows } from '../../../kit/http/parquet-rows.ts'
import { HAS_ACCURACY, HAS_ALTITUDE, HAS_BATTERY, HAS_HEADING, HAS_SPEED, TRIP_FINISH, TRIP_START } from '../events.ts'
import type { PointFormatter } from './point-formatter.ts'
import { POINT_MEMBERS, pointId, type PointMember } from './point-json.ts'
import { sameTracker, trackerIdAt, type PointRows } from './point-rows.ts'

/** A member's value in a table of plain columns; undefined where the point has none. */
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

/** Answers are made away from the event loop, so a group may take its time. */
const GROUP_ROWS = 32_768

/** Parquet: a column for each member, attributes as JSON text. */
export const parquet = (members: ReadonlySet<PointMember> = new Set(POINT_MEMBERS)): PointFormatter => {
  const chosen = POINT_MEMBERS.filter((member) => member === '_id' || members.has(member))
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
