import { lateStepsOf, readStepState, STEP_MS, within } from '../../engines/clickhouse-sql/point-steps.ts'
import {
  gridBitsOf,
  selectFreshTraces,
  selectTraces,
  type Tile,
  type TraceFilter,
} from '../../engines/clickhouse-sql/traces.ts'
import type { Statement } from '../../engines/clickhouse-sql/points.ts'
import type { HistoryReader } from '../../engines/history-store.ts'

export const TRACE_ZOOM_MAX = 14
export const TRACE_LAYER = 'traces'
const EXTENT = 4_096
/** Late steps shown as single points; the rest is shown after the rollup. */
const LATE_STEPS_MAX = 1_000
const LATE_RANGES_MAX = 100
const ROW_BYTES = 8

/** Cells of a tile by the number of times a tracker was there. */
type Cells = Map<number, number>

/** Positions of these trackers as a vector tile; undefined if there are none. */
export const traceTile = async (
  history: HistoryReader,
  filter: TraceFilter,
  tile: Tile,
  gapMs: number,
  signal?: AbortSignal,
): Promise<Uint8Array | undefined> => {
  if (filter.trackerIds !== 'all' && filter.trackerIds.length === 0) return undefined
  const [state, late] = await Promise.all([readStepState(history), lateStepsOf(history, filter, LATE_STEPS_MAX)])
  const through = state?.through ?? 0
  const cells: Cells = new Map()
  if (through > filter.from) await addCells(cells, history, selectTraces(filter, tile, through), signal)
  await addCells(cells, history, selectFreshTraces(filter, tile, timesOf(through, late), rulesOf(gapMs)), signal)
  return cells.size === 0 ? undefined : encode(cells, gridBitsOf(tile.z))
}

const rulesOf = (gapMs: number) => ({ gapMs, stepMs: STEP_MS })

/** Points that are not rolled up, or not again. */
const timesOf = (through: number, late: Parameters<typeof within>[1]) => {
  const { condition, parameters } = within('recordedAt', late.slice(0, LATE_RANGES_MAX))
  const after = "recordedAt >= fromUnixTimestamp64Milli({through:Int64}, 'UTC')"
  return {
    condition: condition === '' ? after : `${after} OR ${condition}`,
    parameters: { ...parameters, through },
  }
}

const addCells = async (
  cells: Cells,
  history: HistoryReader,
  { sql, parameters }: Statement,
  signal?: AbortSignal,
): Promise<void> => {
  let rest = Buffer.alloc(0)
  for await (const chunk of history.query(sql, parameters, 'RowBinary', signal)) {
    const bytes = rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([rest, chunk])
    const whole = bytes.length - (bytes.length % ROW_BYTES)
    for (let i = 0; i < whole; i += ROW_BYTES) {
      const place = bytes.readUInt32LE(i)
      cells.set(place, (cells.get(place) ?? 0) + bytes.readUInt32LE(i + 4))
    }
    rest = bytes.subarray(whole)
  }
}

/** One feature for all cells of similar count: 1, 2 to 3, 4 to 7 and so on; `count` is the lowest. */
const encode = async (cells: Cells, bits: number): Promise<Uint8Array> => {
  const { fromGeojsonVt } = await import('@maplibre/vt-pbf')
  const cellWidth = EXTENT / 2 ** bits
  const byCount = new Map<number, [number, number][]>()
  for (const [place, times] of [...cells].sort(([a], [b]) => a - b)) {
    const count = 2 ** Math.floor(Math.log2(times))
    const points = byCount.get(count) ?? []
    if (points.length === 0) byCount.set(count, points)
    points.push([(everySecondBit(place) + 0.5) * cellWidth, (everySecondBit(place >>> 1) + 0.5) * cellWidth])
  }
  const features = [...byCount]
    .sort(([a], [b]) => a - b)
    .map(([count, geometry]) => ({ type: 1 as const, geometry, tags: { count } }))
  return fromGeojsonVt({ [TRACE_LAYER]: { features } as never }, { version: 2, extent: EXTENT })
}

const everySecondBit = (number: number): number => {
  let found = 0
  for (let bit = 0; bit < 16; bit++) found |= ((number >>> (2 * bit)) & 1) << bit
  return found
}
