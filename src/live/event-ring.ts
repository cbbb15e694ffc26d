import { type EventVector, isBehind, type Reach } from './cursor.ts'

export const CHANNELS = ['positions', 'geofence', 'trip', 'task', 'automation', 'job', 'notification'] as const
export type ChannelName = (typeof CHANNELS)[number]

/** One thing that happened in an organization, as its GET answers it. */
export interface LiveEvent {
  channel: ChannelName
  /** Whose transition, trip or run it is; absent for a job and for an automation itself. */
  trackerId?: string
  /** Whoever asked for the job. */
  userId?: string
  /** Which part of a cursor it moves. */
  partition: number
  reach: Reach
  /** JSON text, made when somebody wants it. */
  text(): string
}

/** The newest events of one organization, so that a client that was away for a moment need not be answered from the log. Runs are not here. */
export class EventRing {
  private events: LiveEvent[] = []
  private head = 0
  /** What a client must have seen for the ring to hold all the rest. */
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
