import { type PointFilter, pointConditions, POINTS_SETTINGS, type Statement } from './points.ts'
import { POINTS } from './history-tables.ts'

/**
 * Times when trackers were within a radius of places: for each place (from 1) and minute the first and the last time,
 * ms since the epoch, in their order.
 */
export const selectStays = (
  filter: PointFilter,
  stops: readonly { lat: number; lng: number }[],
  radiusMeters: number,
): Statement => {
  const { conditions, parameters } = pointConditions(filter)
  const sql = `SELECT stop, min(ms) AS since, max(ms) AS until FROM (
      SELECT toUnixTimestamp64Milli(recordedAt) AS ms, latE7 / 1e7 AS lat, lngE7 / 1e7 AS lng
      FROM ${POINTS} FINAL WHERE ${conditions.join(' AND ')}
    ) ARRAY JOIN arrayEnumerate({stopLats:Array(Float64)}) AS stop
    WHERE greatCircleDistance(lng, lat, {stopLngs:Array(Float64)}[stop], {stopLats:Array(Float64)}[stop]) <= {radius:Float64}
    GROUP BY stop, intDiv(ms, 60000) ORDER BY stop, since ${POINTS_SETTINGS}`
  const lats = stops.map(({ lat }) => lat)
  const lngs = stops.map(({ lng }) => lng)
  return { sql, parameters: { ...parameters, stopLats: lats, stopLngs: lngs, radius: radiusMeters } }
}
