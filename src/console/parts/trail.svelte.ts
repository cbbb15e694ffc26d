// Positions of the selected tracker in the last hour: read once, then received live.
import { get, type Json, orNothing, serverNow } from '../api/client.ts'
import { type Position, splitTrack, type TimedPosition } from '../map/geometry.ts'

const TRAIL_MS = 60 * 60_000
const POINTS_MAX = 20_000

export class Trail {
  points = $state.raw<TimedPosition[]>([])
  meters = $state(0)
  lines = $state.raw<Position[][]>([])
  #trackerId: string | undefined

  async show(trackerId: string | undefined): Promise<void> {
    this.#trackerId = trackerId
    this.#take([])
    if (trackerId === undefined) return
    const from = new Date(serverNow() - TRAIL_MS).toISOString()
    const path = `/location-histories?trackerId=${trackerId}&from=${from}&order=asc&limit=${POINTS_MAX}&fields=recordedAt,lat,lng`
    const { data } = await orNothing(get(path), { data: [] })
    if (this.#trackerId !== trackerId) return
    const read = data.map(({ recordedAt, lat, lng }: Json) => ({ at: Date.parse(recordedAt), position: [lng, lat] }))
    const last = read.at(-1)?.at ?? 0
    this.#take([...read, ...this.points.filter(({ at }) => at > last)])
  }

  add(trackerId: string, point: TimedPosition): void {
    if (trackerId !== this.#trackerId || point.at <= (this.points.at(-1)?.at ?? 0)) return
    this.#take([...this.points.filter(({ at }) => at > point.at - TRAIL_MS), point])
  }

  #take(points: TimedPosition[]): void {
    this.points = points
    const { lines, meters } = splitTrack(points)
    this.lines = lines
    this.meters = meters
  }
}
