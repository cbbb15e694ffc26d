import { setMaxListeners } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import {
  BACKWARDS,
  CancelledError,
  END,
  FORWARDS,
  NotLeaderError,
  UnavailableError,
  WrongExpectedVersionError,
} from '@eventstore/db-client'
import { anyAborted } from '../../kernel/any-aborted.ts'
import { Failure } from '../../kernel/errors.ts'
import type { NewEvent, RecordedEvent } from '../../kernel/event.ts'
import type { Examination } from '../examination.ts'
import {
  APPEND_BYTES_MAX,
  type Appended,
  type EventLog,
  type ExpectedRevision,
  type FollowBatch,
  type Reclaimed,
  type Source,
  WrongRevision,
} from '../event-log.ts'
import { AppendBatches, Refused } from './append-batches.ts'
import { AppendsInOrder, KnownHeads } from './appends-in-order.ts'
import { connect, type Connection, isUnanswered, logDown, within } from './connection.ts'
import { examineServer } from './examine.ts'
import { ERASED, isOurs } from './events.ts'
import { followPrefixes, followStream, resumed } from './follow.ts'
import { readToEnd } from './read.ts'
import { Scavenges } from './scavenge.ts'
import { SharedSubscription } from './shared-subscription.ts'
import { Unanswered } from './unanswered.ts'

export interface EventstoredbOptions {
  /** An EventStoreDB connection string: `esdb://user:password@host:2113?tls=…` or `esdb+discover://…`. */
  url: string
  /** Longest time of a call, of an append with its repeats, before it is answered as `engine_down` (default 10 s). */
  deadlineMs?: number
  newId(): string
  /** Milliseconds since the epoch. */
  now(): number
}

const BATCH_EVENTS_MAX = 512
const DEADLINE_MS = 10_000
/** An append takes some 0.07 ms of this process and up to 0.2 of the server, whatever its size: five times LMDB's. */
const GATHER_MS = 25
const DISPOSE_MS = 1_000
/** Pauses; a server that is away is still reported soon. */
const AGAIN_MS = [10, 50, 150]
/** Waits until an erased stream is shown again. */
const SHOWN_MS = [5, 10, 25, 50, 100, 200, 500, 1_000]

/**
 * The log on an EventStoreDB or KurrentDB server or cluster. Resolves when the server has answered.
 * @throws Error for a server that is too old; Failure engine_down
 */
export const openEventstoredbLog = async (options: EventstoredbOptions): Promise<EventLog> =>
  new EventstoredbLog(await connect(options.url, options.deadlineMs ?? DEADLINE_MS), options)

class EventstoredbLog implements EventLog {
  readonly gatherMs = GATHER_MS
  private readonly connection: Connection
  private readonly calls: AppendBatches
  private readonly appends: AppendsInOrder
  private readonly closed = new AbortController()
  private readonly newId: () => string
  private readonly shared: SharedSubscription
  private readonly scavenges: Scavenges
  private readonly heads = new KnownHeads()

  constructor(connection: Connection, { newId, now }: EventstoredbOptions) {
    this.connection = connection
    this.newId = newId
    this.scavenges = new Scavenges(connection, now)
    this.calls = new AppendBatches(connection)
    this.appends = new AppendsInOrder(connection, this.calls, this.heads, this.closed.signal)
    // Each pausing append adds a listener.
    setMaxListeners(0, this.closed.signal)
    this.shared = new SharedSubscription({
      subscribe: (prefixes, position, signal, eventsMax) =>
        followPrefixes(connection, prefixes, position, signal, eventsMax),
      headPosition: () => this.headPosition(),
      closed: this.closed.signal,
    })
  }

  async append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended> {
    let bytes = 0
    for (const { data } of events) bytes += data.byteLength
    if (bytes > APPEND_BYTES_MAX) throw new Failure('too_large')
    try {
      const { revision, position } = await this.appends.append(stream, events, expected)
      const isNew = revision < events.length
      const isShown = isNew || typeof expected === 'number' || (this.heads.get(stream) ?? -1) >= 0
      if (!isShown) await this.untilShown(stream)
      this.heads.set(stream, revision)
      if (position !== undefined) return { revision, position }
      const [last] = await this.read(stream, revision, 1)
      // A repeat of an append erased since: the server still knows its ids.
      if (last?.revision !== revision) throw new WrongRevision(stream, await this.head(stream))
      return { revision, position: last.position }
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      const known = expected === 'none' ? await this.knownBeginning(stream, events) : undefined
      if (known !== undefined) return known
      throw new WrongRevision(stream, await this.head(stream))
    }
  }

  /** A server answers an append to an erased stream moments before it shows the stream again. */
  private async untilShown(stream: string): Promise<void> {
    for (const waitMs of SHOWN_MS) {
      if ((await this.stored(stream, 'end', 1, 'backwards')).length > 0) return
      await pause(waitMs, undefined, { signal: this.closed.signal }).catch(() => undefined)
    }
  }

  /** Result of these events as the beginning of a stream; the server seeks repeats at revision 0, even once erased. */
  private async knownBeginning(stream: string, events: readonly NewEvent[]): Promise<Appended | undefined> {
    const first = await this.read(stream, 0, events.length)
    const last = first.at(-1)
    const isRepeat = first.length === events.length && first.every(({ id }, index) => id === events[index].id)
    return isRepeat && last !== undefined ? { revision: last.revision, position: last.position } : undefined
  }

  async read(
    stream: string,
    from: number | 'end',
    limit: number,
    direction: 'forwards' | 'backwards' = 'forwards',
  ): Promise<RecordedEvent[]> {
    return (await this.stored(stream, from, limit, direction)).filter(isOurs)
  }

  async *follow(
    source: Source,
    checkpoint: number | undefined,
    signal: AbortSignal,
    batchEventsMax = BATCH_EVENTS_MAX,
  ): AsyncGenerator<FollowBatch> {
    const { signal: ended, release } = anyAborted(signal, this.closed.signal)
    try {
      if ('prefixes' in source) return yield* this.shared.follow(source.prefixes, checkpoint, ended, batchEventsMax)
      const { stream } = source
      const isEmpty = async (): Promise<boolean> => (await this.head(stream)) < 0
      const once = (from: number | undefined): AsyncGenerator<FollowBatch> =>
        followStream(this.connection, stream, isEmpty, from, ended, batchEventsMax)
      yield* resumed(once, checkpoint, ended)
    } finally {
      release()
    }
  }

  async head(stream: string): Promise<number> {
    const [last] = await this.read(stream, 'end', 1, 'backwards')
    return last?.revision ?? -1
  }

  async headPosition(): Promise<number> {
    return this.asked(async () => {
      const { client, credentials, deadlineMs } = this.connection
      const fromPosition = END
      const found = client.readAll({
        direction: BACKWARDS,
        fromPosition,
        maxCount: 1,
        credentials,
        requiresLeader: true,
      })
      const [last] = await readToEnd(found, deadlineMs)
      return last?.position ?? -1
    })
  }

  async truncateBefore(stream: string, revision: number): Promise<void> {
    const head = await this.head(stream)
    const before = Math.min(revision, head)
    if (before <= 0) return
    const [first] = await this.read(stream, 0, 1)
    // The client's `metastreamRevision` is a position of the log: with it only the first write would succeed.
    const [last] = await this.stored(`$$${stream}`, 'end', 1, 'backwards')
    await this.asked(async () => {
      const { client, credentials } = this.connection
      const asking = { credentials, deadline: this.connection.deadlineMs }
      const { metadata = {} } = await client.getStreamMetadata(stream, asking)
      if (Number(metadata.truncateBefore ?? 0) >= before) return
      const expectedRevision = last === undefined ? 'no_stream' : BigInt(last.revision)
      await client.setStreamMetadata(stream, { ...metadata, truncateBefore: before }, { ...asking, expectedRevision })
      if (first !== undefined) this.scavenges.hid((before - first.revision) * first.data.byteLength)
    })
  }

  async erase(stream: string): Promise<void> {
    const [last] = await this.stored(stream, 'end', 1, 'backwards')
    if (last === undefined) return
    const { client, credentials } = this.connection
    const asking = { credentials, deadline: this.connection.deadlineMs }
    // The mark exists already where a process died before it could delete the stream.
    if (last.type !== ERASED) {
      const mark: NewEvent = { id: this.newId(), type: ERASED, data: new Uint8Array(0), isJson: false, metadata: {} }
      const untilMs = performance.now() + asking.deadline
      await this.asked(() => this.calls.append(stream, [mark], 'any', untilMs))
    }
    this.heads.set(stream, -1)
    await this.asked(() => client.deleteStream(stream, asking))
  }

  async reclaim(): Promise<Reclaimed> {
    return this.asked(() => this.scavenges.reclaim())
  }

  async failedReclaims(): Promise<number> {
    return this.asked(() => this.scavenges.failures())
  }

  async ping(): Promise<void> {
    await this.headPosition()
  }

  examine(): Promise<Examination> {
    return examineServer(this.connection)
  }

  async close(): Promise<void> {
    if (this.closed.signal.aborted) return
    this.closed.abort()
    this.calls.close()
    // The client waits for the end of each of its streams; one that was left while the server was silent never ends.
    await within(DISPOSE_MS, 'not all streams ended', this.connection.client.dispose()).catch((error) => {
      if (!(error instanceof Unanswered)) throw error
    })
  }

  /** The server's events of a stream, including marks of the engine. */
  private stored(
    stream: string,
    from: number | 'end',
    limit: number,
    direction: 'forwards' | 'backwards',
  ): Promise<RecordedEvent[]> {
    return this.asked(async () => {
      const { client, credentials, deadlineMs } = this.connection
      const found = client.readStream(stream, {
        fromRevision: from === 'end' ? END : BigInt(from),
        maxCount: limit,
        direction: direction === 'forwards' ? FORWARDS : BACKWARDS,
        credentials,
        requiresLeader: true,
      })
      return readToEnd(found, deadlineMs)
    })
  }

  /**
   * Runs a repeatable request, again at once where the connection was lost, another node leads now, or another writer
   * was quicker; every other failure of the server is `engine_down`.
   */
  private async asked<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    const untilMs = performance.now() + this.connection.deadlineMs
    for (let tries = 0; ; tries++) {
      if (this.closed.signal.aborted) throw logDown()
      try {
        await this.connection.connected(this.connection.deadlineMs)
        const answer = await ask()
        this.connection.heard()
        return answer
      } catch (error) {
        if (error instanceof Failure) throw error
        if (isUnanswered(error)) await this.connection.unanswered()
        else this.connection.heard()
        const isLast = tries === AGAIN_MS.length || performance.now() >= untilMs
        if (isLast || !isWorthAnother(error)) throw logDown(error)
        await pause(AGAIN_MS[tries], undefined, { signal: this.closed.signal }).catch(() => undefined)
      }
    }
  }
}

const isWorthAnother = (error: unknown): boolean =>
  error instanceof UnavailableError ||
  error instanceof CancelledError ||
  error instanceof NotLeaderError ||
  error instanceof WrongExpectedVersionError
