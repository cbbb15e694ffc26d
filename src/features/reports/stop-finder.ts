import { distanceMeters } from '../../geo/distance.ts'
import { breathe } from '../../kernel/breath.ts'

/** A stretch within the radius of its first point; times in ms since the epoch, places in 1e-7 degree. */
export interface Stop {
  from: number
  to: number
  lat: number
  lng: number
}

/** Comparisons between two yields to the event loop. */
const COMPARISONS = 2_000

/**
 * Finds the stops of one tracker in its points, oldest first. A stretch begins at a point and continues while all that
 * follow are within the radius of it; one that is long enough is a stop, and the next may begin after it. If one is too
 * short, the next begins at its second point. Points are held only until their stretch is long enough.
 */
export class StopFinder {
  private readonly minMs: number
  private readonly radiusMeters: number
  private first: Stop | undefined
  /** Points after the first while the stretch is too short: time, latitude and longitude of each in turn. */
  private held: number[] = []

  constructor(minSeconds: number, radiusMeters: number) {
    this.minMs = minSeconds * 1000
    this.radiusMeters = radiusMeters
  }

  /** The stop that this point ends, if any. */
  push(at: number, lat: number, lng: number): Stop | undefined | Promise<undefined> {
    const { first } = this
    if (first === undefined) {
      this.begin(at, lat, lng)
      return undefined
    }
    if (this.isNear(first.lng, first.lat, lng, lat)) {
      this.goOn(first, at, lat, lng)
      return undefined
    }
    if (this.isLong(first)) {
      this.begin(at, lat, lng)
      return first
    }
    if (this.held.length > 0) return this.beginLater(at, lat, lng)
    this.begin(at, lat, lng)
    return undefined
  }

  /** The stop that lasts until the last point, if any; the next point is another tracker's. */
  end(): Stop | undefined {
    const { first } = this
    this.first = undefined
    this.held = []
    return first !== undefined && this.isLong(first) ? first : undefined
  }

  private begin(at: number, lat: number, lng: number): void {
    this.first = { from: at, to: at, lat, lng }
    this.held = []
  }

  private goOn(first: Stop, at: number, lat: number, lng: number): void {
    first.to = at
    if (this.isLong(first)) this.held = []
    else this.held.push(at, lat, lng)
  }

  /** Begins later: this stretch was too short, and so is each later one without some point before this one. */
  private async beginLater(at: number, lat: number, lng: number): Promise<undefined> {
    const { held } = this
    held.push(at, lat, lng)
    let compared = 0
    let from = 0
    for (let through = held.length - 3; from < held.length; through = held.length - 3) {
      for (; through > from; through -= 3) {
        if (!this.isNear(held[from + 2], held[from + 1], held[through + 2], held[through + 1])) break
        if (++compared % COMPARISONS === 0) await breathe()
      }
      if (through === from) break
      from += 3
    }
    this.begin(held[from], held[from + 1], held[from + 2])
    for (let i = from + 3; i < held.length; i += 3) this.goOn(this.first as Stop, held[i], held[i + 1], held[i + 2])
    return undefined
  }

  private isLong({ from, to }: Stop): boolean {
    return to - from >= this.minMs
  }

  private isNear(aLng: number, aLat: number, bLng: number, bLat: number): boolean {
    return distanceMeters(aLng, aLat, bLng, bLat) <= this.radiusMeters
  }
}
