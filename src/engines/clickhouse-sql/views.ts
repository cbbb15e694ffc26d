import { POINTS, TRANSITIONS, TRIPS } from './history-tables.ts'
import { type Layout, named, onCluster } from './layout.ts'

/** The database of the views for analysts, beside that of the tables. */
const analysisOf = ({ database }: Pick<Layout, 'database'>): string => `${database}_analysis`

/**
 * Their queries, in degrees, meters, and UTC; docs/analysis.md explains every column. Without SETTINGS: a read-only
 * user could not use such a view.
 */
const VIEWS: { [view: string]: (table: (name: string) => string) => string } = {
  points: (table) => `
SELECT organizationId, trackerId, recordedAt, lat, lng, accuracy, altitude, speed, heading, battery, trip, attributes, ahead
FROM ${table(POINTS)} FINAL`,
  transitions: (table) => `
SELECT toUUIDOrZero(organizationId) AS organizationId, at, toUUIDOrZero(_id) AS id, toUUIDOrZero(trackerId) AS trackerId,
  toUUIDOrZero(geofenceId) AS geofenceId, toUUIDOrZero(geofenceGroupId) AS geofenceGroupId, type, cause,
  JSONExtract(point, 'lat', 'Nullable(Float64)') AS lat, JSONExtract(point, 'lng', 'Nullable(Float64)') AS lng
FROM ${table(TRANSITIONS)} FINAL`,
  trips: (table) => `
SELECT toUUIDOrZero(organizationId) AS organizationId, startedAt, toUUIDOrZero(_id) AS id,
  toUUIDOrZero(trackerId) AS trackerId, if(finishedAtMs = 0, NULL, fromUnixTimestamp64Milli(finishedAtMs, 'UTC')) AS finishedAt,
  distance, toBool(explicit) AS explicit
FROM ${table(TRIPS)} FINAL`,
  // A tuple, because the last of a column that may be NULL would be its last value instead.
  latest: (table) => `
SELECT organizationId, trackerId, last.1 AS recordedAt, last.2 AS lat, last.3 AS lng, last.4 AS accuracy,
  last.5 AS altitude, last.6 AS speed, last.7 AS heading, last.8 AS battery, last.9 AS attributes
FROM (
  SELECT organizationId, trackerId,
    argMax((recordedAt, lat, lng, accuracy, altitude, speed, heading, battery, attributes), recordedAt) AS last
  FROM ${table(POINTS)} FINAL WHERE version >= 9223372036854775808 GROUP BY organizationId, trackerId
)`,
}

/** Statements that create the present views for analysts. */
export const createViews = (layout: Layout): string[] => {
  const database = named(analysisOf(layout))
  const table = (name: string): string => `${named(layout.database)}.${name}`
  return [
    `CREATE DATABASE IF NOT EXISTS ${database}${onCluster(layout)}`,
    ...Object.entries(VIEWS).map(
      ([view, select]) => `CREATE OR REPLACE VIEW ${database}.${view}${onCluster(layout)} AS${select(table)}`,
    ),
  ]
}
