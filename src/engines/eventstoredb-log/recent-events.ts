import type { RecordedEvent } from '../../kernel/event.ts'

export interface RingOptions {
  eventsMax: number
  bytesMax: number
}

/** Result of a take from a ring: the wanted events, and the place to continue. */
export interface Taken {
  events: RecordedEvent[]
  next: number
}

/**
 * The recent events of one subscription, in the order of the log, for several readers at their own pace. When it is
 * full the oldest are dropped, and for each prefix it knows from which position on it is complete. Places in it are
 * counted from its beginning, and stay the same while others are dropped.
 */
export class RecentEvents {
  /** Everything that the prefixes cover was pushed up to here. */
  at: number
  /** Number of progress reports of the subscription without an event. */
  passes = 0
  private readonly options: RingOptions
  private events: RecordedEvent[] = []
  private bytes = 0
  /** Place of the first remaining event. */
  private first = 0
  private readonly wholeAfter = new Map<string, number>()

  constructor(at: number, options: RingOptions) {
    this.at = at
    this.options = options
  }

  get prefixes(): string[] {
    return [...this.wholeAfter.keys()]
  }

  /** The place after the newest event. */
  get end(): number {
    return this.first + this.events.length
  }

  /** From the position on, these prefixes and no others are pushed. */
  cover(prefixes: readonly string[], position: number): void {
    for (const known of this.prefixes) if (!prefixes.includes(known)) this.wholeAfter.delete(known)
    for (const prefix of prefixes) if (!this.wholeAfter.has(prefix)) this.wholeAfter.set(prefix, position)
  }

  covers(prefix: string): boolean {
    return this.prefixes.some((known) => prefix.startsWith(known))
  }

  /** Whether every event of the prefixes after the position is here, or is still to be pushed. */
  isWhole(prefixes: readonly string[], position: number): boolean {
    return prefixes.every((prefix) => {
      for (const [known, after] of this.wholeAfter) if (after <= position && prefix.startsWith(known)) return true
      return false
    })
  }

  push(events: readonly RecordedEvent[], at: number): void {
    if (events.length === 0 && at > this.at) this.passes++
    for (const event of events) {
      this.events.push(event)
      this.bytes += event.data.byteLength
    }
    this.at = Math.max(this.at, at)
    const { eventsMax, bytesMax } = this.options
    if (this.events.length > eventsMax || this.bytes > bytesMax) this.drop(eventsMax * KEPT, bytesMax * KEPT)
  }

  /** The place of the first event after the position. */
  placeAfter(position: number): number {
    const index = this.events.findIndex((event) => event.position > position)
    return index < 0 ? this.end : this.first + index
  }

  /** At most `eventsMax` wanted events from a place on. */
  take(place: number, eventsMax: number, isWanted: (event: RecordedEvent) => boolean): Taken {
    const events: RecordedEvent[] = []
    let next = Math.max(place, this.first)
    for (; next < this.end && events.length < eventsMax; next++) {
      const event = this.events[next - this.first]
      if (isWanted(event)) events.push(event)
    }
    return { events, next }
  }

  private drop(eventsMax: number, bytesMax: number): void {
    let count = 0
    while (this.events.length - count > eventsMax || this.bytes > bytesMax) {
      const { stream, position, data } = this.events[count++]
      this.bytes -= data.byteLength
      for (const prefix of this.wholeAfter.keys()) if (stream.startsWith(prefix)) this.wholeAfter.set(prefix, position)
    }
    this.events.splice(0, count)
    this.first += count
  }
}

/** Share left of a full ring: dropping many at once costs less. */
const KEPT = 0.75
