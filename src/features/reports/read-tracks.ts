import { readUuid } from '../../engines/clickhouse-sql/native-block.ts'
import { NativeReader, type NativeRows } from '../../engines/clickhouse-sql/native-reader.ts'
import { selectForReport } from '../../engines/clickhouse-sql/reports.ts'
import type { HistoryReader } from '../../engines/history-store.ts'
import { breathe } from '../../kernel/breath.ts'
import { HAS_SPEED } from '../locations/events.ts'
import { type ReportScope, trackersOf } from './tracker-walk.ts'

/** Points of one tracker, oldest first; the next piece continues it unless it is another tracker's. */
export interface TrackPiece {
  trackerId: string
  /** ms since the epoch. */
  at: Float64Array
  /** 1e-7 degree. */
  lat: Int32Array
  lng: Int32Array
  /** m/s as reported, NaN for none. */
  speed: Float64Array
}

const TRACKERS_AT_ONCE = 128

/** Every point of a scope, tracker by tracker in the engine's order, starting at one. */
export async function* tracksOf(
  history: HistoryReader,
  scope: ReportScope,
  from: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<TrackPiece> {
  for await (const trackerIds of trackersOf(history, scope, from, TRACKERS_AT_ONCE)) {
    const { sql, parameters } = selectForReport({ ...scope, trackerIds })
    const reader = new NativeReader()
    for await (const chunk of history.query(sql, parameters, 'Native', signal)) {
      for (const block of reader.push(chunk)) {
        await breathe()
        yield* piecesOf(block)
      }
    }
    reader.end()
  }
}

function* piecesOf(block: NativeRows): Generator<TrackPiece> {
  const bytes = (name: string): Uint8Array => block.columns.get(name) as Uint8Array
  const aligned = (name: string): ArrayBuffer => bytes(name).slice().buffer as ArrayBuffer
  const ids = new Int32Array(aligned('trackerId'))
  const times = new BigInt64Array(aligned('recordedAt'))
  const lat = new Int32Array(aligned('latE7'))
  const lng = new Int32Array(aligned('lngE7'))
  const flags = new Uint16Array(aligned('flags'))
  const speeds = new Int32Array(aligned('speedCms'))
  for (let from = 0, to = 1; from < block.rows; from = to, to++) {
    while (to < block.rows && isSameId(ids, from, to)) to++
    yield {
      trackerId: readUuid(bytes('trackerId'), from * 16),
      at: Float64Array.from(times.subarray(from, to), Number),
      lat: lat.subarray(from, to),
      lng: lng.subarray(from, to),
      speed: Float64Array.from(speeds.subarray(from, to), (speed, i) =>
        (flags[from + i] & HAS_SPEED) === 0 ? Number.NaN : speed / 100,
      ),
    }
  }
}

const isSameId = (ids: Int32Array, one: number, other: number): boolean =>
  ids[one * 4] === ids[other * 4] &&
  ids[one * 4 + 1] === ids[other * 4 + 1] &&
  ids[one * 4 + 2] === ids[other * 4 + 2] &&
  ids[one * 4 + 3] === ids[other * 4 + 3]
