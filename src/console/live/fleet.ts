// What is known of each tracker, in columns: a fleet of 20,000 is looked through several times a second.
import { bearing, distance, isStep, type Position } from '../map/geometry.ts'
import { plainText } from '../parts/plain-text.ts'

/** As the API and the live channel say it. */
export interface LivePosition {
  trackerId: string
  name: string
  userId?: string
  vehicleId?: string
  recordedAt: string
  lat: number
  lng: number
  speed?: number
  heading?: number
  altitude?: number
  accuracy?: number
  battery?: number
  lastSeenAt: string
  status: 'online' | 'stale' | 'offline'
}

/** One position as the worker hands it over. */
export type Fix = Omit<LivePosition, 'recordedAt' | 'lastSeenAt' | 'status'> & { at: number; seenAt: number }

export const STATES = ['moving', 'stopped', 'stale', 'offline'] as const
export type State = (typeof STATES)[number]
export const MOVING = 0
export const STOPPED = 1
export const STALE = 2
export const OFFLINE = 3

/** Ages after which a tracker counts as stale and as offline. */
export interface Ages {
  staleAfterMs: number
  offlineAfterMs: number
}

/** Slower is standing, whatever the receiver's noise says. */
const MOVING_METERS_PER_SECOND = 1.4
/** A speed that was worked out from a step this long ago says nothing of now. */
const STEP_SPEED_MS = 3 * 60_000
const HEADING_METERS = 10
const ROOM = 256

export class Fleet {
  ids: string[] = []
  names: string[] = []
  plainNames: string[] = []
  userIds: (string | undefined)[] = []
  vehicleIds: (string | undefined)[] = []
  lng = new Float64Array(ROOM)
  lat = new Float64Array(ROOM)
  /** Where it was before: the layer glides from there. */
  fromLng = new Float64Array(ROOM)
  fromLat = new Float64Array(ROOM)
  /** When the position came, by the page's own clock. */
  movedAt = new Float64Array(ROOM)
  at = new Float64Array(ROOM)
  seenAt = new Float64Array(ROOM)
  /** NaN where nobody knows. */
  speed = new Float32Array(ROOM)
  heading = new Float32Array(ROOM)
  battery = new Float32Array(ROOM)
  accuracy = new Float32Array(ROOM)
  state = new Uint8Array(ROOM)
  /** 1 for those that still are there. */
  present = new Uint8Array(ROOM)
  #slots = new Map<string, number>()
  #sorted: number[] | undefined

  get size(): number {
    return this.ids.length
  }

  slotOf(trackerId: string): number | undefined {
    const slot = this.#slots.get(trackerId)
    return slot !== undefined && this.present[slot] === 1 ? slot : undefined
  }

  /** Takes positions in; `now` is the page's own clock, for gliding. */
  take(fixes: readonly Fix[], now: number): void {
    for (const fix of fixes) this.#put(fix, now)
  }

  remove(trackerIds: readonly string[]): void {
    for (const id of trackerIds) {
      const slot = this.#slots.get(id)
      if (slot !== undefined) this.present[slot] = 0
    }
    this.#sorted = undefined
  }

  /** Before a snapshot: what it does not name is gone. */
  removeAllBut(trackerIds: ReadonlySet<string>): void {
    this.remove(this.ids.filter((id) => !trackerIds.has(id)))
  }

  /** Works out states anew; `now` is the server's clock. */
  age(now: number, ages: Ages): Uint32Array {
    const counts = new Uint32Array(STATES.length)
    for (let slot = 0; slot < this.size; slot++) {
      const state = stateOf(now - this.seenAt[slot]!, this.speed[slot]!, now - this.at[slot]!, ages)
      this.state[slot] = state
      if (this.present[slot] === 1) counts[state]!++
    }
    return counts
  }

  /** Slots by name, those that are there. */
  sorted(): number[] {
    if (this.#sorted !== undefined) return this.#sorted
    const { compare } = new Intl.Collator(undefined, { numeric: true })
    const slots: number[] = []
    for (let slot = 0; slot < this.size; slot++) if (this.present[slot] === 1) slots.push(slot)
    this.#sorted = slots.sort((a, b) => compare(this.names[a]!, this.names[b]!))
    return this.#sorted
  }

  /** Puts a tracker somewhere without gliding, as looking back does; answers its slot. */
  place(trackerId: string, name: string, [lng, lat]: Position, heading: number, state: number): number {
    const slot = this.#slots.get(trackerId) ?? this.#add({ trackerId, name, lat, lng, at: 0, seenAt: 0 })
    this.present[slot] = 1
    this.lng[slot] = lng
    this.lat[slot] = lat
    this.fromLng[slot] = lng
    this.fromLat[slot] = lat
    if (!Number.isNaN(heading)) this.heading[slot] = heading
    this.state[slot] = state
    return slot
  }

  #put(fix: Fix, now: number): void {
    let slot = this.#slots.get(fix.trackerId)
    if (slot === undefined) slot = this.#add(fix)
    else if (this.present[slot] === 0 || this.names[slot] !== fix.name) this.#sorted = undefined
    if (this.names[slot] !== fix.name) {
      this.names[slot] = fix.name
      this.plainNames[slot] = plainText(fix.name)
    }
    this.userIds[slot] = fix.userId
    this.vehicleIds[slot] = fix.vehicleId
    const wasThere = this.present[slot] === 1
    this.present[slot] = 1
    this.seenAt[slot] = fix.seenAt
    this.battery[slot] = fix.battery ?? Number.NaN
    this.accuracy[slot] = fix.accuracy ?? Number.NaN
    if (wasThere && fix.at <= this.at[slot]!) return
    this.#move(slot, fix, wasThere, now)
  }

  #move(slot: number, fix: Fix, wasThere: boolean, now: number): void {
    const from: Position = [this.lng[slot]!, this.lat[slot]!]
    const to: Position = [fix.lng, fix.lat]
    const isNext = wasThere && isStep({ at: this.at[slot]!, position: from }, { at: fix.at, position: to })
    const meters = isNext ? distance(from, to) : 0
    const stepSpeed = isNext ? meters / ((fix.at - this.at[slot]!) / 1000) : Number.NaN
    this.speed[slot] = fix.speed ?? stepSpeed
    if (fix.heading !== undefined) this.heading[slot] = fix.heading
    else if (meters > HEADING_METERS) this.heading[slot] = bearing(from, to)
    else if (!wasThere) this.heading[slot] = Number.NaN
    const start = isNext ? from : to
    this.fromLng[slot] = start[0]
    this.fromLat[slot] = start[1]
    this.lng[slot] = fix.lng
    this.lat[slot] = fix.lat
    this.at[slot] = fix.at
    this.movedAt[slot] = now
  }

  #add({ trackerId, name }: Fix): number {
    const slot = this.ids.length
    this.#slots.set(trackerId, slot)
    this.ids.push(trackerId)
    this.names.push(name)
    this.plainNames.push(plainText(name))
    this.userIds.push(undefined)
    this.vehicleIds.push(undefined)
    this.#sorted = undefined
    if (slot >= this.lng.length) this.#grow(slot * 2)
    this.heading[slot] = Number.NaN
    return slot
  }

  #grow(room: number): void {
    const wider = <Column extends Float64Array | Float32Array | Uint8Array>(column: Column): Column => {
      const made = new (column.constructor as new (room: number) => Column)(room)
      made.set(column)
      return made
    }
    for (const name of ['lng', 'lat', 'fromLng', 'fromLat', 'movedAt', 'at', 'seenAt'] as const)
      this[name] = wider(this[name]) as Float64Array<ArrayBuffer>
    for (const name of ['speed', 'heading', 'battery', 'accuracy'] as const)
      this[name] = wider(this[name]) as Float32Array<ArrayBuffer>
    for (const name of ['state', 'present'] as const) this[name] = wider(this[name]) as Uint8Array<ArrayBuffer>
  }
}

const stateOf = (silentMs: number, speed: number, fixAgeMs: number, ages: Ages): number => {
  if (silentMs > ages.offlineAfterMs) return OFFLINE
  if (silentMs > ages.staleAfterMs) return STALE
  return speed >= MOVING_METERS_PER_SECOND && fixAgeMs < STEP_SPEED_MS ? MOVING : STOPPED
}
