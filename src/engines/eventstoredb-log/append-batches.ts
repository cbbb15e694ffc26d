import { convertToCommandError } from '@eventstore/db-client'
import type statusPb from '@eventstore/db-client/generated/status_pb.js'
import streamsPb from '@eventstore/db-client/generated/streams_pb.js'
import { Failure } from '../../kernel/errors.ts'
import type { NewEvent } from '../../kernel/event.ts'
import type { ExpectedRevision } from '../event-log.ts'
import { encodeAppend } from './append-request.ts'
import { insideOf } from './client-inside.ts'
import { type Connection, notNow, Rejected } from './connection.ts'
import { Unanswered } from './unanswered.ts'

type Answer = InstanceType<typeof streamsPb.BatchAppendResp>
type Status = InstanceType<typeof statusPb.Status>

/** Limits in flight on a connection; further appends wait here, where they cost the connection nothing. */
const APPENDS_MAX = 1_024
const BYTES_MAX = 4 * 1024 * 1024

/** Result of an append; a server does not tell the position of one that it knew from before. */
export interface Outcome {
  revision: number
  position: number | undefined
}

/** The stream is at another revision, the server says; for an erased stream its answer differs from the port's. */
export class Refused extends Error {}

/**
 * The library hands over one message of a call in a turn of the event loop: appends that come meanwhile use another
 * call, up to this number.
 */
const CALLS_MAX = 16

/**
 * Appends of one connection, of all streams over a few calls: a call for each takes two to three times as much. The
 * client's own batches keep the pending appends of every client of the process in one map, so that one broken
 * connection rejects another's; here each call has its own. docs/decisions/0017-appends-share-one-call.md
 */
export class AppendBatches {
  private readonly connection: Connection
  private calls: AppendCall[] = []
  private appends = 0
  private bytes = 0
  private readonly waiting: { bytes: number; begin(): void }[] = []

  constructor(connection: Connection) {
    this.connection = connection
  }

  /** @throws Refused, Rejected, Failure too_large, Unanswered at that time, CommandError, Error of the connection */
  async append(
    stream: string,
    events: readonly NewEvent[],
    expected: ExpectedRevision,
    untilMs: number,
  ): Promise<Outcome> {
    let bytes = 0
    for (const { data } of events) bytes += data.byteLength
    if (this.waiting.length > 0 || !this.hasRoom(bytes))
      await new Promise<void>((begin) => this.waiting.push({ bytes, begin }))
    else this.take(bytes)
    try {
      const service = (await this.connection.connected(untilMs - performance.now())) as Streams
      const withinMs = untilMs - performance.now()
      if (withinMs <= 0) throw new Unanswered('an append waited for its turn for too long')
      return await this.callOf(service).append((id) => encodeAppend(id, stream, events, expected), withinMs)
    } finally {
      this.release(bytes)
    }
  }

  /** Appends in flight may complete. */
  close(): void {
    for (const call of this.calls) call.close()
  }

  private hasRoom(bytes: number): boolean {
    return this.appends === 0 || (this.appends < APPENDS_MAX && this.bytes + bytes <= BYTES_MAX)
  }

  private take(bytes: number): void {
    this.appends++
    this.bytes += bytes
  }

  private release(bytes: number): void {
    this.appends--
    this.bytes -= bytes
    for (let [next] = this.waiting; next !== undefined && this.hasRoom(next.bytes); [next] = this.waiting) {
      this.waiting.shift()
      this.take(next.bytes)
      next.begin()
    }
  }

  /** An idle one, else a new one, else the one with the fewest appends in flight. */
  private callOf(service: Streams): AppendCall {
    if (this.calls.some((call) => !call.isOpen || call.service !== service)) this.leave(service)
    let [least] = this.calls
    for (const call of this.calls) if (call.unanswered < least.unanswered) least = call
    if (least !== undefined && (least.unanswered === 0 || this.calls.length >= CALLS_MAX)) return least
    const begun = this.begin(service)
    this.calls.push(begun)
    return begun
  }

  /** Calls that accept nothing more, or go to a node no longer in use. */
  private leave(service: Streams): void {
    const kept = this.calls.filter((call) => call.isOpen && call.service === service)
    for (const call of this.calls) if (!kept.includes(call)) call.close()
    this.calls = kept
  }

  private begin(service: Streams): AppendCall {
    const { client, credentials } = this.connection
    const inside = insideOf(client)
    const options = inside.callArguments({ credentials, requiresLeader: true }, { deadline: Number.POSITIVE_INFINITY })
    const sink = service.makeBidiStreamRequest(PATH, asItIs, answerOf, ...options)
    return new AppendCall(service, sink, (error) => void inside.handleError(service, error))
  }
}

interface InFlight {
  done(outcome: Outcome): void
  failed(error: Error): void
  late: NodeJS.Timeout
}

class AppendCall {
  readonly service: Streams
  isOpen = true
  private readonly sink: Sink
  private readonly onError: (error: Error) => void
  private readonly inFlight = new Map<string, InFlight>()
  private count = 0

  constructor(service: Streams, sink: Sink, onError: (error: Error) => void) {
    this.service = service
    this.sink = sink
    this.onError = onError
    sink.on('data', (answer) => this.take(answer))
    sink.on('error', (error) => this.end(convertToCommandError(error) as Error))
    sink.on('end', () => this.end(new Error('the server ended the call')))
  }

  append(requestOf: (id: string) => Buffer, withinMs: number): Promise<Outcome> {
    const id = `00000000-0000-4000-8000-${(++this.count).toString(16).padStart(12, '0')}`
    return new Promise<Outcome>((done, failed) => {
      const late = setTimeout(() => {
        // An append that the server does not answer must not fill the connection with later ones.
        this.isOpen = false
        this.taken(id)
        failed(new Unanswered('an append was not answered in time'))
      }, withinMs)
      this.inFlight.set(id, { done, failed, late })
      this.sink.write(requestOf(id))
    })
  }

  get unanswered(): number {
    return this.inFlight.size
  }

  /** Accepts nothing more, and ends when nothing is in flight. */
  close(): void {
    this.isOpen = false
    if (this.inFlight.size === 0) this.sink.cancel()
  }

  private take(answer: Answer): void {
    const append = this.taken(answer.getCorrelationId()?.getString() ?? '')
    const status = answer.getError()
    if (status === undefined) return append?.done(outcomeOf(answer))
    const error = errorOf(status)
    append?.failed(error)
    this.onError(error)
  }

  private taken(id: string): InFlight | undefined {
    const append = this.inFlight.get(id)
    this.inFlight.delete(id)
    clearTimeout(append?.late)
    if (!this.isOpen) this.close()
    return append
  }

  private end(error: Error): void {
    // A closed call reports that it was cancelled, which is no reason for another connection.
    if (this.isOpen) this.onError(error)
    this.isOpen = false
    for (const { failed, late } of this.inFlight.values()) {
      clearTimeout(late)
      failed(error)
    }
    this.inFlight.clear()
  }
}

const PATH = '/event_store.client.streams.Streams/BatchAppend'
const asItIs = (request: Buffer): Buffer => request
const answerOf = (bytes: Uint8Array): Answer => streamsPb.BatchAppendResp.deserializeBinary(bytes)

const outcomeOf = (answer: Answer): Outcome => {
  const success = answer.getSuccess()!
  const position = success.getPosition()
  return { revision: Number(success.getCurrentRevision()), position: position && Number(position.getCommitPosition()) }
}

const errorOf = (status: Status): Error => {
  const message = status.getMessage()
  switch (status.getDetails()?.getTypeName().replace('event_store.client.', '')) {
    case 'WrongExpectedVersion':
      return new Refused()
    case 'MaximumAppendSizeExceeded':
    case 'MaximumAppendEventSizeExceeded': // KurrentDB's, for one event
      return new Failure('too_large', { cause: new Error(message) })
    case 'AccessDenied':
    case 'StreamDeleted':
    case 'BadRequest':
      return new Rejected(message)
    // Not ready, too busy, or no leader known.
    case 'google.protobuf.Empty':
      return notNow(message)
    default:
      return new Error(message)
  }
}

interface Streams {
  makeBidiStreamRequest(
    path: string,
    serialize: (request: Buffer) => Buffer,
    deserialize: (bytes: Buffer) => Answer,
    metadata: object,
    options: object,
  ): Sink
}

/** Part of a call that this file uses. */
interface Sink {
  write(request: Buffer): void
  cancel(): void
  on(event: 'data', listener: (answer: Answer) => void): void
  on(event: 'error', listener: (error: Error) => void): void
  on(event: 'end', listener: () => void): void
}
