import { EARTH_RADIUS_METERS } from '../../geo/distance.ts'
import { POINTS } from './history-tables.ts'

/** Rules by which legs are made and summed. */
export interface LegRules {
  /** Points further apart in time make no leg. */
  gapMs: number
  /** Legs are summed in steps of this many ms since the epoch; each period begins with one. */
  stepMs: number
}

/** Points ahead of the clock do not count. */
export const WAS_NOT_AHEAD = 'version >= 9223372036854775808'
/** A leg is driven where it is faster than 1 m/s; slower ones are the noise of a position at rest. */
const IS_DRIVEN = 'meters * 1000 > ms'
/** The speed of a leg whose end has none: over 100 m/s the position is wrong. */
const speedOfLeg = 'if(ms > 0 AND meters * 10 <= ms, meters * 1000 / ms, -1)'
const RADIANS = Math.PI / 180 / 1e7

/** Great circle between two places of columns in 1e-7 degree, as in `distanceMeters`. */
const metersBetween = (aLat: string, aLng: string, bLat: string, bLng: string): string =>
  `${2 * EARTH_RADIUS_METERS} * asin(sqrt(least(1, pow(sin((${bLat} - ${aLat}) * ${RADIANS / 2}), 2)
    + cos(${aLat} * ${RADIANS}) * cos(${bLat} * ${RADIANS}) * pow(sin((${bLng} - ${aLng}) * ${RADIANS / 2}), 2))))`

/**
 * One row for each tracker and step of these points: its first and last point, and the sums of the legs between. A leg
 * counts where it ends; legs between steps are added by `periodsOf`. `of` are the columns that tell trackers apart.
 */
export const stepsOf = (conditions: string, { of = 'trackerId' }: { of?: string } = {}): string => `
SELECT ${of}, step, min(t) AS firstAt, max(t) AS lastAt, argMin(latE7, t) AS firstLat, argMin(lngE7, t) AS firstLng,
  argMax(latE7, t) AS lastLat, argMax(lngE7, t) AS lastLng, argMin(hasSpeed, t) AS firstHasSpeed,
  sum(meters) AS meters, sumIf(meters, isDriven) AS drivenMeters, sumIf(ms, isDriven) AS drivingMs,
  sumIf(ms, NOT isDriven) AS stoppedMs, max(speed) AS maxSpeed
FROM (
  SELECT ${of}, t, step, latE7, lngE7, hasSpeed, if(isLeg, t - t0, 0) AS ms,
    if(isLeg, ${metersBetween('lat0', 'lng0', 'latE7', 'lngE7')}, 0) AS meters, ${IS_DRIVEN} AS isDriven,
    if(hasSpeed, speedCms / 100, ${speedOfLeg}) AS speed
  FROM (
    SELECT ${of}, t, step, latE7, lngE7, speedCms, hasSpeed, lagInFrame(t, 1, t) OVER byTime AS t0,
      lagInFrame(latE7, 1, latE7) OVER byTime AS lat0, lagInFrame(lngE7, 1, lngE7) OVER byTime AS lng0,
      t0 < t AND t - t0 <= {gapMs:Int64} AND intDiv(t0, {stepMs:Int64}) = step AS isLeg
    FROM (
      SELECT ${of}, recordedAt, toUnixTimestamp64Milli(recordedAt) AS t, intDiv(t, {stepMs:Int64}) AS step,
        toInt64(latE7) AS latE7, toInt64(lngE7) AS lngE7, speedCms, bitTest(flags, 2) AS hasSpeed
      FROM ${POINTS} FINAL WHERE ${conditions}
    )
    WINDOW byTime AS (PARTITION BY ${of} ORDER BY recordedAt ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
  )
)
GROUP BY ${of}, step`

/** Steps with the leg to each from the one before, summed for each tracker and period. */
export const periodsOf = (steps: string): string => `
SELECT trackerId, roundDown(toInt64(step * {stepMs:Int64}), CAST({starts:Array(Int64)}, 'Array(Int64)')) AS period,
  sum(meters + ledMeters) AS meters, sum(drivenMeters + if(isDriven, ledMeters, 0)) AS drivenMeters,
  sum(drivingMs + if(isDriven, ms, 0)) AS drivingMs, sum(stoppedMs + if(isDriven, 0, ms)) AS stoppedMs,
  max(greatest(maxSpeed, ledSpeed)) AS maxSpeed, min(firstAt) AS firstAt, max(lastAt) AS lastAt
FROM (
  SELECT *, ledMeters * 1000 > ms AS isDriven,
    if(NOT firstHasSpeed AND ms > 0 AND ledMeters * 10 <= ms, ledMeters * 1000 / ms, -1) AS ledSpeed
  FROM (
    SELECT *, lagInFrame(lastAt, 1, firstAt) OVER byStep AS t0, lagInFrame(lastLat, 1, firstLat) OVER byStep AS lat0,
      lagInFrame(lastLng, 1, firstLng) OVER byStep AS lng0, firstAt - t0 <= {gapMs:Int64} AS isLeg,
      if(isLeg, firstAt - t0, 0) AS ms, if(isLeg, ${metersBetween('lat0', 'lng0', 'firstLat', 'firstLng')}, 0) AS ledMeters
    FROM (${steps})
    WINDOW byStep AS (PARTITION BY trackerId ORDER BY step ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
  )
)
GROUP BY trackerId, period`
