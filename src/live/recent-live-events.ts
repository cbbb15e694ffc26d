import { type EventVector, isBehind, type Reach } from './cursor.ts'
import type { LiveEvent } from './live-event.ts'

/** Newest events of an organization, for clients away for a moment. Of `FEEDS` (by log position alone) only jobs. */
export class RecentLiveEvents {
  private events: LiveEvent[] = []
  private head = 0
  /** Events that a client must have seen for the ring to hold all the rest. */
  private readonly start: Reach[]
  private readonly eventsMax: number

  constructor(start: EventVector, eventsMax: number) {
    this.start = [...start]
    this.eventsMax = eventsMax
  }

  push(event: LiveEvent): void {
    this.events.push(event)
    if (this.events.length - this.head <= this.eventsMax) return
    const oldest = this.events[this.head]
    this.start[oldest.partition] = oldest.reach
    this.events[this.head++] = undefined as never
    if (this.head * 2 > this.events.length) {
      this.events = this.events.slice(this.head)
      this.head = 0
    }
  }

  /** The events after the vector, oldest first; undefined when the ring does not reach back that far. */
  after(vector: EventVector): LiveEvent[] | undefined {
    if (this.start.some((reach, partition) => !isBehind(reach, vector[partition]))) return undefined
    return this.events.slice(this.head).filter((event) => !isBehind(event.reach, vector[event.partition]))
  }
}
