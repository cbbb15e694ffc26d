import type { HistoryParameters } from '../history-store.ts'
import { POINTS } from './history-tables.ts'
import { type Definition, timeOf } from './layout.ts'
import { WAS_NOT_AHEAD } from './legs.ts'
import type { Statement } from './points.ts'

/*
 * Places where trackers were: cells of the web map's grid, at three sizes. A cell's number interleaves the bits of its
 * column and row, so that all cells of a tile are one range, and the table is read by place and not by tracker.
 */

/** One row for each tracker, quarter of an hour and cell; of several the one with the highest version wins. */
export const TRACES = 'trace_cells'

/** Zooms whose tiles are the cells: 38 m, 306 m and 4.9 km wide at the equator. */
const CELL_LEVELS = [20, 17, 13] as const
const FINEST = CELL_LEVELS[0]
/** Maximum of cells filled in between two points: beyond, the way is unknown. */
const FILLED_MAX = 64

export const traces: Definition = {
  columns: `
  organizationId UUID CODEC(ZSTD(3)),
  level UInt8 CODEC(ZSTD(3)),
  cell UInt64 CODEC(Delta, ZSTD(3)),
  trackerId UUID CODEC(ZSTD(3)),
  at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(3)),
  version UInt64 CODEC(Delta, ZSTD(3))
`,
  engine: 'Replacing',
  version: 'version',
  order: 'PARTITION BY toYYYYMM(at) ORDER BY (organizationId, level, cell, trackerId, at)',
  shardBy: 'trackerId',
}

const CELLS = 2 ** FINEST
const LAST = CELLS - 1
const COLUMN = `toInt64(least(${LAST}, greatest(0, floor((lngE7 / 3.6e9 + 0.5) * ${CELLS}))))`
/** Mercator's map ends at 85.05 degrees. */
const SINE = 'sin(greatest(-85.05112878, least(85.05112878, latE7 / 1e7)) * pi() / 180)'
const ROW = `toInt64(least(${LAST}, greatest(0, floor((0.5 - log((1 + ${SINE}) / (1 - ${SINE})) / (4 * pi())) * ${CELLS}))))`

/** Finest cells of these points and of the way between consecutive ones in one step of `stepMs`. */
const finestOf = (conditions: string): string => `
SELECT organizationId, trackerId, step,
  mortonEncode(toUInt32(x - intDiv((x - x0) * i, steps)), toUInt32(y - intDiv((y - y0) * i, steps))) AS finest
FROM (
  SELECT organizationId, trackerId, step, x, y, x0, y0, greatest(1, abs(x - x0), abs(y - y0)) AS steps,
    arrayJoin(range(if(t0 < t AND t - t0 <= {gapMs:Int64} AND intDiv(t0, {stepMs:Int64}) = step AND steps <= ${FILLED_MAX}, toUInt32(steps), 1))) AS i
  FROM (
    SELECT organizationId, trackerId, t, step, x, y, lagInFrame(t, 1, t) OVER byTime AS t0,
      lagInFrame(x, 1, x) OVER byTime AS x0, lagInFrame(y, 1, y) OVER byTime AS y0
    FROM (
      SELECT organizationId, trackerId, toUnixTimestamp64Milli(recordedAt) AS t, intDiv(t, {stepMs:Int64}) AS step,
        ${COLUMN} AS x, ${ROW} AS y
      FROM ${POINTS} WHERE ${conditions} AND ${WAS_NOT_AHEAD}
    )
    WINDOW byTime AS (PARTITION BY organizationId, trackerId ORDER BY t ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
  )
)`

/** Rows for the table from the points of these conditions. */
export const rollTraces = (conditions: string, stepMs: number): string => `INSERT INTO ${TRACES}
SELECT DISTINCT organizationId, level, bitShiftRight(finest, 2 * (${FINEST} - level)) AS cell, trackerId,
  fromUnixTimestamp64Milli(toInt64(step * ${stepMs}), 'UTC') AS at, {number:UInt64} AS version
FROM (${finestOf(conditions)}) ARRAY JOIN [${CELL_LEVELS.join(', ')}]::Array(UInt8) AS level
SETTINGS prefer_column_name_to_alias = 1`

/** Trackers whose traces a tile shows, and their earliest time (ms since the epoch). */
export interface TraceFilter {
  organizationId: string
  trackerIds: 'all' | readonly string[]
  from: number
}

export interface Tile {
  z: number
  x: number
  y: number
}

/** Cells along the edge of a tile, as a power of two: 256, or the number of the finest cells. */
export const gridBitsOf = (z: number): number => Math.min(8, FINEST - z)

/** Fewer rows of points than this are read for one tile; the rest is shown once it is rolled up. */
const POINTS_READ_MAX = 20_000_000

/**
 * Cells of a tile, each as its number in the tile (UInt32) and how often a tracker was there (UInt32), from rolled-up
 * steps. `before` is exclusive.
 */
export const selectTraces = (filter: TraceFilter, tile: Tile, before: number): Statement => {
  const bits = gridBitsOf(tile.z)
  const level = CELL_LEVELS.findLast((one) => one >= tile.z + bits) ?? FINEST
  const { conditions, parameters } = whoseOf(filter)
  const first = mortonOf(tile.x, tile.y) * 4 ** (level - tile.z)
  Object.assign(parameters, {
    level,
    first,
    end: first + 4 ** (level - tile.z),
    shift: 2 * (level - tile.z - bits),
    from: filter.from,
    before,
  })
  return {
    sql: `SELECT toUInt32(bitShiftRight(cell - {first:UInt64}, {shift:UInt8})) AS place, toUInt32(count()) AS times FROM ${TRACES}
      WHERE ${conditions} AND level = {level:UInt8} AND cell >= {first:UInt64} AND cell < {end:UInt64}
        AND at >= ${timeOf('from')} AND at < ${timeOf('before')} GROUP BY place`,
    parameters,
  }
}

/** The same from points: those of `times`, SQL about `recordedAt` and the trackers. */
export const selectFreshTraces = (
  filter: TraceFilter,
  tile: Tile,
  times: { condition: string; parameters: HistoryParameters },
  rules: { gapMs: number; stepMs: number },
): Statement => {
  const bits = gridBitsOf(tile.z)
  const { conditions, parameters } = whoseOf(filter)
  const first = mortonOf(tile.x, tile.y) * 4 ** (FINEST - tile.z)
  Object.assign(parameters, times.parameters, rules, boxOf(tile), {
    first,
    end: first + 4 ** (FINEST - tile.z),
    shift: 2 * (FINEST - tile.z - bits),
    from: filter.from,
  })
  const points = `${conditions} AND recordedAt >= ${timeOf('from')} AND (${times.condition})
    AND lngE7 >= {west:Int64} AND lngE7 <= {east:Int64} AND latE7 >= {south:Int64} AND latE7 <= {north:Int64}`
  return {
    sql: `SELECT toUInt32(bitShiftRight(finest - {first:UInt64}, {shift:UInt8})) AS place, toUInt32(uniq(trackerId, step)) AS times
      FROM (${finestOf(points)}) WHERE finest >= {first:UInt64} AND finest < {end:UInt64} GROUP BY place
      SETTINGS prefer_column_name_to_alias = 1, max_rows_to_read = ${POINTS_READ_MAX}, read_overflow_mode = 'break'`,
    parameters,
  }
}

const whoseOf = ({ organizationId, trackerIds }: TraceFilter) => {
  const parameters: HistoryParameters = { organization: organizationId }
  let conditions = 'organizationId = {organization:UUID}'
  if (trackerIds !== 'all') {
    conditions += ' AND trackerId IN {trackers:Array(UUID)}'
    parameters.trackers = trackerIds
  }
  return { conditions, parameters }
}

/** The tile and a rim of a sixteenth, in 1e-7 degree: ways into it may begin beside it. */
const boxOf = ({ z, x, y }: Tile) => {
  const tiles = 2 ** z
  const lng = (column: number): number => Math.round((column / tiles - 0.5) * 3.6e9)
  const lat = (row: number): number =>
    Math.round((Math.atan(Math.sinh(Math.PI * (1 - (2 * row) / tiles))) * 180e7) / Math.PI)
  // The last rows also hold everything beyond the end of the map.
  const south = y === tiles - 1 ? -900_000_000 : lat(y + 1.0625)
  const north = y === 0 ? 900_000_000 : lat(y - 0.0625)
  return { west: lng(x - 0.0625), east: lng(x + 1.0625), south, north }
}

/** Bits of the column and row, one in turn with the other; the column's is the lower. */
const mortonOf = (x: number, y: number): number => {
  let number = 0
  for (let bit = 0; bit < FINEST; bit++) number += (((x >>> bit) & 1) + ((y >>> bit) & 1) * 2) * 4 ** bit
  return number
}
