// Playback of a day: its tracks, and a clock over them.
import { getLines, get, type Json, orNothing } from '../api/client.ts'
import { session } from '../app/session.svelte.ts'
import { dayAfter, startOfDay } from '../app/time-zone.ts'
import { Fleet, MOVING, OFFLINE, STOPPED } from '../live/fleet.ts'
import { momentAt, type RawPoint, type Track, trackOf } from './track.ts'

export const TRACKERS_MAX = 20
export const RATES = [1, 2, 5, 10, 20, 60]
export const COLORS = ['#c2410c', '#2457c5', '#0a7a4b', '#a21caf', '#a86200', '#0e7490', '#be123c', '#4d7c0f']
const POINTS_MAX = 100_000
const AT_ONCE = 4
/** Trips are found by their start: one of the previous evening may continue into the day. */
const TRIP_MS_MAX = 2 * 86_400_000

interface ShownTrack extends Track {
  /** Its name is known: it is there, and the reader may see it. */
  isKnown: boolean
}

class Playback {
  tracks = $state.raw<ShownTrack[]>([])
  day = $state('')
  from = $state(0)
  to = $state(0)
  /** The displayed moment, in ms. */
  at = $state(0)
  isPlaying = $state(false)
  rate = $state(10)
  state = $state<'empty' | 'loading' | 'ready' | 'failed'>('empty')
  problem = $state('')
  /** Positions of the trackers at the moment, for the map. */
  fleet = new Fleet()
  #abort: AbortController | undefined
  #frame = 0

  async load(trackerIds: readonly string[], day: string, nameOf: (id: string) => string | undefined): Promise<void> {
    this.pause()
    this.#abort?.abort()
    const abort = new AbortController()
    this.#abort = abort
    this.day = day
    this.from = startOfDay(day, session.timeZone)
    this.to = startOfDay(dayAfter(day), session.timeZone)
    this.state = 'loading'
    this.problem = ''
    try {
      const tracks = await inTurns(trackerIds.slice(0, TRACKERS_MAX), (id) =>
        this.#loadTrack(id, nameOf(id), trackerIds.length > 1, abort.signal),
      )
      if (abort.signal.aborted) return
      this.fleet = new Fleet()
      this.tracks = tracks
      this.at = Math.min(...tracks.map(({ points }) => points[0]?.at ?? this.to), this.to)
      if (this.at === this.to) this.at = this.from
      this.state = 'ready'
    } catch (error) {
      if (abort.signal.aborted) return
      this.#forget()
      this.problem = (error as Error).message
      this.state = 'failed'
    }
  }

  /** No tracker is chosen any more. */
  clear(): void {
    this.pause()
    this.#abort?.abort()
    this.#forget()
    this.state = 'empty'
  }

  seek(at: number): void {
    this.at = Math.max(this.from, Math.min(this.to, at))
  }

  play(): void {
    if (this.state !== 'ready') return
    const end = Math.max(...this.tracks.map(({ points }) => points.at(-1)?.at ?? this.from))
    if (this.at >= end) this.at = Math.min(...this.tracks.map(({ points }) => points[0]?.at ?? this.from))
    this.isPlaying = true
    let before = performance.now()
    const step = (now: number): void => {
      this.at = Math.min(end, this.at + (now - before) * this.rate)
      before = now
      if (this.at >= end) return this.pause()
      this.#frame = requestAnimationFrame(step)
    }
    this.#frame = requestAnimationFrame(step)
  }

  pause(): void {
    this.isPlaying = false
    cancelAnimationFrame(this.#frame)
  }

  /** Sets the trackers' positions; returns their slots. */
  place(): number[] {
    const slots: number[] = []
    for (const track of this.tracks) {
      const moment = momentAt(track, this.at)
      if (moment === undefined) continue
      const state = moment.isGap ? OFFLINE : moment.isMoving ? MOVING : STOPPED
      slots.push(this.fleet.place(track.trackerId, track.name, moment.position, moment.heading, state))
    }
    return slots
  }

  /** Nothing of another day or tracker stays beside words that say otherwise. */
  #forget(): void {
    this.tracks = []
    this.fleet = new Fleet()
  }

  async #loadTrack(
    id: string,
    known: string | undefined,
    isOneOfMany: boolean,
    signal: AbortSignal,
  ): Promise<ShownTrack> {
    const [from, to] = [new Date(this.from).toISOString(), new Date(this.to - 1).toISOString()]
    const begunAfter = new Date(this.from - TRIP_MS_MAX).toISOString()
    const shape: RawPoint[] = []
    const course: RawPoint[] = []
    const path = `/location-histories?trackerId=${id}&from=${from}&to=${to}&format=ndjson&order=asc&limit=${POINTS_MAX}`
    const [, , trips, name] = await Promise.all([
      // Several together are viewed from further away.
      getLines(`${path}&simplify=${isOneOfMany ? 10 : 5}`, (row) => void shape.push(row as RawPoint), signal),
      getLines(`${path}&interval=10`, (row) => void course.push(row as RawPoint), signal),
      orNothing<Json>(get(`/trips?trackerId=${id}&from=${begunAfter}&to=${to}&limit=500`, signal), { data: [] }),
      known ??
        orNothing<Json>(get(`/trackers?_id=${encodeURIComponent(id)}&fields=name`, signal), { data: [] }).then(
          ({ data }) => data[0]?.name as string | undefined,
        ),
    ])
    const track = trackOf(id, name ?? id, { shape, course }, trips.data, { from: this.from, to: this.to })
    return { ...track, isKnown: name !== undefined }
  }
}

const inTurns = async <Result>(ids: readonly string[], run: (id: string) => Promise<Result>): Promise<Result[]> => {
  const results: Result[] = []
  let next = 0
  const worker = async (): Promise<void> => {
    for (let i = next++; i < ids.length; i = next++) results[i] = await run(ids[i]!)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  return results
}

export const playback = new Playback()
