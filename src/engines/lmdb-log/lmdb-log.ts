import type { Clock } from '../../kernel/clock.ts'
import { Failure } from '../../kernel/errors.ts'
import type { NewEvent, RecordedEvent } from '../../kernel/event.ts'
import { type DataFolder, lockDataFolder } from '../data-folder.ts'
import type { Appended, EventLog, ExpectedRevision, FollowBatch, Source } from '../event-log.ts'
import { Followers, followPrefixes, followStream } from './follow.ts'
import { readEvent } from './read.ts'
import { lastRevision, LogStore } from './store.ts'
import { LogWriter } from './writer.ts'

export interface LmdbEventLogOptions {
  path: string
  clock: Clock
  /** Bytes of events at which appends are refused as for a full disk; without it the disk is the limit. */
  mapBytesMax?: number
}

const BATCH_EVENTS_DEFAULT = 512
const READ_AT_ONCE_MAX = 500

/**
 * The event log in an LMDB environment, for one process.
 *
 * @throws Error when another process has the folder.
 */
export const openLmdbEventLog = async (options: LmdbEventLogOptions): Promise<EventLog> => {
  const folder = lockDataFolder(options.path)
  try {
    return new LmdbEventLog(folder, options)
  } catch (error) {
    folder.release()
    throw error
  }
}

class LmdbEventLog implements EventLog {
  private readonly folder: DataFolder
  private readonly store: LogStore
  private readonly followers = new Followers()
  private readonly writer: LogWriter

  constructor(folder: DataFolder, { path, clock, mapBytesMax }: LmdbEventLogOptions) {
    this.folder = folder
    this.store = new LogStore(path)
    this.writer = new LogWriter({
      path,
      store: this.store,
      clock,
      bytesMax: mapBytesMax ?? Number.POSITIVE_INFINITY,
      committed: (streams) => this.followers.committed(streams, this.store.current.nextPosition - 1),
    })
  }

  append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended> {
    return this.writer.append(stream, events, expected)
  }

  async read(
    stream: string,
    from: number | 'end',
    limit: number,
    direction: 'forwards' | 'backwards' = 'forwards',
  ): Promise<RecordedEvent[]> {
    this.checkOpen()
    const info = this.store.stream(stream)
    const events: RecordedEvent[] = []
    if (info === undefined) return events
    const step = direction === 'forwards' ? 1 : -1
    let revision =
      from === 'end' ? info.head : direction === 'forwards' ? Math.max(from, info.first) : Math.min(from, info.head)
    let readAtOnce = 0
    for (; revision >= info.first && revision <= info.head && events.length < limit; revision += step) {
      const event = readEvent(this.store, stream, info.no, revision)
      if (event !== undefined) events.push(event)
      readAtOnce += 1
      if (readAtOnce % READ_AT_ONCE_MAX === 0) {
        await new Promise((resolve) => setImmediate(resolve))
        this.checkOpen()
      }
    }
    return events
  }

  follow(
    source: Source,
    checkpoint: number | undefined,
    signal: AbortSignal,
    batchEventsMax = BATCH_EVENTS_DEFAULT,
  ): AsyncIterable<FollowBatch> {
    const after = checkpoint ?? -1
    return 'stream' in source
      ? followStream(this.store, this.followers, source.stream, after, signal, batchEventsMax)
      : followPrefixes(this.store, this.followers, source.prefixes, after, signal, batchEventsMax)
  }

  async head(stream: string): Promise<number> {
    this.checkOpen()
    return lastRevision(this.store.stream(stream))
  }

  async headPosition(): Promise<number> {
    this.checkOpen()
    return this.store.current.nextPosition - 1
  }

  async truncateBefore(stream: string, revision: number): Promise<void> {
    return this.writer.truncate(stream, revision)
  }

  async erase(stream: string): Promise<void> {
    return this.writer.truncate(stream, 'all')
  }

  async ping(): Promise<void> {
    this.checkOpen()
    await this.writer.checkRoom()
  }

  async copyTo(folder: string): Promise<void> {
    this.checkOpen()
    await this.store.root.backup(folder, true)
  }

  async close(): Promise<void> {
    if (this.followers.closed) return
    this.followers.close()
    await this.writer.close()
    await this.store.root.close()
    this.folder.release()
  }

  private checkOpen(): void {
    if (this.followers.closed) throw new Failure('engine_down', { message: 'The event log is closed.' })
  }
}
