import {
  CarriedLog,
  carriedEvent,
  COPY_BASES,
  COPY_BEGUN,
  COPY_ENDED,
  COPY_PASSED,
  COPY_STREAM,
  copyEvent,
  type CopyState,
  readCopyState,
} from '../../engines/carried-log.ts'
import { type EventLog, WrongRevision } from '../../engines/event-log.ts'
import { TRIAL_STREAM } from '../../engines/examination.ts'
import type { RecordedEvent } from '../../kernel/event.ts'
import { grouped } from '../../kernel/grouped.ts'
import { severalAtOnce } from '../../kit/commands/several-at-once.ts'
import { ORIGIN_STREAM } from '../../kit/consumers/log-origin.ts'
import { type LogDigest, LogDigester } from './log-digest.ts'

export interface CopyLogOptions {
  from: EventLog
  /** The engine's own log, without the copied origin. */
  to: EventLog
  /** Id of the copied log, from its origin. */
  logId: string
  newId(): string
  /** Events between progress notes: repeated by a killed run, sorted by a reader of the copy (default 4,096). */
  windowEventsMax?: number
  onProgress?(events: number): void
}

const WINDOW_EVENTS_MAX = 4_096
const WINDOW_BYTES_MAX = 8 * 1024 * 1024
const BATCH_EVENTS_MAX = 256
const APPEND_EVENTS_MAX = 500
const APPEND_BYTES_MAX = 256 * 1024
const STREAMS_AT_ONCE = 16
const ALL = { prefixes: [''] }

const isForeign = ({ stream }: RecordedEvent): boolean => stream.startsWith('$') || stream === TRIAL_STREAM

interface Passed {
  position: number
  digest: LogDigest
}

/**
 * Copies every event of one log into another one, in windows; an interrupted window is repeated, and events already
 * there are left as they are. `CarriedLog` then shows the copy as the original log.
 */
export class LogCopy {
  private readonly options: CopyLogOptions
  private readonly state: CopyState
  private readonly digest: LogDigester
  /** Streams that begin late, for which it is known whether the copy has their first event. */
  private readonly known = new Set<string>()

  /** First readable revision of each stream. */
  private readonly firsts = new Map<string, number>()

  private constructor(options: CopyLogOptions, state: CopyState) {
    this.options = options
    this.state = state
    this.digest = new LogDigester((state.last as Passed | undefined)?.digest)
  }

  /** @throws Error if the target holds anything but an earlier run of the same copy */
  static async begin(options: CopyLogOptions): Promise<LogCopy> {
    const { to, logId, newId } = options
    const found = await readCopyState(to)
    if (found !== undefined && found.logId !== logId)
      throw new Error('the log to be filled holds the copy of another log; name an empty one')
    if (found !== undefined) return new LogCopy(options, found)
    if ((await to.head(ORIGIN_STREAM)) >= 0)
      throw new Error('the log to be filled is not empty: it is the log of an installation; name an empty one')
    await to.append(COPY_STREAM, [copyEvent(newId(), COPY_BEGUN, { logId })], 'none')
    const state = await readCopyState(to)
    if (state === undefined) throw new Error('the log to be filled does not have what was just written to it')
    return new LogCopy(options, state)
  }

  get hasEnded(): boolean {
    return this.state.endedAt !== undefined
  }

  /** Copies events that are not there yet. */
  async run(): Promise<void> {
    const { from, windowEventsMax = WINDOW_EVENTS_MAX } = this.options
    const end = new AbortController()
    let window: RecordedEvent[] = []
    let bytes = 0
    const begun = (this.state.last as Passed | undefined)?.position
    for await (const { events, checkpoint, caughtUp } of from.follow(ALL, begun, end.signal, BATCH_EVENTS_MAX)) {
      for (const event of events) {
        if (isForeign(event) || !(await this.isVisible(event))) continue
        window.push(event)
        bytes += event.data.byteLength
      }
      const isFull = window.length >= windowEventsMax || bytes >= WINDOW_BYTES_MAX
      if (window.length > 0 && (isFull || caughtUp)) {
        await this.put(window, checkpoint)
        window = []
        bytes = 0
      }
      if (caughtUp) return end.abort()
    }
  }

  /**
   * Reads the whole copy and compares it with the events read from the other log.
   * @throws Error that names the difference
   */
  async verify(): Promise<LogDigest> {
    const state = await readCopyState(this.options.to)
    if (state === undefined) throw new Error('the copy of the log is gone')
    const found = new LogDigester()
    const end = new AbortController()
    for await (const { events, caughtUp } of new CarriedLog(this.options.to, { ...state, endedAt: undefined }).follow(
      ALL,
      undefined,
      end.signal,
    )) {
      for (const event of events) if (!isForeign(event)) found.add(event)
      if (caughtUp) end.abort()
    }
    const [wanted, there] = [this.digest.result(), found.result()]
    for (const category of new Set([...Object.keys(wanted), ...Object.keys(there)]))
      if (wanted[category]?.events !== there[category]?.events || wanted[category]?.digest !== there[category]?.digest)
        throw new Error(
          `the copy of the log differs in streams ${category}-…: ${wanted[category]?.events ?? 0} events were read and ${there[category]?.events ?? 0} are there`,
        )
    return there
  }

  /** Ends the copy, which is an ordinary log from then on. */
  async end(): Promise<void> {
    await this.note(COPY_ENDED, { digest: this.digest.result() })
  }

  private async put(window: readonly RecordedEvent[], position: number): Promise<void> {
    const streams = grouped(window, ({ stream }) => stream)
    await this.noteBases(streams)
    await severalAtOnce(streams, STREAMS_AT_ONCE, ([stream, events]) => this.putStream(stream, events))
    for (const event of window) this.digest.add(event)
    await this.note(COPY_PASSED, { position, digest: this.digest.result() } satisfies Passed)
    this.options.onProgress?.(this.digest.events)
  }

  /** A server still sends truncated or erased events to followers of prefixes; they stay gone. */
  private async isVisible({ stream, revision }: RecordedEvent): Promise<boolean> {
    let first = this.firsts.get(stream)
    if (first === undefined) {
      const [found] = await this.options.from.read(stream, 0, 1)
      first = found?.revision ?? Number.POSITIVE_INFINITY
      this.firsts.set(stream, first)
    }
    return revision >= first
  }

  /** A stream whose beginning was truncated begins anew in the copy: its base is durable before its events. */
  private async noteBases(streams: ReadonlyMap<string, readonly RecordedEvent[]>): Promise<void> {
    const bases: { [stream: string]: number } = {}
    for (const [stream, [{ revision }]] of streams) {
      if (revision === 0 || this.state.bases.has(stream) || this.known.has(stream)) continue
      if ((await this.options.to.head(stream)) < 0) bases[stream] = revision
      this.known.add(stream)
    }
    if (Object.keys(bases).length === 0) return
    await this.note(COPY_BASES, { bases })
    for (const [stream, base] of Object.entries(bases)) this.state.bases.set(stream, base)
  }

  private async putStream(stream: string, events: readonly RecordedEvent[]): Promise<void> {
    const base = this.state.bases.get(stream) ?? 0
    for (let from = 0; from < events.length; ) {
      let to = from
      for (let bytes = 0; to < events.length && to - from < APPEND_EVENTS_MAX; to++) {
        bytes += events[to].data.byteLength
        if (to > from && bytes > APPEND_BYTES_MAX) break
      }
      await this.append(stream, events.slice(from, to), base)
      from = to
    }
  }

  private async append(stream: string, events: readonly RecordedEvent[], base: number): Promise<void> {
    const first = events[0].revision - base
    try {
      await this.options.to.append(stream, events.map(carriedEvent), first === 0 ? 'none' : first - 1)
    } catch (error) {
      if (!(error instanceof WrongRevision)) throw error
      // An earlier run appended all or some of them.
      const there = await this.options.to.read(stream, first, events.length)
      if (error.actual < first || there.some(({ id }, i) => id !== events[i].id))
        throw new Error(`stream ${stream} of the log to be filled has other events; name an empty log`)
      if (there.length < events.length) await this.append(stream, events.slice(there.length), base)
    }
  }

  private async note(type: string, data: object): Promise<void> {
    const event = copyEvent(this.options.newId(), type, data)
    this.state.revision = (await this.options.to.append(COPY_STREAM, [event], this.state.revision)).revision
  }
}
