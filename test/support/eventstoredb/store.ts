import { closeSync, existsSync, ftruncateSync, openSync, readFileSync, writevSync } from 'node:fs'
import { RecentMap } from '../../../src/kernel/recent-map.ts'
import { decode, encode, FiledEvent, headEndOf, SCAVENGED, type StoredEvent } from './records.ts'

export type NewStoredEvent = Pick<StoredEvent, 'id' | 'type' | 'contentType' | 'data' | 'metadata'>

export type Expected = bigint | 'any' | 'no_stream' | 'stream_exists'

export type AppendOutcome =
  | { kind: 'written'; revision: number; position: number }
  /** Known from before: the server does not tell where it stands. */
  | { kind: 'repeated'; revision: number }
  | { kind: 'wrongVersion'; current: number }

interface StreamState {
  events: StoredEvent[]
  truncateBefore: number
  isDeleted: boolean
  /** Deleted and written to again: for some moments a server still shows nothing of it. */
  isReturning: boolean
  /** For ever. */
  isTombstoned: boolean
}

/** As the server counts an event against the largest append. */
export const sizeOnDisk = ({ type, data, metadata }: NewStoredEvent): number =>
  2 * type.length + data.byteLength + metadata.byteLength

/** What a soft deletion writes as `$tb`. */
const DELETED_BEFORE = 9_223_372_036_854_775_807n
const TOMBSTONE = '$streamDeleted'
const RECENT_IDS = 20_000
const RETURNS_AFTER_MS = 15

const newState = (): StreamState => ({
  events: [],
  truncateBefore: 0,
  isDeleted: false,
  isReturning: false,
  isTombstoned: false,
})

/**
 * An append-only file of records and what follows from it: streams, `$tb`, soft deletion, expected versions. Ids of the
 * recent past alone are remembered beside the streams, as a server does, and forgotten when it ends. A record that a
 * kill cut is dropped when the file is opened again.
 */
export class StreamStore {
  /** Everything, hidden events too, by position. */
  all: StoredEvent[] = []
  private readonly streams = new Map<string, StreamState>()
  private recent = new RecentMap<string, StoredEvent>(RECENT_IDS)
  /** Positions of events that a scavenge took out: a server still takes them for positions. */
  private readonly scavenged = new Set<number>()
  private readonly file: number | undefined
  private isClosed = false
  private end = 0
  private readonly listeners = new Set<(stream: string) => void>()

  constructor(path: string | undefined) {
    if (path === undefined) return
    const bytes = existsSync(path) ? readFileSync(path) : Buffer.alloc(0)
    this.file = openSync(path, existsSync(path) ? 'r+' : 'w+')
    this.end = this.load(bytes)
    ftruncateSync(this.file, this.end)
  }

  /** Events of a stream that are not hidden, or undefined where there is none. */
  visible(stream: string): { events: StoredEvent[]; from: number } | undefined {
    const state = this.streams.get(stream)
    if (state === undefined || state.isDeleted || state.isReturning || state.events.length === 0) return undefined
    return { events: state.events, from: state.truncateBefore }
  }

  append(stream: string, events: readonly NewStoredEvent[], expected: Expected): AppendOutcome {
    const state = this.stateOf(stream)
    const last = state.events.length - 1
    const known = this.repeated(stream, state, events, expected)
    if (known !== undefined) return known
    if (!isExpected(expected, state, last)) return { kind: 'wrongVersion', current: last }
    if (state.isDeleted) this.undelete(stream, last + 1)
    const created = BigInt(Date.now()) * 10_000n
    const written = events.map((event, index) => ({
      ...event,
      stream,
      revision: last + 1 + index,
      position: 0,
      created,
    }))
    this.write(written)
    return { kind: 'written', revision: last + events.length, position: written.at(-1)?.position ?? -1 }
  }

  /** Soft deletion: a `$tb` above everything. Answers undefined where the stream has no events. */
  delete(stream: string): { position: number } | undefined {
    const state = this.streams.get(stream)
    if (state === undefined || state.isDeleted || state.events.length === 0) return undefined
    const { position } = this.writeMetadata(stream, `{"$tb":${DELETED_BEFORE}}`)
    return { position }
  }

  /** Deletion for good: nothing is ever appended to the stream again. */
  tombstone(stream: string): { position: number } {
    const event = this.systemEvent(stream, TOMBSTONE, '')
    this.write([event])
    return event
  }

  isTombstoned(stream: string): boolean {
    return this.streams.get(stream)?.isTombstoned === true
  }

  /** The listener is told the stream. */
  onAppended(listener: (stream: string) => void): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  /**
   * Takes what is hidden out of `all` and out of the file, but the last event of each stream; answers the bytes.
   * Positions stay as they are.
   */
  scavenge(): number {
    let bytes = 0
    for (const event of this.all) {
      if (!this.isGone(event)) continue
      bytes += event.data.byteLength + event.metadata.byteLength
      this.scavenged.add(event.position)
      this.blank(event)
    }
    this.all = this.all.filter(({ position }) => !this.scavenged.has(position))
    return bytes
  }

  isPosition(position: number): boolean {
    return (
      this.scavenged.has(position) ||
      (this.indexAfter(position) > 0 && this.all[this.indexAfter(position) - 1].position === position)
    )
  }

  /**
   * Where a subscription from a position begins in `all`: the server passes the first event that it finds there, whether
   * that is the one of the position or, where a scavenge took that out, the next one.
   */
  indexOfSubscription(position: number): number {
    return this.indexAfter(position) + (this.scavenged.has(position) ? 1 : 0)
  }

  /** Index in `all` of the first event at a position or after it. */
  indexFrom(position: number): number {
    return this.indexAfter(position - 1)
  }

  /** Index in `all` of the first event after a position. */
  indexAfter(position: number): number {
    let low = 0
    let high = this.all.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.all[middle].position <= position) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Tells what the server itself writes. */
  journal(stream: string, type: string, data: object): void {
    this.write([this.systemEvent(stream, type, JSON.stringify(data))])
  }

  close(): void {
    if (this.file !== undefined && !this.isClosed) closeSync(this.file)
    this.isClosed = true
  }

  private stateOf(stream: string): StreamState {
    let state = this.streams.get(stream)
    if (state === undefined) this.streams.set(stream, (state = newState()))
    return state
  }

  /** The server's test for a repeat: by revision where one is expected, by its recent memory where any is. */
  private repeated(
    stream: string,
    { events }: StreamState,
    given: readonly NewStoredEvent[],
    expected: Expected,
  ): AppendOutcome | undefined {
    if (expected === 'any' || expected === 'stream_exists') {
      const first = this.recent.get(given[0].id)
      if (first === undefined || first.stream !== stream) return undefined
      const isSame = given.every(({ id }, index) => events[first.revision + index]?.id === id)
      if (!isSame) return { kind: 'wrongVersion', current: events.length - 1 }
      return { kind: 'repeated', revision: first.revision + given.length - 1 }
    }
    const from = expected === 'no_stream' ? 0 : Number(expected) + 1
    if (from >= events.length) return undefined
    const isSame = given.every(({ id }, index) => events[from + index]?.id === id)
    if (isSame) return { kind: 'repeated', revision: from + given.length - 1 }
    const isFirst = events[from].id === given[0].id
    return isFirst ? { kind: 'wrongVersion', current: events.length - 1 } : undefined
  }

  private isGone({ stream, revision }: StoredEvent): boolean {
    const { events, truncateBefore } = this.stateOf(stream)
    const before = stream.startsWith('$$') ? events.length - 1 : truncateBefore
    return revision < Math.min(before, events.length - 1)
  }

  private blank(event: StoredEvent): void {
    if (event instanceof FiledEvent) event.blank()
    else event.data = event.metadata = new Uint8Array(0)
  }

  private undelete(stream: string, revision: number): void {
    const state = this.stateOf(stream)
    state.isReturning = true
    setTimeout(() => {
      state.isReturning = false
      for (const listener of this.listeners) listener(stream)
    }, RETURNS_AFTER_MS)
    this.writeMetadata(stream, `{"$tb":${revision}}`)
  }

  private writeMetadata(stream: string, text: string): { position: number } {
    const event = this.systemEvent(`$$${stream}`, '$metadata', text)
    this.write([event])
    return event
  }

  private systemEvent(stream: string, type: string, text: string): StoredEvent {
    return {
      id: `00000000-0000-4000-8000-${(this.all.length % 2 ** 40).toString(16).padStart(12, '0')}`,
      stream,
      revision: this.stateOf(stream).events.length,
      position: 0,
      type,
      contentType: 'application/json',
      created: BigInt(Date.now()) * 10_000n,
      data: Buffer.from(text),
      metadata: new Uint8Array(0),
    }
  }

  private write(events: StoredEvent[]): void {
    const records = events.map((event) => {
      const record = encode(event)
      event.position = this.end
      for (const part of record) this.end += part.byteLength
      return record
    })
    if (this.file !== undefined) this.writeAll(records.flat(), events[0].position)
    for (const [index, event] of events.entries()) this.take(this.filed(event, records[index][0].byteLength))
    for (const listener of this.listeners) listener(events[0].stream)
  }

  /** Without putting the parts together: copies of large events kept the double collecting garbage. */
  private writeAll(parts: readonly Uint8Array[], position: number): void {
    const written = writevSync(this.file as number, parts, position)
    if (written !== this.end - position) throw new Error(`the disk took ${written} of ${this.end - position} bytes`)
  }

  private take(event: StoredEvent): void {
    this.all.push(event)
    const own = this.stateOf(event.stream)
    own.events.push(event)
    own.isTombstoned ||= event.type === TOMBSTONE
    this.recent.set(event.id, event)
    if (!event.stream.startsWith('$$')) return
    const state = this.stateOf(event.stream.slice(2))
    const [, before = '0'] = /"\$tb":\s*(\d+)/.exec(Buffer.from(event.data).toString()) ?? []
    state.isDeleted = BigInt(before) >= DELETED_BEFORE
    state.truncateBefore = state.isDeleted ? Number.MAX_SAFE_INTEGER : Number(before)
  }

  private filed(event: StoredEvent, headEnd: number): StoredEvent {
    return this.file === undefined ? event : new FiledEvent(event, headEnd, this.file)
  }

  private load(bytes: Buffer): number {
    let at = 0
    while (at + 8 <= bytes.byteLength) {
      const length = bytes.readUInt32BE(at)
      if (at + length > bytes.byteLength) break
      const record = bytes.subarray(at, at + length)
      const isScavenged = (record.readUInt32BE(4) & SCAVENGED) !== 0
      if (isScavenged) record.writeUInt32BE((record.readUInt32BE(4) & ~SCAVENGED) >>> 0, 4)
      this.take(this.filed(decode(record, at), headEndOf(record)))
      if (isScavenged) this.scavenged.add((this.all.pop() as StoredEvent).position)
      at += length
    }
    this.recent = new RecentMap(RECENT_IDS)
    return at
  }
}

const isExpected = (expected: Expected, { isDeleted }: StreamState, last: number): boolean => {
  if (expected === 'any') return true
  if (expected === 'no_stream') return last < 0 || isDeleted
  if (expected === 'stream_exists') return last >= 0 && !isDeleted
  return Number(expected) === last
}
