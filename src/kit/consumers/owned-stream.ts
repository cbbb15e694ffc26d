import { type Appended, type EventLog, WrongRevision } from '../../engines/event-log.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Failure } from '../../kernel/errors.ts'
import type { NewEvent } from '../../kernel/event.ts'
import { pause, RETRY_MS } from './retry.ts'

/** Another process now writes the stream, or this one has let it go. */
export class StreamLost extends Error {
  constructor(stream: string) {
    super(`${stream} has another owner`)
    this.name = 'StreamLost'
  }
}

export interface OwnedStreamOptions<Entry> {
  log: Pick<EventLog, 'append'>
  clock: Clock
  stream: string
  /** Last revision of the stream, -1 for none. */
  revision: number
  /** Maximum of one append, as `push` counts it; at least one entry. */
  bytesMax: number
  entriesMax?: number
  /** The events that entries become, which go with one append. */
  eventsOf(entries: readonly Entry[]): readonly NewEvent[]
  /** Called with the durable entries, in order, and the revision of the first event. */
  onAppended(entries: readonly Entry[], firstRevision: number, appended: Appended): void
  /** Called with entries that will never be appended. */
  onLost?(entries: readonly Entry[]): void
  /** Called with each failure; the append is tried again unless the stream is lost. */
  onFailure(error: unknown): void
}

/**
 * The one writer of a stream. One append is in flight; entries pushed meanwhile go with the next one, so that the log's
 * latency does not limit throughput. An engine that is down is retried until it answers. The callers bound the queue:
 * by `settled`, `room`, or a wait for each entry.
 */
export class OwnedStream<Entry> {
  /** Revision of the last event. */
  head: number
  /** Failure after which nothing more can be appended. */
  failure: unknown
  /** Sum of the waiting bytes. */
  bytes = 0
  private readonly options: OwnedStreamOptions<Entry>
  private readonly end = new AbortController()
  private waiting: { entry: Entry; bytes: number }[] = []
  private inFlight = 0
  private writing: Promise<void> | undefined

  constructor(options: OwnedStreamOptions<Entry>) {
    this.options = options
    this.head = options.revision
  }

  /** The oldest entry that is not in the log. */
  get first(): Entry | undefined {
    return this.waiting[0]?.entry
  }

  get isClosed(): boolean {
    return this.end.signal.aborted
  }

  push(entry: Entry, bytes: number): void {
    if (this.isClosed || this.failure !== undefined) return this.options.onLost?.([entry])
    this.waiting.push({ entry, bytes })
    this.bytes += bytes
    this.writing ??= this.write()
  }

  /** Resolves when everything pushed is in the log. @throws StreamLost, or what keeps it from being appended. */
  settled(): Promise<void> {
    return this.room(0)
  }

  /** Resolves when at most `bytesMax` wait; rejects as `settled`. */
  async room(bytesMax: number): Promise<void> {
    while (this.bytes > bytesMax && this.writing !== undefined) await this.writing
    if (this.failure !== undefined) throw this.failure
    if (this.bytes > bytesMax) throw new StreamLost(this.options.stream)
  }

  /** Appends nothing more after the append in flight. */
  close(): void {
    this.end.abort()
    this.lose(this.inFlight)
  }

  private async write(): Promise<void> {
    // Entries of the same turn of the event loop go together.
    await new Promise<void>((resume) => queueMicrotask(resume))
    try {
      while (this.waiting.length > 0 && !this.isClosed && this.failure === undefined) await this.appendSome()
    } catch (error) {
      this.failure = error
      this.options.onFailure(error)
    } finally {
      this.inFlight = 0
      this.writing = undefined
      if (this.isClosed || this.failure !== undefined) this.lose(0)
    }
  }

  private async appendSome(): Promise<void> {
    const { bytesMax, entriesMax = Number.POSITIVE_INFINITY, eventsOf, onAppended } = this.options
    const { waiting } = this
    let count = 0
    let bytes = 0
    while (count < waiting.length && count < entriesMax && (count === 0 || bytes + waiting[count].bytes <= bytesMax))
      bytes += waiting[count++].bytes
    const entries = waiting.slice(0, count).map(({ entry }) => entry)
    this.inFlight = count
    const appended = await this.append(eventsOf(entries))
    if (appended === undefined) return
    waiting.splice(0, count)
    this.inFlight = 0
    this.bytes -= bytes
    const firstRevision = this.head + 1
    this.head = appended.revision
    onAppended(entries, firstRevision, appended)
  }

  private async append(events: readonly NewEvent[]): Promise<Appended | undefined> {
    const { log, clock, stream, onFailure } = this.options
    for (let failures = 0; !this.isClosed; failures++) {
      try {
        return await log.append(stream, events, this.head < 0 ? 'none' : this.head)
      } catch (error) {
        if (error instanceof WrongRevision) throw new StreamLost(stream)
        if (!(error instanceof Failure) || error.code !== 'engine_down') throw error
        onFailure(error)
        await pause(clock, RETRY_MS[Math.min(failures, RETRY_MS.length - 1)], this.end.signal)
      }
    }
    return undefined
  }

  private lose(from: number): void {
    const lost = this.waiting.splice(from).map(({ entry }) => entry)
    if (lost.length > 0) this.options.onLost?.(lost)
  }
}

const TAKE_TRIES = 10

/** Appends an event, so that the previous owner fails at its next append; answers its revision. */
export const takeStream = async (
  log: Pick<EventLog, 'append' | 'head'>,
  stream: string,
  taken: NewEvent,
): Promise<number> => {
  for (let tries = 1; ; tries++) {
    const head = await log.head(stream)
    try {
      return (await log.append(stream, [taken], head < 0 ? 'none' : head)).revision
    } catch (error) {
      if (!(error instanceof WrongRevision) || tries === TAKE_TRIES) throw error
    }
  }
}
