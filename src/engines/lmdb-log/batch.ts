import type { Appended } from '../event-log.ts'
import { type PreparedEvent, positionOfFrame, recordedEvent, writeFrame } from './frame.ts'
import { bytesOfFrame, eventKey, indexKey, streamKey } from './keys.ts'
import { categoryName, type LogState, type LogStore, newStream, type StreamInfo } from './store.ts'

interface StagedEvent {
  info: StreamInfo
  prepared: PreparedEvent
  revision: number
  position: number
}

interface Removal {
  no: number
  revision: number
  category: number
  position: number
}

const NOTHING = Buffer.alloc(0)

/** Changes of one transaction, decided in memory first: none of them counts before `commit` resolved with true. */
export class LogBatch {
  readonly streams = new Map<string, StreamInfo>()
  eventCount = 0
  frameBytes = 0
  private readonly store: LogStore
  private readonly state: LogState
  private readonly events: StagedEvent[] = []
  private readonly removals: Removal[] = []
  private readonly newStreams: StreamInfo[] = []
  private readonly newCategories = new Map<string, number>()
  private readonly sweepsBegun: string[] = []
  private readonly sweepsDone: string[] = []

  constructor(store: LogStore) {
    this.store = store
    this.state = { ...store.current }
  }

  get isEmpty(): boolean {
    return this.streams.size === 0
  }

  stream(name: string): StreamInfo | undefined {
    return this.streams.get(name) ?? this.store.stream(name)
  }

  bytesHeldAfter(events: readonly PreparedEvent[]): number {
    return events.reduce((bytes, { frameBytes }) => bytes + bytesOfFrame(frameBytes), this.state.bytesHeld)
  }

  append(name: string, events: readonly PreparedEvent[]): Appended {
    const info = { ...(this.stream(name) ?? this.addStream(name)) }
    for (const prepared of events) {
      info.head += 1
      this.events.push({ info, prepared, revision: info.head, position: this.state.nextPosition })
      this.state.nextPosition += 1
      this.state.bytesHeld += bytesOfFrame(prepared.frameBytes)
      this.frameBytes += prepared.frameBytes
    }
    this.eventCount += events.length
    this.streams.set(name, info)
    return { revision: info.head, position: this.state.nextPosition - 1 }
  }

  truncate(name: string, before: number | 'all'): void {
    const info = this.stream(name)
    if (info === undefined) return
    const first = before === 'all' ? info.head + 1 : Math.min(before, info.head)
    if (first <= info.first) return
    this.streams.set(name, { ...info, first })
    this.sweepsBegun.push(name)
  }

  /** Frees the space of at most `limit` truncated events; false when this commit changes the stream anyway. */
  sweep(name: string, limit: number): boolean {
    if (this.streams.has(name)) return false
    const info = this.store.stream(name)
    if (info === undefined) return false
    const end = Math.min(info.first, info.swept + limit)
    for (let revision = info.swept; revision < end; revision += 1) {
      const frame = this.store.frame(info.no, revision)
      if (frame === undefined) continue
      this.removals.push({ no: info.no, revision, category: info.category, position: positionOfFrame(frame) })
      this.state.bytesHeld = Math.max(0, this.state.bytesHeld - bytesOfFrame(frame.byteLength))
    }
    this.streams.set(name, { ...info, swept: end })
    if (end === info.first) this.sweepsDone.push(name)
    return true
  }

  commit(loggedAt: number): Promise<boolean> {
    const remember = (): void => {
      for (const [name, no] of this.newCategories) this.store.categoryNumbers.set(name, no)
      for (const { info, prepared, revision, position } of this.events)
        this.store.rememberEvent(info, recordedEvent(prepared, info.name, revision, position, loggedAt))
    }
    return this.store.commit(this.state, () => this.write(loggedAt), remember)
  }

  private addStream(name: string): StreamInfo {
    streamKey(name)
    const category = categoryName(name)
    let no = this.store.categoryNumbers.get(category) ?? this.newCategories.get(category)
    if (no === undefined) {
      no = this.state.nextCategory
      if (no > 0xffff) throw new Error(`The log has no room for another category of streams: ${category}.`)
      this.state.nextCategory += 1
      this.newCategories.set(category, no)
    }
    const info = newStream(name, this.state, no)
    this.state.nextStream += 1
    this.newStreams.push(info)
    return info
  }

  private write(loggedAt: number): void {
    const { store } = this
    for (const [name, no] of this.newCategories) store.putCategory(name, no)
    for (const info of this.newStreams) store.putNames(info)
    this.writeEvents(loggedAt)
    for (const { no, revision, category, position } of this.removals) {
      void store.events.remove(eventKey(no, revision))
      void store.index.remove(indexKey(category, position))
    }
    for (const info of this.streams.values()) store.putStream(info)
    for (const name of this.sweepsBegun) void store.sweeps.put(streamKey(name), NOTHING)
    for (const name of this.sweepsDone) void store.sweeps.remove(streamKey(name))
  }

  // All frames of a commit stand in one buffer: the driver keeps it until the transaction has copied them.
  private writeEvents(loggedAt: number): void {
    const { store } = this
    const slab = Buffer.allocUnsafeSlow(this.frameBytes + this.events.length * 10)
    let at = 0
    for (const { info, prepared, revision, position } of this.events) {
      const end = writeFrame(slab, at, prepared, position, loggedAt)
      void store.events.put(eventKey(info.no, revision), slab.subarray(at, end))
      slab.set(eventKey(info.no, revision), end)
      void store.index.put(indexKey(info.category, position), slab.subarray(end, end + 10))
      at = end + 10
    }
  }
}
