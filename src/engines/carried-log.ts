import { decodeJson, encodeJson, type NewEvent, type RecordedEvent } from '../kernel/event.ts'
import type { Examination } from './examination.ts'
import { type Appended, type EventLog, eventsOf, type FollowBatch, type Source, WrongRevision } from './event-log.ts'

/** Records, in a log copied from another one, the places of its events there. No consumer follows it. */
export const COPY_STREAM = 'log-copy'
export const COPY_BEGUN = 'copyBegun.v1'
/** Streams that begin late, with the revision of their first event. */
export const COPY_BASES = 'copyBases.v1'
/** Everything up to a position of the other log stands before this event. */
export const COPY_PASSED = 'copyPassed.v1'
export const COPY_ENDED = 'copyEnded.v1'

const BATCH_EVENTS_MAX = 500

/** State of the copy's own stream. */
export interface CopyState {
  /** The log that is copied. */
  logId: string
  /** Offsets of revisions, by stream. */
  bases: Map<string, number>
  /** Positions up to which everything was copied, in both logs, rising. */
  passed: { carried: number[]; own: number[] }
  /** Position of the end of the copy in this log; undefined while it goes on. */
  endedAt: number | undefined
  /** Last revision of the copy's own stream. */
  revision: number
  /** Data of the last event with the progress. */
  last: unknown
}

/** State of a copy into this log; undefined for a log of its own. */
export const readCopyState = async (log: Pick<EventLog, 'read'>): Promise<CopyState | undefined> => {
  let state: CopyState | undefined
  for await (const event of eventsOf(log, COPY_STREAM)) state = noted(state, event)
  return state
}

const noted = (known: CopyState | undefined, { type, data, revision, position }: RecordedEvent): CopyState => {
  const said = decodeJson<{ logId: string; bases: { [stream: string]: number }; position: number }>(data)
  const state: CopyState = known ?? {
    logId: said.logId,
    bases: new Map(),
    passed: { carried: [] as number[], own: [] as number[] },
    endedAt: undefined,
    revision,
    last: undefined,
  }
  state.revision = revision
  if (type === COPY_BASES) for (const [stream, base] of Object.entries(said.bases)) state.bases.set(stream, base)
  if (type === COPY_PASSED) {
    state.passed.carried.push(said.position)
    state.passed.own.push(position)
    state.last = said
  }
  if (type === COPY_ENDED) state.endedAt = position
  return state
}

/** An event for the copy: with its position in the whole log and its time. */
export const carriedEvent = ({ id, type, data, isJson, metadata, position, loggedAt }: RecordedEvent): NewEvent => ({
  id,
  type,
  data,
  isJson,
  metadata: { ...metadata, carried: [position, loggedAt] } as NewEvent['metadata'],
})

export const copyEvent = (id: string, type: string, data: object): NewEvent => ({
  id,
  type,
  data: encodeJson(data),
  isJson: true,
  metadata: {},
})

/**
 * A copied log in the shape of its original: revisions, positions and times of its events are unchanged, and continue
 * from there. So every stored reference stays right: checkpoints, snapshots, rows of the history, revisions that
 * clients hold. The order of the copy itself is looser: between two `COPY_PASSED` only each stream is in order, and a
 * follower of several gets their events in the order of their positions.
 */
export class CarriedLog implements EventLog {
  private readonly log: EventLog
  private readonly state: CopyState
  /** Position of the other log up to which it was copied. */
  private readonly through: number
  private readonly endedAt: number
  /** Added to positions of events after the copy, so that they rise on from those of the other log. */
  private readonly shift: number

  constructor(log: EventLog, state: CopyState) {
    this.log = log
    this.state = state
    this.through = state.passed.carried.at(-1) ?? -1
    this.endedAt = state.endedAt ?? Number.POSITIVE_INFINITY
    this.shift = state.endedAt === undefined ? 0 : Math.max(0, this.through - state.endedAt)
  }

  get gatherMs(): number | undefined {
    return this.log.gatherMs
  }

  async append(...[stream, events, expected]: Parameters<EventLog['append']>): Promise<Appended> {
    const base = this.baseOf(stream)
    const own = typeof expected === 'number' ? expected - base : expected
    // A revision that early was truncated before the copy was made.
    if (typeof own === 'number' && own < 0) throw new WrongRevision(stream, await this.head(stream))
    try {
      const { revision, position } = await this.log.append(stream, events, own)
      return { revision: revision + base, position: position + this.shift }
    } catch (error) {
      if (base === 0 || !(error instanceof WrongRevision) || error.actual < 0) throw error
      throw new WrongRevision(stream, error.actual + base)
    }
  }

  async read(...[stream, from, limit, direction]: Parameters<EventLog['read']>): Promise<RecordedEvent[]> {
    const base = this.baseOf(stream)
    if (from !== 'end' && from < base && direction === 'backwards') return []
    const events = await this.log.read(stream, from === 'end' ? from : Math.max(0, from - base), limit, direction)
    return events.map((event) => this.restored(event))
  }

  follow(
    source: Source,
    checkpoint: number | undefined,
    signal: AbortSignal,
    max?: number,
  ): AsyncIterable<FollowBatch> {
    return 'stream' in source
      ? this.followStream(source.stream, checkpoint, signal, max)
      : this.followPrefixes(source, checkpoint, signal, max)
  }

  async head(stream: string): Promise<number> {
    const head = await this.log.head(stream)
    return head < 0 ? head : head + this.baseOf(stream)
  }

  async headPosition(): Promise<number> {
    const head = await this.log.headPosition()
    return head > this.endedAt ? head + this.shift : this.through
  }

  async truncateBefore(stream: string, revision: number): Promise<void> {
    const own = revision - this.baseOf(stream)
    if (own > 0) await this.log.truncateBefore(stream, own)
  }

  erase(stream: string): Promise<void> {
    return this.log.erase(stream)
  }

  ping(): Promise<void> {
    return this.log.ping()
  }

  examine(): Promise<Examination> {
    return this.log.examine?.() ?? Promise.resolve({ settings: [] })
  }

  get copyTo(): EventLog['copyTo'] {
    return this.log.copyTo?.bind(this.log)
  }

  close(): Promise<void> {
    return this.log.close()
  }

  private baseOf(stream: string): number {
    return this.state.bases.get(stream) ?? 0
  }

  private restored(event: RecordedEvent): RecordedEvent {
    const revision = event.revision + this.baseOf(event.stream)
    if (event.position > this.endedAt) return { ...event, revision, position: event.position + this.shift }
    const { carried, ...metadata } = event.metadata as { carried?: [number, number] }
    if (carried === undefined) return { ...event, revision }
    return { ...event, revision, metadata, position: carried[0], loggedAt: carried[1] }
  }

  private async *followStream(
    stream: string,
    after: number | undefined,
    signal: AbortSignal,
    max?: number,
  ): AsyncGenerator<FollowBatch> {
    const base = this.baseOf(stream)
    const own = after === undefined || after < base ? undefined : after - base
    for await (const { events, checkpoint, caughtUp } of this.log.follow({ stream }, own, signal, max)) {
      const at = checkpoint < 0 ? (after ?? -1) : checkpoint + base
      yield { events: events.map((event) => this.restored(event)), checkpoint: at, caughtUp }
    }
  }

  private async *followPrefixes(
    source: Source,
    after: number | undefined,
    signal: AbortSignal,
    max = BATCH_EVENTS_MAX,
  ): AsyncGenerator<FollowBatch> {
    const windows = new Windows(this.state, after ?? -1, max)
    for await (const batch of this.log.follow(source, this.ownOf(after), signal, max)) {
      const later: RecordedEvent[] = []
      for (const event of batch.events) {
        if (event.stream === COPY_STREAM) continue
        if (event.position > this.endedAt) later.push(this.restored(event))
        else {
          yield* windows.endedBefore(event.position)
          windows.hold(this.restored(event))
        }
      }
      yield* windows.endedBefore(batch.caughtUp ? Number.POSITIVE_INFINITY : batch.checkpoint)
      if (batch.checkpoint >= this.endedAt) {
        const checkpoint = batch.checkpoint > this.endedAt ? batch.checkpoint + this.shift : this.through
        yield { events: later, checkpoint, caughtUp: batch.caughtUp }
      } else if (batch.caughtUp) yield { events: [], checkpoint: windows.told, caughtUp: true }
    }
  }

  /** Position from which the log itself is to be followed, so that no event after a position is left out. */
  private ownOf(after: number | undefined): number | undefined {
    if (after === undefined || after < 0) return undefined
    if (after > this.through) return Math.max(after - this.shift, this.endedAt)
    if (after === this.through && this.endedAt !== Number.POSITIVE_INFINITY) return this.endedAt
    const { carried, own } = this.state.passed
    return own[firstAbove(carried, after) - 1]
  }
}

/** Copied events are in a looser order than before: the events of a window are held until its end, and then sorted. */
class Windows {
  /** The checkpoint of the last batch. */
  told: number
  private held: RecordedEvent[] = []
  private readonly passed: CopyState['passed']
  private readonly after: number
  private readonly max: number
  /** The window being held: its end as an index in `passed`. */
  private window: number

  constructor({ passed }: CopyState, after: number, max: number) {
    this.passed = passed
    this.after = after
    this.told = after
    this.max = max
    this.window = firstAbove(passed.carried, after)
  }

  hold(event: RecordedEvent): void {
    if (event.position > this.after) this.held.push(event)
  }

  /** Batches of the windows that end before a position of the log itself. */
  *endedBefore(own: number): Generator<FollowBatch> {
    const { carried, own: ends } = this.passed
    if (own <= (ends[this.window] ?? Number.MAX_VALUE)) return
    while (this.window < ends.length && ends[this.window] < own) this.window++
    const events = this.held.sort((one, other) => one.position - other.position)
    this.held = []
    for (let from = 0; from < events.length; from += this.max) {
      const part = events.slice(from, from + this.max)
      const last = part[part.length - 1].position
      this.told = from + this.max < events.length ? last : Math.max(last, carried[this.window - 1] ?? last)
      yield { events: part, checkpoint: this.told, caughtUp: false }
    }
  }
}

/** Index of the first number above a value in a rising list. */
const firstAbove = (rising: readonly number[], value: number): number => {
  let low = 0
  let high = rising.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (rising[middle] > value) high = middle
    else low = middle + 1
  }
  return low
}
