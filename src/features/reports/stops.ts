import type { HistoryReader } from '../../engines/history-store.ts'
import { behind, type RowKey, type ReportRow } from './answer.ts'
import type { PlacesOf } from './fences.ts'
import { type Stop, StopFinder } from './stop-finder.ts'
import { tracksOf } from './read-tracks.ts'
import type { ReportScope } from './tracker-walk.ts'

export interface StopsQuestion {
  minSeconds: number
  radiusMeters: number
}

/** Stops by tracker and time. `placesOf` finds a place's geofences; undefined if the caller sees none. */
export async function* stopRows(
  history: HistoryReader,
  placesOf: PlacesOf | undefined,
  scope: ReportScope,
  { minSeconds, radiusMeters }: StopsQuestion,
  after: RowKey | undefined,
  signal: AbortSignal,
): AsyncGenerator<ReportRow[]> {
  const finder = new StopFinder(minSeconds, radiusMeters)
  let trackerId = ''
  const shown = async (stops: readonly Stop[]): Promise<ReportRow[]> => {
    const rows = stops.map((stop) => ({ place: [trackerId, stop.from] as const, row: rowOf(trackerId, stop) }))
    const asked = behind(rows, after)
    if (placesOf !== undefined)
      for (const { row } of asked) row.geofenceIds = await placesOf(row.lng as number, row.lat as number)
    return asked
  }
  const ended = (): Stop[] => [finder.end() ?? []].flat()
  for await (const piece of tracksOf(history, scope, after?.[0], signal)) {
    if (piece.trackerId !== trackerId) {
      yield await shown(ended())
      trackerId = piece.trackerId
    }
    const stops: Stop[] = []
    for (let i = 0; i < piece.at.length; i++) {
      const found = finder.push(piece.at[i], piece.lat[i], piece.lng[i])
      if (found === undefined) continue
      const stop = await found
      if (stop !== undefined) stops.push(stop)
    }
    yield await shown(stops)
  }
  yield await shown(ended())
}

const rowOf = (trackerId: string, { from, to, lat, lng }: Stop): ReportRow['row'] => ({
  trackerId,
  from: new Date(from).toISOString(),
  to: new Date(to).toISOString(),
  seconds: (to - from) / 1000,
  lat: lat / 1e7,
  lng: lng / 1e7,
})
