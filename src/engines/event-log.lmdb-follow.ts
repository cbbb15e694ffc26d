import type { RecordedEvent } from '../kernel/event.ts'
import { Failure } from '../kernel/errors.ts'
import type { FollowBatch } from './event-log.ts'
import { readFrame } from './event-log.lmdb-frame.ts'
import { categoryName, type IndexEntry, indexKey, type LogStore, type StreamInfo } from './event-log.lmdb-store.ts'

const BATCH_BYTES_MAX = 4 * 1024 * 1024
const INDEX_ENTRIES_MAX = 256
const FOREIGN_MAX = 2_000
// A follower that sleeps hears of foreign events now and then, so that its checkpoint does not look old.
const FOREIGN_UNHEARD_MAX = 10_000

/** A follower that sleeps: it is woken by a commit that concerns it, by its signal, or at the end of the log. */
interface Sleeper {
  concerns(info: StreamInfo): boolean
  wakeAtPosition: number
  wake(): void
}

/** Those who wait for the next commit. There is no polling. */
export class Followers {
  private readonly sleepers = new Set<Sleeper>()
  closed = false

  committed(streams: Iterable<StreamInfo>, headPosition: number): void {
    if (this.sleepers.size === 0) return
    const infos = [...streams]
    for (const sleeper of this.sleepers) {
      if (headPosition >= sleeper.wakeAtPosition || infos.some((info) => sleeper.concerns(info))) sleeper.wake()
    }
  }

  close(): void {
    this.closed = true
    for (const sleeper of this.sleepers) sleeper.wake()
  }

  sleep(signal: AbortSignal, wakeAtPosition: number, concerns: (info: StreamInfo) => boolean): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.sleepers.delete(sleeper)
        signal.removeEventListener('abort', wake)
        resolve()
      }
      const sleeper: Sleeper = { concerns, wakeAtPosition, wake }
      this.sleepers.add(sleeper)
      signal.addEventListener('abort', wake, { once: true })
      if (signal.aborted || this.closed) wake()
    })
  }
}

/** Follows one stream by its revisions. */
export async function* followStream(
  store: LogStore,
  followers: Followers,
  stream: string,
  after: number,
  signal: AbortSignal,
  batchEventsMax: number,
): AsyncGenerator<FollowBatch> {
  let checkpoint = after
  let told = false
  while (!signal.aborted && !followers.closed) {
    const info = store.stream(stream)
    const head = info?.head ?? -1
    if (info === undefined || checkpoint >= head) {
      if (!told) yield { events: [], checkpoint, caughtUp: true }
      told = true
      if (store.stream(stream)?.head !== info?.head) continue
      await followers.sleep(signal, Number.POSITIVE_INFINITY, ({ name, head: now }) => name === stream && now > head)
      continue
    }
    const events = readForwards(store, info, checkpoint + 1, batchEventsMax)
    const last = events.at(-1)
    checkpoint = last === undefined ? head : last.revision
    told = checkpoint >= (store.stream(stream)?.head ?? -1)
    yield { events, checkpoint, caughtUp: told }
    await breathe()
  }
}

/** Events of a stream from a revision on, at most so many and not much over four MiB. */
export const readForwards = (store: LogStore, info: StreamInfo, from: number, limit: number): RecordedEvent[] => {
  const events: RecordedEvent[] = []
  let bytes = 0
  for (let revision = Math.max(from, info.first); revision <= info.head && events.length < limit && bytes < BATCH_BYTES_MAX; revision += 1) {
    const event = readEvent(store, info.name, info.no, revision)
    if (event === undefined) continue
    events.push(event)
    bytes += event.data.byteLength
  }
  return events
}

/** Undefined when it was truncated meanwhile. */
export const readEvent = (store: LogStore, name: string, no: number, revision: number): RecordedEvent | undefined => {
  const frame = store.frame(no, revision)
  if (frame !== undefined) return readFrame(frame, name, revision)
  const first = store.stream(name)?.first ?? 0
  if (revision >= first) throw new Failure('internal', { message: `Event ${revision} of stream ${name} is missing in the log.` })
  return undefined
}

/** Follows all streams with one of the prefixes by their positions: merges the indexes of the categories that can hold them. */
export async function* followPrefixes(
  store: LogStore,
  followers: Followers,
  prefixes: readonly string[],
  after: number,
  signal: AbortSignal,
  batchEventsMax: number,
): AsyncGenerator<FollowBatch> {
  const matches = (name: string): boolean => !name.startsWith('$') && prefixes.some((prefix) => name.startsWith(prefix))
  const merge = new IndexMerge(store, prefixes, after)
  let told = false
  while (!signal.aborted && !followers.closed) {
    const headPosition = store.current.nextPosition - 1
    if (merge.checkpoint >= headPosition) {
      if (!told) yield { events: [], checkpoint: merge.checkpoint, caughtUp: true }
      told = true
      if (store.current.nextPosition - 1 > headPosition) continue
      await followers.sleep(signal, merge.checkpoint + FOREIGN_UNHEARD_MAX, ({ name, head, first }) => head >= first && matches(name))
      continue
    }
    const events = merge.take(headPosition, batchEventsMax, matches)
    told = merge.checkpoint >= store.current.nextPosition - 1
    yield { events, checkpoint: merge.checkpoint, caughtUp: told }
    await breathe()
  }
}

/** Walks the indexes of several categories in the order of their positions. */
class IndexMerge {
  checkpoint: number
  private readonly store: LogStore
  private readonly prefixes: readonly string[]
  private readonly lanes = new Map<number, { entries: IndexEntry[]; at: number; readTo: number }>()
  private categoriesSeen = -1

  constructor(store: LogStore, prefixes: readonly string[], after: number) {
    this.store = store
    this.prefixes = prefixes
    this.checkpoint = after
  }

  /** The next events up to a position; moves the checkpoint over what does not match too. */
  take(headPosition: number, limit: number, matches: (name: string) => boolean): RecordedEvent[] {
    this.findLanes()
    const events: RecordedEvent[] = []
    let bytes = 0
    let foreign = 0
    while (events.length < limit && bytes < BATCH_BYTES_MAX && foreign < FOREIGN_MAX) {
      const entry = this.next(headPosition)
      if (entry === undefined) {
        this.checkpoint = headPosition
        break
      }
      this.checkpoint = entry.position
      const name = this.store.nameOf(entry.no)
      const event = matches(name) && entry.revision >= (this.store.stream(name)?.first ?? 0) ? readEvent(this.store, name, entry.no, entry.revision) : undefined
      if (event === undefined) {
        foreign += 1
        continue
      }
      events.push(event)
      bytes += event.data.byteLength
    }
    return events
  }

  private next(headPosition: number): IndexEntry | undefined {
    let first: { entries: IndexEntry[]; at: number } | undefined
    let position = Number.POSITIVE_INFINITY
    for (const [category, lane] of this.lanes) {
      if (lane.at >= lane.entries.length && lane.readTo < headPosition) this.refill(category, lane, headPosition)
      const entry = lane.entries[lane.at]
      if (entry === undefined || entry.position >= position) continue
      position = entry.position
      first = lane
    }
    if (first === undefined) return undefined
    const entry = first.entries[first.at]
    first.at += 1
    return entry
  }

  private refill(category: number, lane: { entries: IndexEntry[]; at: number; readTo: number }, headPosition: number): void {
    lane.entries = []
    lane.at = 0
    const start = Buffer.from(indexKey(category, Math.max(lane.readTo, this.checkpoint) + 1))
    const end = Buffer.from(indexKey(category, headPosition + 1))
    for (const { key, value } of this.store.indexEntries.getRange({ start, end, limit: INDEX_ENTRIES_MAX })) {
      value.position = key as number
      lane.entries.push(value)
    }
    const last = lane.entries[INDEX_ENTRIES_MAX - 1]
    lane.readTo = last === undefined ? headPosition : last.position
  }

  private findLanes(): void {
    if (this.store.categoryNumbers.size === this.categoriesSeen) return
    this.categoriesSeen = this.store.categoryNumbers.size
    for (const [category, no] of this.store.categoryNumbers) {
      if (this.lanes.has(no) || category.startsWith('$')) continue
      const canHold = this.prefixes.some((prefix) => (prefix.includes('-') ? categoryName(prefix) === category : category.startsWith(prefix)))
      if (canHold) this.lanes.set(no, { entries: [], at: 0, readTo: -1 })
    }
  }
}

/** Lets timers, sockets and other consumers have their turn between two batches. */
const breathe = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
