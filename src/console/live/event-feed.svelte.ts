// Recent events: read from the history when the page opens, then received live.
import { get, type Json, orNothing } from '../api/client.ts'
import { session } from '../app/session.svelte.ts'
import type { Position } from '../map/geometry.ts'
import type { Fleet } from './fleet.ts'
import type { LiveEvent } from './messages.ts'

const EVENTS_MAX = 200
const LOADED = 50
const NONE: Json = { data: [] }

export interface FeedItem {
  id: string
  at: number
  type: 'entry' | 'leave' | 'tripStarted' | 'tripFinished'
  trackerId: string
  geofenceId?: string
  distance?: number
  position?: Position
}

export class EventFeed {
  items = $state.raw<FeedItem[]>([])
  /** Number of live events, so that screen readers announce only those. */
  heard = $state(0)
  fenceNames = $state.raw<ReadonlyMap<string, string>>(new Map())

  async load(fleet: Fleet): Promise<void> {
    const [crossings, trips] = await Promise.all([
      session.may('view/geofence') ? orNothing(get(`/geofence-events?limit=${LOADED}`), NONE) : NONE,
      orNothing(get(`/trips?limit=${LOADED}`), NONE),
    ])
    this.#add([
      ...crossings.data.map(transitionItem),
      ...trips.data.map((trip: Json) => tripItem({ ...trip, state: 'running' }, fleet)),
      ...trips.data.filter(({ finishedAt }: Json) => finishedAt !== null).map((trip: Json) => tripItem(trip, fleet)),
    ])
  }

  take(events: readonly LiveEvent[], fleet: Fleet): void {
    const items = events
      .map(({ channel, event }) => (channel === 'geofence' ? transitionItem(event) : tripItem(event, fleet)))
      .filter((item) => item !== undefined)
    this.heard += items.length
    this.#add(items)
  }

  #add(items: readonly FeedItem[]): void {
    const known = new Map([...this.items, ...items].map((item) => [item.id, item]))
    this.items = [...known.values()].sort((a, b) => b.at - a.at).slice(0, EVENTS_MAX)
  }
}

const transitionItem = ({ _id, type, trackerId, geofenceId, at, point }: Json): FeedItem => ({
  id: _id,
  at: Date.parse(at),
  type,
  trackerId,
  geofenceId,
  position: point ? [point.lng, point.lat] : undefined,
})

const tripItem = ({ _id, state, trackerId, startedAt, finishedAt, distance }: Json, fleet: Fleet): FeedItem => {
  const slot = fleet.slotOf(trackerId)
  return {
    id: `${_id}.${state}`,
    at: Date.parse(state === 'finished' ? finishedAt : startedAt),
    type: state === 'finished' ? 'tripFinished' : 'tripStarted',
    trackerId,
    distance,
    position: slot === undefined ? undefined : [fleet.lng[slot]!, fleet.lat[slot]!],
  }
}
