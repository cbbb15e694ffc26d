// State of each tracker, in columns: a fleet of 20,000 is scanned several times a second.
import { bearing, distance, GAP_MS, isStep, type Position } from '../map/geometry.ts'
import { type Columns, type Met, ROW } from './columns.ts'
import { plainText } from '../parts/plain-text.ts'

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

/** Slower trackers count as standing, despite the receiver's noise. */
const MOVING_METERS_PER_SECOND = 1.4
/** A speed computed from a step this old is no longer valid. */
const STEP_SPEED_MS = 3 * 60_000
const HEADING_METERS = 10
const ROOM = 256
/** No shorter step can be a jump: spherical arithmetic is skipped. */
const SHORT_DEGREES = 0.002

export class Fleet {
  ids: string[] = []
  names: string[] = []
  plainNames: string[] = []
  userIds: (string | undefined)[] = []
  vehicleIds: (string | undefined)[] = []
  lng = new Float64Array(ROOM)
  lat = new Float64Array(ROOM)
  /** Previous position, from which the layer glides. */
  fromLng = new Float64Array(ROOM)
  fromLat = new Float64Array(ROOM)
  /** Arrival of the position, by the page's own clock. */
  movedAt = new Float64Array(ROOM)
  at = new Float64Array(ROOM)
  seenAt = new Float64Array(ROOM)
  /** NaN if unknown. */
  speed = new Float32Array(ROOM)
  heading = new Float32Array(ROOM)
  battery = new Float32Array(ROOM)
  accuracy = new Float32Array(ROOM)
  state = new Uint8Array(ROOM)
  /** 1 for trackers that still exist. */
  present = new Uint8Array(ROOM)
  #slots = new Map<string, number>()
  /** Slots by the worker's number of a tracker. */
  #slotsByIndex: number[] = []
  #sorted: number[] | undefined

  get size(): number {
    return this.ids.length
  }

  slotOf(trackerId: string): number | undefined {
    const slot = this.#slots.get(trackerId)
    return slot !== undefined && this.present[slot] === 1 ? slot : undefined
  }

  /** Stores positions; `now` is the page's own clock, for gliding. Trackers missing from a snapshot are gone. */
  take({ met, indexes, numbers }: Columns, now: number, isSnapshot = false): void {
    for (const one of met) this.#meet(one)
    if (isSnapshot) {
      const wasThere = this.present.slice()
      this.present.fill(0)
      for (const index of indexes) {
        const slot = this.#slotsByIndex[index]!
        this.present[slot] = wasThere[slot]!
      }
      this.#sorted = undefined
    }
    for (let row = 0; row < indexes.length; row++)
      this.#put(this.#slotsByIndex[indexes[row]!]!, numbers, row * ROW, now)
  }

  /** Computes missing speeds and headings from the points of the last minutes, oldest first. */
  takeSteps(points: readonly { trackerId: string; at: number; position: Position }[]): void {
    const before = new Map<string, { at: number; position: Position }>()
    for (const point of points) {
      const slot = this.slotOf(point.trackerId)
      if (slot === undefined || point.at > this.at[slot]!) continue
      const from = before.get(point.trackerId)
      before.set(point.trackerId, point)
      if (from === undefined || point.at !== this.at[slot] || !isStep(from, point)) continue
      const meters = distance(from.position, point.position)
      if (Number.isNaN(this.speed[slot]!)) this.speed[slot] = meters / ((point.at - from.at) / 1000)
      if (Number.isNaN(this.heading[slot]!) && meters > HEADING_METERS)
        this.heading[slot] = bearing(from.position, point.position)
    }
  }

  remove(trackerIds: readonly string[]): void {
    for (const id of trackerIds) {
      const slot = this.#slots.get(id)
      if (slot !== undefined) this.present[slot] = 0
    }
    this.#sorted = undefined
  }

  /** Recomputes states; `now` is the server's clock. */
  age(now: number, ages: Ages): Uint32Array {
    const counts = new Uint32Array(STATES.length)
    for (let slot = 0; slot < this.size; slot++) {
      const state = stateOf(now - this.seenAt[slot]!, this.speed[slot]!, now - this.at[slot]!, ages)
      this.state[slot] = state
      if (this.present[slot] === 1) counts[state]!++
    }
    return counts
  }

  /** Present slots, by name. */
  sorted(): number[] {
    if (this.#sorted !== undefined) return this.#sorted
    const { compare } = new Intl.Collator(undefined, { numeric: true })
    const slots: number[] = []
    for (let slot = 0; slot < this.size; slot++) if (this.present[slot] === 1) slots.push(slot)
    this.#sorted = slots.sort((a, b) => compare(this.names[a]!, this.names[b]!))
    return this.#sorted
  }

  /** Sets a tracker's position without gliding, for playback; returns its slot. */
  place(trackerId: string, name: string, [lng, lat]: Position, heading: number, state: number): number {
    const slot = this.#slots.get(trackerId) ?? this.#add(trackerId, name)
    this.present[slot] = 1
    this.lng[slot] = lng
    this.lat[slot] = lat
    this.fromLng[slot] = lng
    this.fromLat[slot] = lat
    if (!Number.isNaN(heading)) this.heading[slot] = heading
    this.state[slot] = state
    return slot
  }

  #meet({ index, trackerId, name, userId, vehicleId }: Met): void {
    const slot = this.#slots.get(trackerId) ?? this.#add(trackerId, name)
    this.#slotsByIndex[index] = slot
    this.userIds[slot] = userId
    this.vehicleIds[slot] = vehicleId
    if (this.names[slot] === name) return
    this.names[slot] = name
    this.plainNames[slot] = plainText(name)
    this.#sorted = undefined
  }

  #put(slot: number, numbers: Float64Array, at: number, now: number): void {
    const wasThere = this.present[slot] === 1
    if (!wasThere) this.#sorted = undefined
    this.present[slot] = 1
    this.seenAt[slot] = numbers[at + 3]!
    this.battery[slot] = numbers[at + 6]!
    this.accuracy[slot] = numbers[at + 7]!
    if (!wasThere || numbers[at + 2]! > this.at[slot]!) this.#move(slot, numbers, at, wasThere, now)
  }

  #move(slot: number, numbers: Float64Array, row: number, wasThere: boolean, now: number): void {
    const [lng, lat, at] = [numbers[row]!, numbers[row + 1]!, numbers[row + 2]!]
    const [speed, heading] = [numbers[row + 4]!, numbers[row + 5]!]
    const [fromLng, fromLat, fromAt] = [this.lng[slot]!, this.lat[slot]!, this.at[slot]!]
    const isShort = Math.abs(lat - fromLat) < SHORT_DEGREES && Math.abs(lng - fromLng) < SHORT_DEGREES
    const isNext =
      wasThere &&
      (isShort
        ? at - fromAt <= GAP_MS
        : isStep({ at: fromAt, position: [fromLng, fromLat] }, { at, position: [lng, lat] }))
    const isTold = !Number.isNaN(speed) && !Number.isNaN(heading)
    const meters = isNext && !isTold ? distance([fromLng, fromLat], [lng, lat]) : 0
    this.speed[slot] = Number.isNaN(speed) && isNext ? meters / ((at - fromAt) / 1000) : speed
    if (!Number.isNaN(heading)) this.heading[slot] = heading
    else if (meters > HEADING_METERS) this.heading[slot] = bearing([fromLng, fromLat], [lng, lat])
    else if (!wasThere) this.heading[slot] = Number.NaN
    this.fromLng[slot] = isNext ? fromLng : lng
    this.fromLat[slot] = isNext ? fromLat : lat
    this.lng[slot] = lng
    this.lat[slot] = lat
    this.at[slot] = at
    this.movedAt[slot] = now
  }

  #add(trackerId: string, name: string): number {
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
