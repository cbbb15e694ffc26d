import { type Database, open, type RootDatabase } from 'lmdb'
import { categoryOf, type RecordedEvent, shareEvent } from '../../kernel/event.ts'
import { RecentMap } from '../../kernel/recent-map.ts'
import { RecentEntries } from './recent-entries.ts'
import { eventKey, INDEX_ENTRIES, type IndexEntry, numberKey, streamKey, textOf } from './keys.ts'

/** State of a stream. A change is a new object, so that a failed commit leaves the old one standing. */
export interface StreamInfo {
  name: string
  no: number
  category: number
  /** Revision of the last event, -1 for none. */
  head: number
  /** The first revision that is not truncated; above `head` for an erased stream. */
  first: number
  /** The first revision whose space has not been freed. */
  swept: number
}

/** State of the log as a whole: written with every commit. */
export interface LogState {
  nextPosition: number
  nextStream: number
  nextCategory: number
  /** Bytes of the stored events, in whole pages where they take pages of their own. */
  bytesHeld: number
}

type Binary = Database<Buffer, Uint8Array>

type Versioned = Database<Buffer, Uint8Array> & RootDatabase<Buffer, Uint8Array>

const STREAMS_CACHED = 50_000
/** Recently appended events: a dozen consumers read each of them, and the next command of its stream. */
const EVENTS_CACHED_BYTES = 4 * 1024 * 1024
/** Memory of an event beside its data. */
const EVENT_BYTES = 600
const CACHED_EVENT_BYTES_MAX = 4_096
const CACHED_REVISION_MAX = 2 ** 20
const STATE_KEY = Buffer.from('state')
const FILLER_KEY = Buffer.from('filler')

/**
 * The environment of the log and its layout. Keys are binary and big-endian, so that their order is the order of the
 * numbers:
 * - `events`: stream number (4), revision (6) → frame
 * - `index`: category (2), position (6) → stream number (4), revision (6); followers of prefixes walk it
 * - `streams`: name → number, category, head, first, swept; opening reads none of them
 * - `names`: stream number (4) → name
 * - `categories`: name → number (2)
 * - `sweeps`: names of streams with truncated events that still take space
 * - `state`: one record; its version fences off every other writer; beside it, for moments, a filler that tries the disk
 */
export class LogStore {
  readonly root: RootDatabase
  readonly events: Binary
  readonly index: Binary
  /** `index` for walking: positions and entries without a buffer for each. */
  readonly indexEntries: Database<IndexEntry, Uint8Array | number>
  readonly streams: Binary
  readonly names: Binary
  readonly categories: Binary
  readonly sweeps: Binary
  readonly state: Versioned
  readonly categoryNumbers = new Map<string, number>()
  current: LogState
  /** Version of the state record: only a writer that knows it may commit. */
  version: number
  private readonly infos = new RecentMap<string, StreamInfo | 'absent'>(STREAMS_CACHED)
  private readonly namesByNumber = new RecentMap<number, string>(STREAMS_CACHED)
  private readonly recentEvents = new RecentMap<number, RecordedEvent>(
    EVENTS_CACHED_BYTES,
    ({ data }) => EVENT_BYTES + data.byteLength,
  )
  readonly recentEntries: RecentEntries

  constructor(path: string) {
    // Without overlapping sync a commit is visible only once its data is on disk: nobody reads data that a power loss
    // could take. Without batches by event turn: their promise is the driver's; nobody could handle its rejection.
    this.root = open({
      path,
      noSubdir: false,
      overlappingSync: false,
      eventTurnBatching: false,
      encoding: 'binary',
      keyEncoding: 'binary',
    })
    const database = (name: string): Binary =>
      this.root.openDB<Buffer, Uint8Array>({ name, encoding: 'binary', keyEncoding: 'binary' })
    this.events = database('events')
    this.index = database('index')
    this.indexEntries = this.root.openDB({ name: 'index', ...INDEX_ENTRIES } as { name: string }) as Database<
      IndexEntry,
      Uint8Array | number
    >
    this.streams = database('streams')
    this.names = database('names')
    this.categories = database('categories')
    this.sweeps = database('sweeps')
    this.state = this.root.openDB({
      name: 'state',
      encoding: 'binary',
      keyEncoding: 'binary',
      useVersions: true,
    }) as Versioned
    for (const { key, value } of this.categories.getRange({}))
      this.categoryNumbers.set(textOf(key), value.readUInt16BE(0))
    const entry = this.state.getEntry(STATE_KEY)
    this.current =
      entry === undefined ? { nextPosition: 0, nextStream: 1, nextCategory: 1, bytesHeld: 0 } : readState(entry.value)
    this.version = (entry?.version ?? 0) + 1
    this.state.putSync(STATE_KEY, writeState(this.current), this.version)
    this.recentEntries = new RecentEntries(this.current.nextPosition)
  }

  stream(name: string): StreamInfo | undefined {
    const cached = this.infos.get(name)
    if (cached !== undefined) return cached === 'absent' ? undefined : cached
    const value = this.streams.getBinary(streamKey(name))
    if (value === undefined) {
      // Streams made by commits are remembered over this; a snapshot is at most a turn old and lacks nothing forgotten.
      this.infos.set(name, 'absent')
      return undefined
    }
    const info: StreamInfo = {
      name,
      no: value.readUInt32BE(0),
      category: value.readUInt16BE(4),
      head: value.readUIntBE(6, 6) - 1,
      first: value.readUIntBE(12, 6),
      swept: value.readUIntBE(18, 6),
    }
    this.remember(info)
    return info
  }

  remember(info: StreamInfo): void {
    this.infos.set(info.name, info)
  }

  /** Keeps a just committed event for its readers. */
  rememberEvent({ no, name, category }: StreamInfo, event: RecordedEvent): void {
    const { isJson, data, revision, position } = event
    if (revision === 0) this.namesByNumber.set(no, name)
    this.recentEntries.add({ category, position, no, revision })
    if (!isJson || data.byteLength > CACHED_EVENT_BYTES_MAX || revision >= CACHED_REVISION_MAX) return
    shareEvent(event)
    this.recentEvents.set(no * CACHED_REVISION_MAX + revision, event)
  }

  recentEvent(no: number, revision: number): RecordedEvent | undefined {
    return revision < CACHED_REVISION_MAX ? this.recentEvents.get(no * CACHED_REVISION_MAX + revision) : undefined
  }

  nameOf(no: number): string {
    const cached = this.namesByNumber.get(no)
    if (cached !== undefined) return cached
    const value = this.names.getBinary(numberKey(no))
    if (value === undefined) throw new Error(`The log names no stream ${no}.`)
    const name = textOf(value)
    this.namesByNumber.set(no, name)
    return name
  }

  /** The stored frame, undefined when it was swept. Falls back on a new snapshot where this turn's is too old. */
  frame(no: number, revision: number): Buffer | undefined {
    const key = eventKey(no, revision)
    const frame = this.events.getBinary(key)
    if (frame !== undefined) return frame
    this.root.resetReadTxn()
    return this.events.getBinary(key)
  }

  /**
   * Commits everything that `write` puts and removes at once, or nothing: false when another process took the log.
   * `written` is called before anybody sees that the log is longer.
   */
  async commit(next: LogState, write: () => void, written?: () => void): Promise<boolean> {
    const version = this.version + 1
    const isWritten = await this.state
      .ifVersion(STATE_KEY, this.version, () => {
        write()
        void this.state.put(STATE_KEY, writeState(next), version)
      })
      .catch(throwCause)
    if (!isWritten) return false
    written?.()
    this.version = version
    this.current = next
    return true
  }

  /** Writes this many bytes and removes them; rejects when they do not fit. A crash leaves them to the next try. */
  async tryBytes(bytes: number): Promise<boolean> {
    const filler = Buffer.alloc(bytes)
    const written = await this.commit(this.current, () => void this.state.put(FILLER_KEY, filler, 1))
    return written && (await this.commit(this.current, () => void this.state.remove(FILLER_KEY)))
  }

  putStream(info: StreamInfo): void {
    const value = Buffer.allocUnsafe(24)
    value.writeUInt32BE(info.no, 0)
    value.writeUInt16BE(info.category, 4)
    value.writeUIntBE(info.head + 1, 6, 6)
    value.writeUIntBE(info.first, 12, 6)
    value.writeUIntBE(info.swept, 18, 6)
    void this.streams.put(streamKey(info.name), value)
  }

  putNames(info: StreamInfo): void {
    void this.names.put(numberKey(info.no), streamKey(info.name))
  }

  putCategory(name: string, no: number): void {
    const value = Buffer.allocUnsafe(2)
    value.writeUInt16BE(no)
    void this.categories.put(streamKey(name), value)
  }
}

/** Revision of the last existing event, -1 for none. */
export const lastRevision = (info: StreamInfo | undefined): number =>
  info === undefined || info.first > info.head ? -1 : info.head

/** Numbers of a stream that is about to be written for the first time. */
export const newStream = (name: string, state: LogState, categoryNo: number): StreamInfo => ({
  name,
  no: state.nextStream,
  category: categoryNo,
  head: -1,
  first: 0,
  swept: 0,
})

export const categoryName = (stream: string): string => {
  const category = categoryOf(stream)
  return category === '' ? '-' : category
}

const writeState = (state: LogState): Buffer => Buffer.from(JSON.stringify(state))
const readState = (value: Buffer): LogState => JSON.parse(textOf(value)) as LogState

/** The driver hands the cause of a failed commit over as a promise that rejects. */
const throwCause = async (error: Error & { commitError?: Promise<unknown> }): Promise<never> => {
  await error.commitError
  throw error
}
