import type { RecordedEvent } from '../../kernel/event.ts'
import type { FollowBatch } from '../event-log.ts'
import { RecentEvents } from './recent-events.ts'
import { resumed } from './follow.ts'
import { News } from './subscription.ts'

/** Maximum lag of riding followers before they fall off. */
const RING = { eventsMax: 4_096, bytesMax: 8 * 1024 * 1024 }
/** Foreign events that a follower passes before its checkpoint is reported. */
const FOREIGN_UNHEARD_MAX = 1_024
/** Events no longer wanted by anybody after which the subscription is replaced by one without them. */
const UNWANTED_MAX = 1_000

/** Events of prefixes, after a position, until the signal is aborted. */
type Subscribe = (
  prefixes: readonly string[],
  position: number | undefined,
  signal: AbortSignal,
  eventsMax: number,
) => AsyncGenerator<FollowBatch>

/** A follower that reads from the ring. */
interface Rider {
  news: News
  prefixes: readonly string[]
  /** Everything before it was taken, or is irrelevant to it. */
  place: number
  checkpoint: number
  /** State last reported to its reader. */
  told: { place: number; passes: number; isLive: boolean }
}

export interface SharedOptions {
  subscribe: Subscribe
  headPosition(): Promise<number>
  /** Aborted when the log closes. */
  closed: AbortSignal
}

/**
 * One filtered subscription to `$all` for all followers by prefixes in this process: a server walks the whole log for
 * each subscription. It keeps recent events in a ring. A follower first reads by itself until it is caught up, which
 * brings it at least to the beginning of the ring; then it reads along. One that falls behind by more than the length
 * of the ring drops out, and reads by itself again from its position.
 */
export class SharedSubscription {
  private readonly options: SharedOptions
  private readonly wanted = new Map<string, number>()
  private readonly riders = new Set<Rider>()
  private running: { ring: RecentEvents; stop: AbortController; anew: AbortController } | undefined
  private starting: Promise<RecentEvents> | undefined
  private isLive = false
  private unwanted = 0
  /** Followers waiting for the subscription to cover their prefixes. */
  private readonly waiting = new Set<() => void>()

  constructor(options: SharedOptions) {
    this.options = options
  }

  async *follow(
    prefixes: readonly string[],
    checkpoint: number | undefined,
    signal: AbortSignal,
    eventsMax: number,
  ): AsyncGenerator<FollowBatch> {
    this.join(prefixes)
    try {
      const once = (from: number | undefined) => this.aloneThenAlong(prefixes, from, signal, eventsMax)
      yield* resumed(once, checkpoint, signal)
    } finally {
      this.leave(prefixes)
    }
  }

  private async *aloneThenAlong(
    prefixes: readonly string[],
    from: number | undefined,
    signal: AbortSignal,
    eventsMax: number,
  ): AsyncGenerator<FollowBatch> {
    const ring = await this.ringOf(prefixes, signal)
    if (ring === undefined) return
    // Everything in the log before the subscription below began is read when it reports that it is caught up.
    const known = ring.at
    let checkpoint = from ?? -1
    let isCaughtUp = false
    const isMet = (): boolean => this.running?.ring === ring && ring.isWhole(prefixes, checkpoint)
    for await (const batch of this.options.subscribe(prefixes, from, signal, eventsMax)) {
      checkpoint = batch.caughtUp ? Math.max(batch.checkpoint, known) : batch.checkpoint
      yield { ...batch, checkpoint }
      isCaughtUp = batch.caughtUp
      if (isCaughtUp && isMet()) break
    }
    if (isCaughtUp && isMet()) yield* this.along(ring, prefixes, checkpoint, signal, eventsMax)
  }

  /** Ends when an event was dropped that its reader did not have. */
  private async *along(
    ring: RecentEvents,
    prefixes: readonly string[],
    from: number,
    signal: AbortSignal,
    eventsMax: number,
  ): AsyncGenerator<FollowBatch> {
    // A follower that read by itself may be ahead of the ring.
    const isWanted = ({ stream, position }: RecordedEvent): boolean =>
      position > from && prefixes.some((prefix) => stream.startsWith(prefix))
    const place = ring.placeAfter(from)
    const told = { place, passes: ring.passes, isLive: true }
    const rider: Rider = { news: new News(), prefixes, place, checkpoint: from, told }
    this.riders.add(rider)
    signal.addEventListener('abort', rider.news.tell)
    try {
      while (!signal.aborted && this.running?.ring === ring && ring.isWhole(prefixes, rider.checkpoint)) {
        const { events, next } = ring.take(rider.place, eventsMax, isWanted)
        rider.place = next
        const isDrained = next === ring.end
        const isLive = isDrained && this.isLive
        rider.checkpoint = isDrained
          ? Math.max(rider.checkpoint, ring.at)
          : (events.at(-1)?.position ?? rider.checkpoint)
        const isPassed =
          next - rider.told.place >= FOREIGN_UNHEARD_MAX || (isDrained && ring.passes > rider.told.passes)
        if (events.length > 0 || isPassed || (isLive && !rider.told.isLive)) {
          rider.told = { place: next, passes: ring.passes, isLive }
          yield { events, checkpoint: rider.checkpoint, caughtUp: isLive }
        } else {
          rider.told.isLive &&= this.isLive
          await rider.news.wait()
        }
      }
    } finally {
      signal.removeEventListener('abort', rider.news.tell)
      this.riders.delete(rider)
    }
  }

  private join(prefixes: readonly string[]): void {
    for (const prefix of prefixes) this.wanted.set(prefix, (this.wanted.get(prefix) ?? 0) + 1)
  }

  private leave(prefixes: readonly string[]): void {
    for (const prefix of prefixes) {
      const left = (this.wanted.get(prefix) ?? 1) - 1
      if (left > 0) this.wanted.set(prefix, left)
      else this.wanted.delete(prefix)
    }
    if (this.wanted.size > 0) return
    this.running?.stop.abort()
    this.running = undefined
  }

  /** The ring, once it covers the prefixes; undefined when the signal is aborted before. */
  private async ringOf(prefixes: readonly string[], signal: AbortSignal): Promise<RecentEvents | undefined> {
    const ring = this.running?.ring ?? (await orAborted(this.started(), signal))
    const isCovered = (): boolean => ring === undefined || prefixes.every((prefix) => ring.covers(prefix))
    if (isCovered()) return ring
    const covered = new Promise<void>((resolve) => this.waiting.add(resolve))
    // Several that come in one turn cost one new subscription.
    setImmediate(() => isCovered() || this.running?.anew.abort())
    await orAborted(covered, signal)
    return signal.aborted ? undefined : ring
  }

  private started(): Promise<RecentEvents> {
    this.starting ??= (async () => {
      const ring = new RecentEvents(await this.options.headPosition(), RING)
      const stop = new AbortController()
      if (this.wanted.size === 0) return ring
      this.running = { ring, stop, anew: new AbortController() }
      void this.pump(ring, AbortSignal.any([stop.signal, this.options.closed]))
      return ring
    })().finally(() => (this.starting = undefined))
    return this.starting
  }

  private async pump(ring: RecentEvents, signal: AbortSignal): Promise<void> {
    const once = (from: number | undefined): AsyncGenerator<FollowBatch> => {
      const prefixes = [...this.wanted.keys()].filter(
        (one, _, all) => !all.some((other) => other !== one && one.startsWith(other)),
      )
      const anew = new AbortController()
      if (this.running?.ring === ring) this.running.anew = anew
      this.isLive = false
      this.unwanted = 0
      ring.cover(prefixes, from ?? -1)
      for (const resume of this.waiting) resume()
      this.waiting.clear()
      return this.options.subscribe(prefixes, from, AbortSignal.any([signal, anew.signal]), RING.eventsMax)
    }
    for await (const { events, checkpoint, caughtUp } of resumed(once, ring.at < 0 ? undefined : ring.at, signal)) {
      if (this.running?.ring !== ring) return
      const end = ring.end
      ring.push(events, checkpoint)
      this.isLive = caughtUp
      for (const { stream } of events) if (!this.isWanted(stream)) this.unwanted++
      if (this.unwanted > UNWANTED_MAX) this.running?.anew.abort()
      for (const rider of this.riders) if (!passed(rider, { ring, end, events, caughtUp })) rider.news.tell()
    }
  }

  private isWanted(stream: string): boolean {
    for (const prefix of this.wanted.keys()) if (stream.startsWith(prefix)) return true
    return false
  }
}

/** Events pushed behind that end of the ring. */
interface Pushed {
  ring: RecentEvents
  end: number
  events: readonly RecordedEvent[]
  caughtUp: boolean
}

/** Lets a caught-up rider skip irrelevant events: waking every rider for every event costs more than the events. */
const passed = (rider: Rider, { ring, end, events, caughtUp }: Pushed): boolean => {
  const { prefixes, told } = rider
  const isUnheard = ring.end - told.place >= FOREIGN_UNHEARD_MAX || ring.passes > told.passes
  if (rider.place !== end || isUnheard || (caughtUp && !told.isLive)) return false
  for (const { stream } of events) for (const prefix of prefixes) if (stream.startsWith(prefix)) return false
  rider.place = ring.end
  rider.checkpoint = Math.max(rider.checkpoint, ring.at)
  return true
}

const orAborted = async <Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value | undefined> => {
  let stop = (): void => undefined
  const aborted = new Promise<undefined>((resolve) => {
    stop = () => resolve(undefined)
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop)
  })
  return Promise.race([promise, aborted]).finally(() => signal.removeEventListener('abort', stop))
}
