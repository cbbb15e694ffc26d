import {
  APPEND_BYTES_MAX,
  type Appended,
  type EventLog,
  type ExpectedRevision,
  type FollowBatch,
  type Source,
  WrongRevision,
} from '../../src/engines/event-log.ts'
import { Failure } from '../../src/kernel/errors.ts'
import type { NewEvent, RecordedEvent } from '../../src/kernel/event.ts'
import { down, type Wire } from './wire.ts'

const BATCH_EVENTS_MAX = 512
const STEP = 1_000
const FOLLOW_AGAIN_MS = 50

interface Stream {
  /** Every event ever, by revision. */
  events: RecordedEvent[]
  /** Revision of the first event that is not hidden. */
  from: number
  /** Revision of the first event since the stream was erased last. */
  anewFrom: number
}

export interface MemoryLogOptions {
  now(): number
  /** Whether an append with `any` that comes again is stored again. */
  storesAgain(): boolean
}

/** A log in memory, as one server that does one thing at a time. Positions lie far apart, and checkpoints between them. */
export class MemoryLog {
  readonly events: RecordedEvent[] = []
  private readonly options: MemoryLogOptions
  private readonly streams = new Map<string, Stream>()
  private readonly waiting = new Set<{ source: Source; wake(): void }>()

  constructor(options: MemoryLogOptions) {
    this.options = options
  }

  append(name: string, events: readonly NewEvent[], expected: ExpectedRevision): Appended {
    const bytes = events.reduce((sum, { data }) => sum + data.byteLength, 0)
    if (bytes > APPEND_BYTES_MAX) throw new Failure('too_large')
    const stream = this.streams.get(name) ?? { events: [], from: 0, anewFrom: 0 }
    this.streams.set(name, stream)
    const before = expected === 'any' ? this.repeated(stream, name, events) : undefined
    if (before !== undefined) return before
    const head = headOf(stream)
    if (expected !== 'any' && head !== (expected === 'none' ? -1 : expected)) {
      const first = expected === 'none' ? stream.anewFrom : expected + 1
      const last = stream.events[first + events.length - 1]
      const isSame = first >= stream.anewFrom && events.every(({ id }, i) => stream.events[first + i]?.id === id)
      if (!isSame) throw new WrongRevision(name, head)
      return { revision: last.revision, position: last.position }
    }
    for (const event of events) this.store(name, stream, event)
    const { revision, position } = stream.events[stream.events.length - 1]
    for (const waiter of [...this.waiting]) if (isOf(waiter.source, name)) waiter.wake()
    return { revision, position }
  }

  read(name: string, from: number | 'end', limit: number, direction = 'forwards'): RecordedEvent[] {
    const stream = this.streams.get(name)
    if (stream === undefined) return []
    if (direction === 'forwards') {
      const first = from === 'end' ? stream.events.length - 1 : Math.max(from, stream.from)
      return stream.events.slice(first, first + limit)
    }
    const last = from === 'end' ? stream.events.length - 1 : Math.min(from, stream.events.length - 1)
    return last < stream.from ? [] : stream.events.slice(Math.max(stream.from, last + 1 - limit), last + 1).reverse()
  }

  /** Every event ever of a stream, what is truncated too. */
  everything(name: string): readonly RecordedEvent[] {
    return this.streams.get(name)?.events ?? []
  }

  head(name: string): number {
    const stream = this.streams.get(name)
    return stream === undefined ? -1 : headOf(stream)
  }

  headPosition(): number {
    return betweenOf(this.events.length - 1)
  }

  truncateBefore(name: string, revision: number): void {
    const stream = this.streams.get(name)
    if (stream !== undefined) stream.from = Math.max(stream.from, Math.min(revision, stream.events.length - 1))
  }

  erase(name: string): void {
    const stream = this.streams.get(name)
    if (stream !== undefined) stream.from = stream.anewFrom = stream.events.length
  }

  /** What comes after a checkpoint. Who follows prefixes is shown what is hidden, too. */
  batch(source: Source, checkpoint: number | undefined, max: number): FollowBatch {
    if ('stream' in source) {
      const events = this.read(source.stream, (checkpoint ?? -1) + 1, max)
      const at = events.at(-1)?.revision ?? checkpoint ?? -1
      const isEnd = events.length === 0 || at >= (this.streams.get(source.stream)?.events.length ?? 0) - 1
      return { events, checkpoint: at, caughtUp: isEnd }
    }
    const events: RecordedEvent[] = []
    let index = this.indexAfter(checkpoint ?? -1)
    for (; index < this.events.length && events.length < max; index++)
      if (isOf(source, this.events[index].stream)) events.push(this.events[index])
    const at = Math.max(checkpoint ?? -1, betweenOf(index - 1))
    return { events, checkpoint: at, caughtUp: index === this.events.length }
  }

  /** Resolves `wake` once, when something is appended to what is followed; the answer ends the waiting. */
  wait(source: Source, wake: () => void): () => void {
    const waiter = {
      source,
      wake: () => {
        this.waiting.delete(waiter)
        wake()
      },
    }
    this.waiting.add(waiter)
    return () => void this.waiting.delete(waiter)
  }

  private repeated(stream: Stream, name: string, events: readonly NewEvent[]): Appended | undefined {
    const known = stream.events.filter(({ id }) => events.some((event) => event.id === id))
    const count = new Set(known.map(({ id }) => id)).size
    if (count > 0 && count < events.length)
      throw new Error(`an append to ${name} mixes ${count} events that it has with ${events.length - count} new ones`)
    const last = known.at(-1)
    return last === undefined || this.options.storesAgain() ? undefined : last
  }

  private store(name: string, stream: Stream, { id, type, data, isJson, metadata }: NewEvent): void {
    const event: RecordedEvent = {
      id,
      type,
      data: data.slice(),
      isJson,
      metadata: { ...metadata },
      stream: name,
      revision: stream.events.length,
      position: positionOf(this.events.length),
      loggedAt: this.options.now(),
    }
    stream.events.push(event)
    this.events.push(event)
  }

  private indexAfter(position: number): number {
    let low = 0
    let high = this.events.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.events[middle].position > position) high = middle
      else low = middle + 1
    }
    return low
  }
}

/** The port, as one process has it. */
export const openMemoryLog = (server: MemoryLog, wire: Wire): EventLog => {
  let isClosed = false
  const call = <Answer>(run: () => Answer, name?: string): Promise<Answer> =>
    isClosed ? Promise.reject(down()) : wire.call(run, name)
  const write = <Answer>(run: () => Answer, stream: string): Promise<Answer> =>
    isClosed ? Promise.reject(down()) : wire.write(run, stream, stream)
  async function* follow(source: Source, after: number | undefined, signal: AbortSignal, max = BATCH_EVENTS_MAX) {
    for (let at = after, isFirst = true; !signal.aborted; isFirst = false) {
      const batch = await call(() => server.batch(source, at, max)).catch(() => undefined)
      if (signal.aborted) return
      if (batch === undefined) {
        if (isClosed) return
        await new Promise<void>((resume) => setTimeout(resume, FOLLOW_AGAIN_MS).unref())
        continue
      }
      const isNews = batch.events.length > 0 || isFirst || (batch.caughtUp && batch.checkpoint !== at)
      at = batch.checkpoint < 0 ? undefined : batch.checkpoint
      if (isNews) yield batch
      if (batch.caughtUp && !signal.aborted) await changed(server, wire, source, at, signal)
    }
  }
  return {
    // A beat of its own length: one that goes by how busy this machine is would make each run another one.
    gatherMs: 10,
    append: (stream, events, expected) => write(() => server.append(stream, events, expected), stream),
    read: (...question) => call(() => server.read(...question), question[0]),
    follow,
    head: (stream) => call(() => server.head(stream), stream),
    headPosition: () => call(() => server.headPosition()),
    truncateBefore: (stream, revision) => write(() => server.truncateBefore(stream, revision), stream),
    erase: (stream) => write(() => server.erase(stream), stream),
    ping: () => call(() => undefined),
    close: async () => {
      isClosed = true
    },
  }
}

/** Resolves when there may be more behind a checkpoint, or the signal is aborted. */
const changed = async (
  server: MemoryLog,
  wire: Wire,
  source: Source,
  at: number | undefined,
  signal: AbortSignal,
): Promise<void> => {
  const { events, caughtUp } = server.batch(source, at, 1)
  if (events.length > 0 || !caughtUp) return
  await new Promise<void>((resume) => {
    const aborted = (): void => {
      end()
      resume()
    }
    const woken = (): void => {
      signal.removeEventListener('abort', aborted)
      resume()
    }
    const end = server.wait(source, () => wire.tell(woken))
    signal.addEventListener('abort', aborted, { once: true })
  })
}

const headOf = ({ events, anewFrom }: Stream): number => (events.length > anewFrom ? events.length - 1 : -1)

const isOf = (source: Source, stream: string): boolean =>
  'stream' in source ? source.stream === stream : source.prefixes.some((prefix) => stream.startsWith(prefix))

/** Position of the event of that number among all. */
const positionOf = (index: number): number => index * STEP + (Math.imul(index, 2_654_435_761) >>> 23) // 0 to 511

/** A place behind that event and before the next one. */
const betweenOf = (index: number): number => (index < 0 ? -1 : positionOf(index) + 7 + (index % 300))
