import postgres from 'postgres'
import type { Peer } from './peer.ts'

const FENCES_AT_ONCE = 500

/** History, latest places with the fences each tracker is in, and what was entered and left. */
const TABLES = `
CREATE EXTENSION IF NOT EXISTS postgis;
CREATE TABLE fences (id int PRIMARY KEY, geom geometry(Polygon, 4326) NOT NULL);
CREATE INDEX ON fences USING gist (geom);
CREATE TABLE points (tracker int NOT NULL, recorded_at timestamptz NOT NULL, geom geometry(Point, 4326) NOT NULL);
CREATE TABLE latest (
  tracker int PRIMARY KEY, recorded_at timestamptz NOT NULL, geom geometry(Point, 4326) NOT NULL, inside int[] NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE transitions (tracker int NOT NULL, fence int NOT NULL, entered boolean NOT NULL, recorded_at timestamptz NOT NULL);`

const COLUMNS = ['tracker', 'lat', 'lng', 'recordedAt'] as const

/** A frame in one statement, prepared once a connection: stored, matched, compared with where each tracker was. */
const FRAME = `
WITH fixes AS MATERIALIZED (
  SELECT tracker, to_timestamp(at / 1000) AS recorded_at, ST_SetSRID(ST_MakePoint(lng, lat), 4326) AS geom
  FROM unnest($1::int[], $2::float8[], $3::float8[], $4::float8[]) AS one(tracker, lat, lng, at)
), stored AS (
  INSERT INTO points SELECT tracker, recorded_at, geom FROM fixes
), now AS MATERIALIZED (
  SELECT *, ARRAY(SELECT id FROM fences WHERE ST_Covers(fences.geom, fixes.geom)) AS inside FROM fixes
), compared AS MATERIALIZED (
  SELECT now.*, coalesce(latest.inside, '{}') AS earlier FROM now LEFT JOIN latest USING (tracker)
), told AS (
  INSERT INTO transitions
  SELECT tracker, fence, true, recorded_at FROM compared, unnest(inside) AS fence WHERE fence <> ALL (earlier)
  UNION ALL
  SELECT tracker, fence, false, recorded_at FROM compared, unnest(earlier) AS fence WHERE fence <> ALL (inside)
)
INSERT INTO latest SELECT tracker, recorded_at, geom, inside FROM now
ON CONFLICT (tracker) DO UPDATE SET recorded_at = excluded.recorded_at, geom = excluded.geom, inside = excluded.inside`

/** A PostgreSQL with PostGIS, in a database that is empty. */
export const postgisPeer = (url: string): Peer => {
  const open = () => postgres(url, { max: 1, onnotice: () => undefined, fetch_types: false })
  const sql = open()
  return {
    name: 'PostGIS',
    promise: 'on the disk with all that follows from it, transitions included (`synchronous_commit = on`)',
    connectionsMax: 8,
    load: async (fences) => {
      await sql.unsafe(TABLES)
      for (let first = 0; first < fences.length; first += FENCES_AT_ONCE) {
        const some = JSON.stringify(fences.slice(first, first + FENCES_AT_ONCE).map(({ geometry }) => geometry))
        await sql.unsafe(
          `INSERT INTO fences
           SELECT $1::int + place, ST_SetSRID(ST_GeomFromGeoJSON(geometry), 4326)
           FROM json_array_elements(($2::text)::json) WITH ORDINALITY AS one(geometry, place)`,
          [first, some],
        )
      }
      await sql.unsafe('ANALYZE fences')
    },
    openLine: async () => {
      const line = open()
      await line.unsafe('SELECT 1')
      return {
        send: async (fixes) => {
          const columns = COLUMNS.map((name) => `{${fixes.map((fix) => fix[name]).join()}}`)
          await line.unsafe(FRAME, columns, { prepare: true })
        },
        close: () => line.end(),
      }
    },
    transitions: async () => Number((await sql.unsafe('SELECT count(*) FROM transitions'))[0].count),
    close: () => sql.end(),
  }
}
