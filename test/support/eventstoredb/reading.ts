import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { status } from '@grpc/grpc-js'
import type { ServerWritableStream } from '@grpc/grpc-js'
import type streamsPb from '@eventstore/db-client/generated/streams_pb.js'
import {
  caughtUp,
  checkpointAnswer,
  confirmation,
  eventAnswer,
  nameOf,
  streamDeleted,
  streamNotFound,
} from './messages.ts'
import type { StoredEvent } from './records.ts'
import type { StreamStore } from './store.ts'

type ReadReq = InstanceType<typeof streamsPb.ReadReq>
type ReadResp = InstanceType<typeof streamsPb.ReadResp>
type Options = InstanceType<typeof streamsPb.ReadReq.Options>
export type ReadCall = ServerWritableStream<ReadReq, ReadResp>

const PAGE = 32
/** Answers that may wait for a slow subscriber before the server lets go of it. */
const WAITING_MAX = 64
const BACKWARDS = 1

/** What subscriptions cost the server. */
export interface SubscriptionCounts {
  /** That are open now. */
  open: number
  /** Since the server was started. */
  begun: number
  /** Events that were looked at for them, wanted or not. */
  passed: number
}

/** `Streams.Read`: one stream or all, either way, once or as a subscription, filtered by stream name. */
export const serveRead = async (store: StreamStore, call: ReadCall, counts: SubscriptionCounts): Promise<void> => {
  const options = call.request.getOptions()!
  if (options.hasSubscription()) return subscribe(store, call, options, counts)
  const limit = Number(options.getCount())
  if (options.hasStream()) await readStream(store, call, options, limit)
  else await readAll(store, call, options, limit)
  call.end()
}

const readStream = async (store: StreamStore, call: ReadCall, options: Options, limit: number): Promise<void> => {
  const asked = options.getStream()!
  const stream = nameOf(asked.getStreamIdentifier())
  if (store.isTombstoned(stream)) return void call.emit('error', streamDeleted(stream))
  const found = store.visible(stream)
  if (found === undefined) return void call.write(streamNotFound(stream))
  const { events, from } = found
  const revision = asked.hasRevision() ? Number(asked.getRevision()) : undefined
  if (Number(options.getReadDirection()) === BACKWARDS) {
    const start = Math.min(revision ?? events.length - 1, events.length - 1)
    for (let at = start, sent = 0; at >= from && sent < limit; at--, sent++) await send(call, eventAnswer(events[at]))
    return
  }
  const start = Math.max(from, asked.hasEnd() ? events.length : (revision ?? 0))
  for (let at = start, sent = 0; at < events.length && sent < limit; at++, sent++)
    await send(call, eventAnswer(events[at]))
}

const readAll = async (store: StreamStore, call: ReadCall, options: Options, limit: number): Promise<void> => {
  const asked = options.getAll()!
  if (asked.hasPosition() && !store.isPosition(Number(asked.getPosition()!.getCommitPosition())))
    return void call.emit('error', { code: status.UNKNOWN, details: 'Unexpected InvalidPosition' })
  if (Number(options.getReadDirection()) === BACKWARDS) {
    const end = asked.hasPosition()
      ? store.indexFrom(Number(asked.getPosition()!.getCommitPosition()))
      : store.all.length
    for (let at = end - 1, sent = 0; at >= 0 && sent < limit; at--, sent++) await send(call, eventAnswer(store.all[at]))
    return
  }
  const start = asked.hasPosition() ? store.indexFrom(Number(asked.getPosition()!.getCommitPosition())) : 0
  for (let at = start, sent = 0; at < store.all.length && sent < limit; at++, sent++)
    await send(call, eventAnswer(store.all[at]))
}

const send = async (call: ReadCall, answer: ReadResp): Promise<void> => {
  if (call.write(answer) || call.cancelled || call.destroyed) return
  const ended = new AbortController()
  const events = ['drain', 'cancelled', 'close'].map((name) => once(call, name, { signal: ended.signal }))
  await Promise.race(events).catch(() => undefined)
  for (const event of events) event.catch(() => undefined)
  ended.abort()
}

/** Where a subscription reads: the next event it may get, undefined at the end. */
interface Cursor {
  /** The only one that it reads. */
  readonly stream?: string
  next(): StoredEvent | undefined
  /** Nothing is said to be caught up of a stream without events. */
  readonly isKnown: boolean
}

const subscribe = async (
  store: StreamStore,
  call: ReadCall,
  options: Options,
  counts: SubscriptionCounts,
): Promise<void> => {
  const cursor = options.hasStream() ? streamCursor(store, options) : allCursor(store, call, options, counts)
  if (cursor === undefined)
    return void call.emit('error', { code: status.UNKNOWN, details: 'Unexpected InvalidPosition' })
  call.write(confirmation(randomUUID()))
  let wake = (): void => undefined
  let news = false
  const stop = store.onAppended((stream) => {
    if (cursor.stream !== undefined && cursor.stream !== stream) return
    news = true
    wake()
  })
  call.once('cancelled', () => wake())
  let isLive = false
  counts.open++
  counts.begun++
  try {
    while (!call.cancelled) {
      news = false
      for (let sent = 0; sent < PAGE; sent++) {
        const event = cursor.next()
        if (event === undefined) break
        if (isLive && call.writableLength > WAITING_MAX)
          return void call.emit('error', { code: status.ABORTED, details: 'Operation timed out: consumer too slow' })
        if (isLive) call.write(eventAnswer(event))
        else await send(call, eventAnswer(event))
        news = true
      }
      if (news) {
        await new Promise((resume) => setImmediate(resume))
        continue
      }
      if (!isLive && cursor.isKnown) {
        isLive = true
        call.write(caughtUp())
      }
      await new Promise<void>((resume) => (wake = resume))
    }
  } finally {
    counts.open--
    stop()
  }
}

const streamCursor = (store: StreamStore, options: Options): Cursor => {
  const asked = options.getStream()!
  const stream = nameOf(asked.getStreamIdentifier())
  let revision = asked.hasRevision() ? Number(asked.getRevision()) + 1 : 0
  if (asked.hasEnd()) revision = store.visible(stream)?.events.length ?? 0
  return {
    stream,
    next: () => {
      const found = store.visible(stream)
      if (found === undefined) return undefined
      revision = Math.max(revision, found.from)
      return found.events[revision++ < found.events.length ? revision - 1 : --revision]
    },
    get isKnown() {
      return store.visible(stream) !== undefined
    },
  }
}

const allCursor = (
  store: StreamStore,
  call: ReadCall,
  options: Options,
  counts: SubscriptionCounts,
): Cursor | undefined => {
  const asked = options.getAll()!
  const position = asked.hasPosition() ? Number(asked.getPosition()!.getCommitPosition()) : -1
  if (asked.hasPosition() && !store.isPosition(position)) return undefined
  const filter = options.getFilter()?.getStreamIdentifier()
  const prefixes = filter?.getPrefixList() ?? []
  const regex = filter?.getRegex() ? new RegExp(filter.getRegex()) : undefined
  const isWanted = ({ stream }: StoredEvent): boolean =>
    filter === undefined || prefixes.some((prefix) => stream.startsWith(prefix)) || regex?.test(stream) === true
  const interval = PAGE * Math.max(1, options.getFilter()?.getCheckpointintervalmultiplier() ?? 1)
  let index = asked.hasEnd() ? store.all.length : store.indexOfSubscription(position)
  let passed = 0
  return {
    isKnown: true,
    next: () => {
      while (index < store.all.length) {
        const event = store.all[index++]
        counts.passed++
        // A checkpoint is told at each interval, and again with the next event that is passed over, as servers repeat it.
        if (filter !== undefined && (++passed % interval === 0 || passed % interval === 1) && passed > 1)
          call.write(checkpointAnswer(event.position))
        if (isWanted(event)) return event
      }
      return undefined
    },
  }
}
